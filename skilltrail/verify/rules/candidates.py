"""Checks on a candidate: the same edits on the same parent give the same document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from msgspec.structs import asdict

from skilltrail.core.canon import text_digest
from skilltrail.core.tokens import count_tokens
from skilltrail.history.ask.blame import packed
from skilltrail.history.log import types
from skilltrail.history.log.events import Event
from skilltrail.history.log.evolve import edits_in
from skilltrail.history.log.run_state import RunState
from skilltrail.history.log.types.parts import Source
from skilltrail.method.update import too_long
from skilltrail.sandbox.own_tests import refused_by, test_key, wanted_tests
from skilltrail.skill.apply import TAG as APPLY
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.candidate import Candidate, build, composed
from skilltrail.skill.document import parse, raw_lines
from skilltrail.skill.edit import Edit, EditResult, EditStatus
from skilltrail.skill.folder import files_of, folder_text, is_folder, is_reference
from skilltrail.skill.markdown import is_blank
from skilltrail.skill.rewrite import TAG as REWRITE
from skilltrail.skill.rewrite import rewrite
from skilltrail.skill.structure import unseen_faults
from skilltrail.verify.result import Fault, Tags, differing
from skilltrail.verify.rules.settings import knows_counter

PROPOSED: Mapping[Source, type[types.SlowUpdateProposed] | type[types.CompactionProposed]] = {
    Source.SLOW_UPDATE: types.SlowUpdateProposed,
    Source.COMPACTION: types.CompactionProposed,
}
WHOLE = ("full_rewrite_minibatch", "compaction", "document")  # the one edit is a document


def check_candidate(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """The selected edits, applied again, give the recorded text and results."""
    said = event.read(types.CandidateBuilt)
    if state.broken is not None:
        return
    yield from differing(event, {"parent": text_digest(state.parent)})
    before, verdict = said.rejected_before, state.rejected.get(said.candidate)
    if before is not None and (verdict is None or verdict.event != before):
        yield Fault.of(event, "rejected_before", before, "a verdict against the same text")
    if not tags.knows(said.rule, APPLY, REWRITE):
        return
    ids, wanted = [result.edit for result in said.results], _wanted(event, state)
    if ids != wanted:
        yield Fault.of(event, "results", ids, wanted)
        return
    candidate = built_again(event, state)
    right = _recorded(candidate)
    if said.text is not None:
        right["text"] = candidate.text
    if knows_counter(state, tags):
        right["tokens"] = count_tokens(candidate.text)
    yield from differing(event, right)
    if said.scripts == "train":
        yield from _check_tests(event, state)
    yield from _check_faults(event, candidate, tags)


def _recorded(candidate: Candidate) -> dict[str, Any]:
    return {
        "results": [result.to_json() for result in candidate.results],
        "candidate": text_digest(candidate.text),
        "diff": candidate.diff,
        "sources": packed(candidate.sources),
    }


def _wanted(event: Event, state: RunState) -> list[str]:
    """Return the ids of the edits that the candidate must be built from, in order."""
    said = event.read(types.CandidateBuilt)
    if said.source is not Source.STEP:
        return _ids(state.latest(PROPOSED[said.source]))
    selected, notes = (
        state.told(types.EditsSelected),
        _ids(state.latest(types.AppendixProposed)),
    )
    ids = [] if selected is None else list(selected.selected)
    if said.mode == "rewrite_from_suggestions":
        # Made of all suggestions at once; when the rewriting failed there is no result.
        own = f"{event.seq}.0"
        ids = [own] if any(result.edit == own for result in said.results) else []
    elif said.mode in ("full_rewrite_minibatch", "document"):
        ids = ids[:1]
    return ids + notes


def _ids(proposed: Event | None) -> list[str]:
    return [] if proposed is None else [edit.edit for edit in edits_in(proposed)]


def built_again(event: Event, state: RunState) -> Candidate:
    """Return the candidate of the recorded edits on the current skill."""
    return _again(event, state.parent, tuple(state.patches.values()))


@lru_cache(maxsize=1)  # asked for by the candidate's event, and by its version's right after
def _again(event: Event, parent: str, patches: Sequence[Event]) -> Candidate:
    known, said = _edits_of(patches), event.read(types.CandidateBuilt)
    ids = [result.edit for result in said.results]
    edits = [known[id] for id in ids if id in known]
    plain = [edit for edit in edits if edit.op != "write_region"]
    regions = [edit for edit in edits if edit.op == "write_region"]
    if f"{event.seq}.0" in ids:
        return _rewritten(event, said, parent, regions)
    if said.mode in WHOLE and plain:
        one = plain[0]
        whole = rewrite(
            parent, one.content, one.id, frozen=_frozen(said), references=_makes(said)
        )
        return _with_regions(whole, regions)
    return _with_regions(_applied(said, parent, plain), regions)


def _applied(said: types.CandidateBuilt, parent: str, edits: Sequence[Edit]) -> Candidate:
    """Return the candidate of edits; those of scripts as the runs of their tests had it."""
    apply = partial(apply_edits, parent, edits, frozen=_frozen(said), references=_makes(said))
    if said.scripts != "train":
        return apply()
    candidate = apply(scripts=None)
    tests = said.script_tests or ()
    if [one.test for one in tests] != wanted_tests(candidate):
        return candidate  # its tests are not those that it needs, which `_check_tests` tells
    refusal = refused_by([asdict(one) for one in tests])
    if refusal is None:
        return candidate
    return apply(scripts=refusal)


def _check_tests(event: Event, state: RunState) -> Iterator[Fault]:
    """Every script that edits change was held against its test, with these very files."""
    known, said = _edits_of(tuple(state.patches.values())), event.read(types.CandidateBuilt)
    edits = [known[result.edit] for result in said.results if result.edit in known]
    plain = [edit for edit in edits if edit.op != "write_region"]
    candidate = apply_edits(
        state.parent, plain, frozen=_frozen(said), scripts=None, references=_makes(said)
    )
    files = files_of(candidate.text)
    right = [(test, test_key(files, test)) for test in wanted_tests(candidate)]
    tests = said.script_tests or ()
    found = [(one.test, one.key) for one in tests]
    if found != right:
        yield Fault.of(event, "script_tests", found, right)
    for one in tests:
        if one.passed and one.exit != 0:
            yield Fault.of(event, "script_tests", "passed", f"exit code {one.exit}")


def _edits_of(patches: Sequence[Event]) -> dict[str, Edit]:
    return {edit.edit: Edit.of(edit) for patch in patches for edit in edits_in(patch)}


def _frozen(said: types.CandidateBuilt) -> bool:
    """Return whether a frozen frontmatter decided; where nothing says so it made no odds."""
    return said.frontmatter == "frozen"


def _makes(said: types.CandidateBuilt) -> bool:
    """Return whether leave to make and remove references decided."""
    return said.references == "train"


def _with_regions(candidate: Candidate, regions: list[Edit]) -> Candidate:
    for edit in regions:
        candidate = composed(candidate, apply_edits(candidate.text, [edit], owner=edit.target))
    return candidate


def _rewritten(
    event: Event, said: types.CandidateBuilt, skill: str, regions: list[Edit]
) -> Candidate:
    """Return the candidate whose whole text stands in the event alone, notes set in already.

    A region that the parent has is taken from it, and the notes are set again. One that it has
    not stands at the end, and the blank line before it may be the text's or the notes' own:
    the recorded sources tell.
    """
    own = said.results[0]
    if own.status is not EditStatus.APPLIED:
        told = EditResult(own.edit, own.status, own.lines, own.detail, own.matched_by)
        return _with_regions(build(parse(skill), (), [told]), regions)  # its text is nowhere
    texts = [] if said.text is None else [said.text]
    for edit in regions:
        texts = [one for text in texts for one in _without(text, edit.target, skill)]
    if _makes(said):
        texts = [_with_removed(text, skill) for text in texts]
    whole = partial(rewrite, skill, frozen=_frozen(said), references=_makes(said))
    found = [_with_regions(whole(text, own.edit), regions) for text in texts]
    same = (one for one in found if not any(differing(event, _recorded(one))))
    return next(same, found[0])


def _with_removed(text: str, parent: str) -> str:
    """Return the text with the files that it removed, each without text, as it was written."""
    return folder_text(
        dict.fromkeys(filter(is_reference, files_of(parent)), "") | files_of(text)
    )


def _without(text: str, region: str, parent: str) -> list[str]:
    """Return what `text` may have been before `region` was written into it."""
    found = parse(text).region(region)
    if found is None or parse(parent).region(region) is not None:
        return [text]
    lines = raw_lines(text)
    before = lines[: found.start]
    texts = ["".join(before + lines[found.end :])]
    if before and is_blank(before[-1].rstrip("\r\n")):
        texts.append("".join(before[:-1] + lines[found.end :]))
    return texts


def _check_faults(event: Event, candidate: Candidate, tags: Tags) -> Iterator[Fault]:
    """The document's faults; one more, of its length, rests on a param and its own tokens."""
    recorded = list(event.read(types.CandidateBuilt).faults)
    right = list(candidate.faults)
    unseen = unseen_faults(candidate.text) if right else []  # they are among all faults
    seen = [fault for fault in right if fault not in unseen]
    if unseen and recorded[: len(right)] != right and recorded[: len(seen)] == seen:
        tags.knows("structure/1", "structure/2")  # before such characters were refused
        right = seen
    extra = recorded[len(right) :]
    length = all(_is_of_length(one, candidate) for one in extra)
    if recorded != right + (extra if length else []):
        yield Fault.of(event, "faults", recorded, right)


def _is_of_length(fault: str, candidate: Candidate) -> bool:
    """Return whether a fault is one of length, whatever limit was set."""
    sizes: dict[str | None, int] = {None: count_tokens(candidate.text)}
    if is_folder(candidate.text):
        sizes |= {path: count_tokens(one) for path, one in files_of(candidate.text).items()}
    return any(
        fault == too_long(tokens, most, path)
        for path, tokens in sizes.items()
        for most in range(1, tokens)
    )

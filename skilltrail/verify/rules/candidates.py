"""Checks on a candidate: the same edits on the same parent give the same document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.tokens import TAG as COUNTER
from skilltrail.core.tokens import count_tokens
from skilltrail.history.ask.lines import packed
from skilltrail.history.log.events import Event
from skilltrail.history.log.run_state import RunState
from skilltrail.method.update import too_long
from skilltrail.sandbox.own_tests import refused_by, test_key, wanted_tests
from skilltrail.skill.apply import TAG as APPLY
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.candidate import Candidate, build, composed
from skilltrail.skill.document import parse, raw_lines
from skilltrail.skill.edit import Edit, EditResult, EditStatus
from skilltrail.skill.folder import files_of, is_folder
from skilltrail.skill.markdown import is_blank
from skilltrail.skill.rewrite import TAG as REWRITE
from skilltrail.skill.rewrite import rewrite
from skilltrail.skill.structure import unseen_faults
from skilltrail.verify.result import Fault, Tags, differing

WHOLE = ("full_rewrite_minibatch", "compaction", "document")  # the one edit is a document


def check_candidate(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """The selected edits, applied again, give the recorded text and results."""
    data = event.data
    if state.broken is not None:
        return
    yield from differing(event, {"parent": text_digest(state.parent)})
    before = data.get("rejected_before")
    verdict = state.rejected.get(data["candidate"])
    if before is not None and (verdict is None or verdict.event != before):
        yield Fault.of(event, "rejected_before", before, "a verdict against the same text")
    if not tags.knows(data["rule"], APPLY, REWRITE):
        return
    ids = [result["edit"] for result in data["results"]]
    wanted = _wanted(event, state)
    if ids != wanted:
        yield Fault.of(event, "results", ids, wanted)
        return
    candidate = built_again(event, state)
    right = _recorded(candidate)
    if "text" in data:
        right["text"] = candidate.text
    if tags.knows(state.start.get("counter"), COUNTER):
        right["tokens"] = count_tokens(candidate.text)
    yield from differing(event, right)
    if data.get("scripts") == "train":
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
    data = event.data
    if data["source"] != "step":
        proposed = state.latest(f"{data['source']}.proposed")
        return [] if proposed is None else [edit["edit"] for edit in proposed.data["edits"]]
    selected, notes = state.latest("edits.selected"), state.latest("appendix.proposed")
    ids = [] if selected is None else list(selected.data["selected"])
    if data["mode"] == "rewrite_from_suggestions":
        # Made of all suggestions at once; when the rewriting failed there is no result.
        own = f"{event.seq}.0"
        ids = [own] if any(result["edit"] == own for result in data["results"]) else []
    elif data["mode"] in ("full_rewrite_minibatch", "document"):
        ids = ids[:1]
    return ids + ([] if notes is None else [edit["edit"] for edit in notes.data["edits"]])


def built_again(event: Event, state: RunState) -> Candidate:
    """Return the candidate of the recorded edits on the current skill."""
    return _again(event, state.parent, tuple(state.patches.values()))


@lru_cache(maxsize=1)  # asked for by the candidate's event, and by its version's right after
def _again(event: Event, parent: str, patches: Sequence[Event]) -> Candidate:
    known = _edits_of(patches)
    ids = [result["edit"] for result in event.data["results"]]
    edits = [known[id] for id in ids if id in known]
    plain = [edit for edit in edits if edit.op != "write_region"]
    regions = [edit for edit in edits if edit.op == "write_region"]
    if f"{event.seq}.0" in ids:
        return _rewritten(event, parent, regions)
    frozen = _frozen(event)
    if event.data["mode"] in WHOLE and plain:
        one = plain[0]
        whole = rewrite(parent, one.content, one.id, frozen=frozen)
        return _with_regions(whole, regions)
    return _with_regions(_applied(event, parent, plain), regions)


def _applied(event: Event, parent: str, edits: Sequence[Edit]) -> Candidate:
    """Return the candidate of edits; those of scripts as the runs of their tests had it."""
    references = event.data.get("references") == "train"
    apply = partial(apply_edits, parent, edits, frozen=_frozen(event), references=references)
    if event.data.get("scripts") != "train":
        return apply()
    candidate = apply(scripts=None)
    tests = event.data.get("script_tests", ())
    if [one["test"] for one in tests] != wanted_tests(candidate):
        return candidate  # its tests are not those that it needs, which `_tests` tells
    refusal = refused_by(tests)
    if refusal is None:
        return candidate
    return apply(scripts=refusal)


def _check_tests(event: Event, state: RunState) -> Iterator[Fault]:
    """Every script that edits change was held against its test, with these very files."""
    known = _edits_of(tuple(state.patches.values()))
    edits = [known[r["edit"]] for r in event.data["results"] if r["edit"] in known]
    plain = [edit for edit in edits if edit.op != "write_region"]
    references = event.data.get("references") == "train"
    frozen = _frozen(event)
    candidate = apply_edits(
        state.parent, plain, frozen=frozen, scripts=None, references=references
    )
    files = files_of(candidate.text)
    right = [(test, test_key(files, test)) for test in wanted_tests(candidate)]
    found = [(one["test"], one["key"]) for one in event.data.get("script_tests", ())]
    if found != right:
        yield Fault.of(event, "script_tests", found, right)
    for one in event.data.get("script_tests", ()):
        if one["passed"] and one["exit"] != 0:
            yield Fault.of(event, "script_tests", "passed", f"exit code {one['exit']}")


def _edits_of(patches: Sequence[Event]) -> dict[str, Edit]:
    return {
        edit["edit"]: Edit.from_json(edit) for patch in patches for edit in patch.data["edits"]
    }


def _frozen(event: Event) -> bool:
    """Return whether a frozen frontmatter decided; where nothing says so it made no odds."""
    return bool(event.data.get("frontmatter") == "frozen")


def _with_regions(candidate: Candidate, regions: list[Edit]) -> Candidate:
    for edit in regions:
        candidate = composed(candidate, apply_edits(candidate.text, [edit], owner=edit.target))
    return candidate


def _rewritten(event: Event, skill: str, regions: list[Edit]) -> Candidate:
    """Return the candidate whose whole text stands in the event alone, notes set in already.

    A region that the parent has is taken from it, and the notes are set again. One that it has
    not stands at the end, and the blank line before it may be the text's or the notes' own:
    the recorded sources tell.
    """
    own = event.data["results"][0]
    if own["status"] != EditStatus.APPLIED.value:
        refused = build(parse(skill), (), [_result(own)])  # its text is in no event
        return _with_regions(refused, regions)
    texts = [event.data["text"]]
    for edit in regions:
        texts = [one for text in texts for one in _without(text, edit.target, skill)]
    frozen = _frozen(event)
    found = [
        _with_regions(rewrite(skill, text, own["edit"], frozen=frozen), regions)
        for text in texts
    ]
    same = (one for one in found if not any(differing(event, _recorded(one))))
    return next(same, found[0])


def _result(own: Mapping[str, Any]) -> EditResult:
    lines, status = tuple(own["lines"]), EditStatus(own["status"])
    return EditResult(own["edit"], status, lines, own["detail"], own["matched_by"])


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
    recorded, right = event.data["faults"], list(candidate.faults)
    unseen = unseen_faults(candidate.text)
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

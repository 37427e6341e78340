"""Checks on a candidate: the same edits on the same parent give the same document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.tokens import TAG as COUNTER
from skilltrail.core.tokens import count_tokens
from skilltrail.history.ask.lines import packed
from skilltrail.history.log.course import Course
from skilltrail.history.log.events import Event
from skilltrail.skill.apply import TAG as APPLY
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.candidate import Candidate, composed
from skilltrail.skill.edit import Edit
from skilltrail.skill.rewrite import TAG as REWRITE
from skilltrail.skill.rewrite import rewrite
from skilltrail.skill.structure import unseen_faults
from skilltrail.verify.faults import Fault
from skilltrail.verify.levels import Report, check
from skilltrail.verify.rules.rollouts import differing

_TOO_LONG = re.compile(r"([0-9]+) tokens are more than max_skill_tokens allows \(([0-9]+)\)")


@check("candidate.built")
def check_candidate(event: Event, course: Course, report: Report) -> Iterator[Fault]:
    """The selected edits, applied again, give the recorded text and results."""
    data = event.data
    if course.broken is not None:
        return
    yield from differing(event, {"parent": text_digest(course.skill)})
    if not report.knows(data["rule"], APPLY, REWRITE):
        return
    ids = [result["edit"] for result in data["results"]]
    wanted = _wanted(event, course)
    if ids != wanted:
        yield Fault.of(event, "results", ids, wanted)
        return
    candidate = built_again(event, course)
    right: dict[str, Any] = {
        "results": [result.to_json() for result in candidate.results],
        "candidate": text_digest(candidate.text),
        "diff": candidate.diff,
        "sources": packed(candidate.sources),
    }
    if "text" in data:
        right["text"] = candidate.text
    if report.knows(course.start.get("counter"), COUNTER):
        right["tokens"] = count_tokens(candidate.text)
    yield from differing(event, right)
    yield from _check_faults(event, candidate, report)


def _wanted(event: Event, course: Course) -> list[str]:
    """Return the ids of the edits that the candidate must be built from, in order."""
    data = event.data
    if data["source"] != "step":
        proposed = course.latest(f"{data['source']}.proposed")
        return [] if proposed is None else [edit["edit"] for edit in proposed.data["edits"]]
    selected, notes = course.latest("edits.selected"), course.latest("appendix.proposed")
    ids = [] if selected is None else list(selected.data["selected"])
    if data["mode"] == "rewrite_from_suggestions":
        # Made of all suggestions at once; when the rewriting failed there is no result.
        own = f"{event.seq}.0"
        ids = [own] if any(result["edit"] == own for result in data["results"]) else []
    elif data["mode"] == "full_rewrite_minibatch":
        ids = ids[:1]
    return ids + ([] if notes is None else [edit["edit"] for edit in notes.data["edits"]])


def built_again(event: Event, course: Course) -> Candidate:
    """Return the candidate of the recorded edits on the current skill."""
    known = {
        edit["edit"]: Edit.from_json(edit)
        for patch in course.patches.values()
        for edit in patch.data["edits"]
    }
    ids = [result["edit"] for result in event.data["results"]]
    edits = [known[id] for id in ids if id in known]
    plain = [edit for edit in edits if edit.op != "write_region"]
    regions = [edit for edit in edits if edit.op == "write_region"]
    own = f"{event.seq}.0"
    if own in ids:
        # Notes in the recorded text are a region, which a rewrite takes from the parent; they
        # are set again below.
        candidate = rewrite(course.skill, event.data["text"], own)
    elif event.data["mode"] in ("full_rewrite_minibatch", "compaction") and plain:
        candidate = rewrite(course.skill, plain[0].content, plain[0].id)
    else:
        candidate = apply_edits(course.skill, plain)
    for edit in regions:
        noted = apply_edits(candidate.text, [edit], owner=edit.target)
        candidate = composed(candidate, noted)
    return candidate


def _check_faults(event: Event, candidate: Candidate, report: Report) -> Iterator[Fault]:
    """The document's faults; one more, of its length, rests on a param and its own numbers."""
    recorded = event.data["faults"]
    long = [match for fault in recorded if (match := _TOO_LONG.fullmatch(fault)) is not None]
    for match in long:
        tokens, most = int(match[1]), int(match[2])
        if tokens != event.data["tokens"] or tokens <= most:
            yield Fault.of(event, "faults", match[0], f"{event.data['tokens']} tokens")
    others = [fault for fault in recorded if _TOO_LONG.fullmatch(fault) is None]
    unseen = unseen_faults(candidate.text)
    if unseen and others == [fault for fault in candidate.faults if fault not in unseen]:
        report.knows("structure/1", "structure/2")  # from before such characters were refused
    elif others != list(candidate.faults):
        yield Fault.of(event, "faults", others, list(candidate.faults))

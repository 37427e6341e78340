"""Audit: why was this accepted? Everything about one candidate, from evidence to aftermath.

All of it is read off the log; only the trajectories themselves (prompt, reply, expected answer)
are facts, looked up through `RolloutEvidence` where the store is at hand.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from skilltrail.core.errors import UsageError
from skilltrail.history.ask.audit_parts import (
    cases_of,
    merge_of,
    outcome_of,
    proposal_of,
    selection_of,
    tried_edits,
)
from skilltrail.history.ask.audit_record import Audit, LogOnly, RolloutEvidence
from skilltrail.history.ask.blame import blame, unpacked
from skilltrail.history.ask.line_history import attempts
from skilltrail.history.ask.origins import origins
from skilltrail.history.log import types
from skilltrail.history.log.candidate_events import (
    CandidateEvents,
    candidate_around,
    candidate_of_version,
)
from skilltrail.history.log.events import Event, read_all
from skilltrail.history.log.evolve import CARRIERS, edits_in
from skilltrail.history.log.run_log import RunLog
from skilltrail.history.log.types.parts import Purpose
from skilltrail.history.log.words import sentence
from skilltrail.skill.document import split_lines

# Purposes of rollouts that edits are drawn from.
LEARNED = (Purpose.TRAIN, Purpose.DEMONSTRATIONS)


def audit_version(log: RunLog, number: int, evidence: RolloutEvidence) -> Audit:
    """Return the audit of the candidate that became version `number`."""
    return _audit(log, candidate_of_version(log, number), f"version {number}", evidence)


def audit_patch(log: RunLog, patch: str, evidence: RolloutEvidence) -> Audit:
    """Return the audit of the candidate that a patch (`p12`) or edit (`12.0`) went into."""
    carrier = patch if patch.startswith("p") else f"p{patch.split('.')[0]}"
    return _audit(log, candidate_around(log, log.patch(carrier)), f"patch {patch}", evidence)


def audit_line(log: RunLog, wanted: int | str, line: int, evidence: RolloutEvidence) -> Audit:
    """Return the audit of the change that wrote a line (1-based) of a version.

    Raises:
        UsageError: the version has no such line.
    """
    rows = blame(log, wanted)
    if not 1 <= line <= len(rows):
        found = f"version {wanted} has {len(rows)} lines"
        raise UsageError(f"line {line}", found, "`skilltrail blame` numbers them")
    row = rows[line - 1]
    candidate = candidate_of_version(log, row.version)
    subject = f"line {line} of {wanted}"
    return _audit(log, candidate, subject, evidence, lines=((line, row.text),))


def audit_text(log: RunLog, text: str, evidence: RolloutEvidence) -> list[Audit]:
    """Return one audit per change that `text` was part of, taken up or not.

    First the changes that wrote lines with it, oldest version first; then the trials in which
    it was to be written, changed or removed, in the order of the log.

    Raises:
        UsageError: no version ever had such a line, and no edit proposed one.
    """
    subject = f"text {text!r}"
    if not text.strip():
        raise UsageError(subject, "every line has it", "Quote a part of one line")
    wanted: dict[int, dict[str, None]] = {}
    for version in log.versions:
        for row in blame(log, version.number):
            if text in row.text:
                wanted.setdefault(row.version, {})[row.text] = None
    found = []
    for number in sorted(wanted):
        lines = tuple(
            (at, line)
            for at, line in enumerate(split_lines(log.versions[number].text), 1)
            if line in wanted[number]
        )
        candidate = candidate_of_version(log, number)
        found.append(_audit(log, candidate, subject, evidence, lines=lines))
    found += [
        _audit(log, candidate, subject, evidence) for candidate in _in_vain(log, text, wanted)
    ]
    if not found:
        raise UsageError(
            subject,
            "no version and no proposal of this run has a line with it",
            "Quote a part of one line as it stands in the skill",
        )
    return found


def _in_vain(log: RunLog, text: str, versions: Container[int]) -> Iterator[CandidateEvents]:
    """Yield each candidate with an edit about `text` that made none of `versions`."""
    past = 0  # the last event of the trials seen
    for event in log.of_type(*CARRIERS):
        edits = edits_in(event)
        if event.seq <= past or not any(text in e.content or text in e.target for e in edits):
            continue
        candidate = candidate_around(log, event)
        past, became = candidate.last, candidate.versioned
        if became is None or became.read(types.SkillVersioned).version not in versions:
            yield candidate


def _audit(
    log: RunLog,
    candidate: CandidateEvents,
    subject: str,
    evidence: RolloutEvidence,
    lines: tuple[tuple[int, str], ...] = (),
) -> Audit:
    versioned, built, selected = candidate.versioned, candidate.built, candidate.selected
    any_event = next(iter([e for e in (built, selected, versioned, *candidate.proposals) if e]))
    version = None if versioned is None else versioned.read(types.SkillVersioned).version
    tried = tuple(tried_edits(log, candidate)) if built is not None else ()
    asked = [line for _, line in lines] or _written(log, candidate, version)
    # Of a seed nobody asks which item it came from.
    written = [] if candidate.built is None else asked or _proposed(candidate)
    return Audit(
        subject=subject,
        version=version,
        parent_version=_parent_version(log, versioned),
        epoch=getattr(any_event.said, "epoch", None),
        step=getattr(any_event.said, "step", None),
        source=_source(candidate),
        result=_result(candidate),
        lines=lines,
        parents="" if candidate.chosen is None else sentence(candidate.chosen, None),
        cases=tuple(cases_of(candidate, tried, evidence)),
        proposals=tuple(proposal_of(event) for event in candidate.proposals),
        unusable_replies=tuple(
            f"{one.stage}: {one.message} ({one.then})"
            for one in read_all(candidate.rejected_replies, types.ReplyRejected)
        ),
        merges=tuple(merge_of(event) for event in candidate.merges),
        edits=tried,
        attempts=() if version is None else tuple(attempts(log, version, asked)),
        origins=origins(written, _learned(log, candidate, evidence), evidence),
        **selection_of(candidate),
        **outcome_of(log, candidate),
    )


def _learned(
    log: RunLog, candidate: CandidateEvents, evidence: RolloutEvidence
) -> list[types.RolloutsScored]:
    """Return what was rolled out before the candidate, where its texts can be looked into."""
    if candidate.built is None or isinstance(evidence, LogOnly):
        return []
    before = (e for e in log.of_type("rollouts.scored") if e.seq < candidate.built.seq)
    return [said for said in read_all(before, types.RolloutsScored) if said.purpose in LEARNED]


def _parent_version(log: RunLog, versioned: Event | None) -> int | None:
    """Return the last version before it with the text that it was made of, None of none."""
    if versioned is None:
        return None
    said = versioned.read(types.SkillVersioned)
    same = [v.number for v in log.versions[: said.version] if v.digest == said.parent]
    return same[-1] if same else None


def _written(log: RunLog, candidate: CandidateEvents, version: int | None) -> list[str]:
    """Return the lines that a version wrote: all of the seed, else those of its edits."""
    if version is None:
        return []
    lines = split_lines(log.versions[version].text)
    if candidate.built is None:
        return lines
    sources = unpacked(candidate.built.read(types.CandidateBuilt).sources)
    return [
        line for line, source in zip(lines, sources, strict=True) if isinstance(source, str)
    ]


def _proposed(candidate: CandidateEvents) -> list[str]:
    """Return the lines that a candidate which became no version was to add."""
    assert candidate.built is not None
    added = (
        line
        for line in split_lines(candidate.built.read(types.CandidateBuilt).diff)
        if line.startswith("+")
    )
    return [line[1:] for line in added if not line.startswith("+++")]


def _source(candidate: CandidateEvents) -> str:
    if candidate.built is not None:
        return candidate.built.read(types.CandidateBuilt).source.value
    return "seed" if candidate.versioned is not None and not candidate.proposals else "step"


def _result(candidate: CandidateEvents) -> str:
    if candidate.gate is not None:
        return candidate.gate.read(types.GateJudged).verdict.value
    if candidate.ended is not None:
        return candidate.ended.read(types.StepEnded).result.value
    return "seed" if candidate.versioned is not None else "unfinished"

"""What a reader may rely on, checked while the report is made: the trust box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from skilltrail.core.canon import digest
from skilltrail.history.ask.evaluations import Evaluation, openings
from skilltrail.history.log.erasure import end_of
from skilltrail.history.log.events import Event, read_all
from skilltrail.history.log.types.outcomes import (
    GateJudged,
    RolloutsScored,
    RunStarted,
    SkillEvaluated,
    TestOpened,
)
from skilltrail.history.log.types.parts import ItemDigest
from skilltrail.history.log.words import count
from skilltrail.verify.log import LogReport, verify_log

# Only what was verified here is `good`; a `fact` (a digest, a count) is told, no more.
GOOD, FACT, NOTE, BAD = "good", "fact", "note", "bad"
# What a fault of the log itself is about; any other is a decision that does not follow.
CHAIN = ("newline", "line", "seq", "prev", "form", "document", "end of the log")


def trust_rows(
    training: Sequence[Event],
    evaluation: Sequence[Event],
    numbers: dict[str, Any],
    others: Sequence[Evaluation] = (),
    drifts: Sequence[str] = (),
) -> list[dict[str, str]]:
    """Return rows of what, verdict (`good`, `fact`, `note`, `bad`) and what was found.

    `others` are the evaluations at hand, of any run: each that opened the test split counts.
    `drifts` say which roles were served by several models.
    """
    rows = [_told(*row) for row in _rows(training, evaluation, numbers)]
    rows += [_told("Models", NOTE, words) for words in drifts]
    return [*rows, openings_row(training, evaluation, others)]


def openings_row(
    training: Sequence[Event], evaluation: Sequence[Event], others: Sequence[Evaluation]
) -> dict[str, str]:
    """Return the row that counts openings of the test split; see `trust_rows`."""
    return _told(*_openings(training, evaluation, others))


def _told(what: str, verdict: str, found: str) -> dict[str, str]:
    return {"what": what, "verdict": verdict, "found": found}


def _rows(
    training: Sequence[Event], evaluation: Sequence[Event], numbers: dict[str, Any]
) -> Iterator[tuple[str, str, str]]:
    data = b"".join(event.line + b"\n" for event in training)
    report = verify_log(data, "events.jsonl", allow_unfinished=True)
    yield _chain(report)
    yield _decisions(report)
    yield "Run", FACT, training[-1].id
    if end_of(training) is None:
        yield "End", NOTE, "the run has not finished; this is its state so far"
    if evaluation:
        yield _evaluated(evaluation, report)
    yield from _splits(training, evaluation)
    yield _coverage(training, evaluation)
    yield from _judged(training, evaluation)
    yield from _gap(numbers)
    yield from _departures(training)


def _chain(report: LogReport) -> tuple[str, str, str]:
    faults = [fault for fault in report.faults if fault.what in CHAIN]
    if not faults:
        return "Chain", GOOD, f"{len(report.events)} events, every link and version verified"
    return "Chain", BAD, f"{count(len(faults), 'fault')}, first: {faults[0]}"


def _decisions(report: LogReport) -> tuple[str, str, str]:
    faults = [fault for fault in report.faults if fault.what not in CHAIN]
    unknown, done = report.tags.unknown, sum(report.decisions.values())
    if faults:
        return "Decisions", BAD, f"{len(faults)} of {done} differ, first: {faults[0]}"
    if unknown:
        found = f"{done} checked; {unknown.total()} parts not recomputed"
        return "Decisions", NOTE, f"{found} ({', '.join(sorted(unknown))})"
    return "Decisions", GOOD, f"{done} checked against the log"


def _evaluated(evaluation: Sequence[Event], training: LogReport) -> tuple[str, str, str]:
    data = b"".join(event.line + b"\n" for event in evaluation)
    report = verify_log(data, "evaluation.jsonl", allow_unfinished=True, after=training)
    if report.faults:
        faults = count(len(report.faults), "fault")
        return "Evaluation", BAD, f"{faults}, first: {report.faults[0]}"
    told = sum(isinstance(event.said, SkillEvaluated) for event in evaluation)
    found = f"{len(evaluation)} events continue the run; means and gains of {told} recomputed"
    return "Evaluation", GOOD, found


def _splits(
    training: Sequence[Event], evaluation: Sequence[Event]
) -> Iterator[tuple[str, str, str]]:
    start = training[0].read(RunStarted)
    splits = {"train": start.train, "selection": start.selection}
    splits |= {said.split: said.items for said in read_all(evaluation, TestOpened)}
    for name, rows in splits.items():
        yield _split(name, rows)
    for key in map(attrgetter, ("item", "digest")):
        known = Counter(value for rows in splits.values() for value in set(map(key, rows)))
        twice = [value for value, n in known.items() if n > 1]
        if twice:
            told = f"{len(twice)} of {len(known)} stand in two splits, such as {min(twice)}"
            yield "Splits disjoint", NOTE, told
            return
    sizes = " + ".join(f"{len(rows)} {name}" for name, rows in splits.items())
    yield "Splits disjoint", GOOD, f"no item or content stands in two of {sizes}"


def _split(name: str, rows: Sequence[ItemDigest]) -> tuple[str, str, str]:
    # The same digest as in data/splits/manifest.json, of the items that the run used.
    ordered = sorted(rows, key=lambda row: row.item)
    frozen = digest("split/1", [row.digest for row in ordered])
    return f"Split {name}", FACT, f"{len(rows)} items, {frozen[:16]}"


def _openings(
    training: Sequence[Event], evaluation: Sequence[Event], others: Sequence[Evaluation]
) -> tuple[str, str, str]:
    own = [Evaluation(evaluation)] if evaluation else []
    found = openings([*own, *others], training[-1].id)
    if not evaluation:
        unseen = (
            "no evaluation is available: nothing here says how the skill does on unseen items"
        )
        return "Test split", NOTE, unseen + (f" ({found})" if found.run else "")
    once = found.run == found.everywhere == 1 and not found.asked and not found.lost
    return "Test split", FACT if once else NOTE, str(found)


def _coverage(training: Sequence[Event], evaluation: Sequence[Event]) -> tuple[str, str, str]:
    rolled = [e.coverage for e in read_all((*training, *evaluation), RolloutsScored)]
    asked = sum(one.asked for one in rolled)
    done = sum(one.scored for one in rolled)
    found = f"{done} of {asked} rollouts scored"
    return "Coverage", GOOD if done == asked else NOTE, found


def _judged(
    training: Sequence[Event], evaluation: Sequence[Event]
) -> Iterator[tuple[str, str, str]]:
    scored = read_all((*training, *evaluation), RolloutsScored)
    rows = [row for said in scored for row in said.items]
    judged = sum(row.judgement is not None for row in rows)
    if judged:
        yield "Scores", NOTE, f"{judged} of {len(rows)} were given by a model, not by a rule"


def _gap(numbers: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    selection, test = numbers["selection"].get("best"), numbers.get("test", {}).get("best")
    if selection is not None and test is not None:
        gap = selection - test
        found = f"{selection:.3f} on selection, {test:.3f} on test ({gap:+.3f})"
        yield "Selection-to-test gap", FACT if gap < 0.1 else NOTE, found


def _departures(training: Sequence[Event]) -> Iterator[tuple[str, str, str]]:
    gates = list(read_all(training, GateJudged))
    forced = sum(said.forced for said in gates)
    if forced:
        yield "Departure", NOTE, f"{forced} of {len(gates)} verdicts were forced, not earned"
    if any(said.min_coverage is not None and said.min_coverage < 1 for said in gates):
        yield "Departure", NOTE, "the run was allowed to continue with missing items"
    unusable = sum(event.type == "reply.rejected" for event in training)
    if unusable:
        yield "Departure", NOTE, f"{unusable} optimizer replies were invalid"
    parent = training[0].read(RunStarted).parent
    if parent is not None:
        yield "Fork", FACT, f"continues event {parent[:16]}"

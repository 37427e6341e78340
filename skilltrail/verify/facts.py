"""Rules at level *facts*: splits, the run's start, every rollout, the exports.

Scores are computed again from recorded trajectories; what a judge scored, from its recorded
judgement. No judge is asked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

from skilltrail.core.canon import digest
from skilltrail.core.errors import FaultError, SkilltrailError
from skilltrail.core.item import SPLITS
from skilltrail.core.redact import HIDDEN
from skilltrail.data.freeze import frozen
from skilltrail.data.splits import read_manifest, read_split
from skilltrail.history.ask.evaluations import evaluations
from skilltrail.history.ask.evaluations import openings as count_openings
from skilltrail.history.ask.served import drift, served_in
from skilltrail.history.ask.sources import Project
from skilltrail.history.log.events import Event
from skilltrail.history.log.types.outcomes import RolloutsScored, TestOpened
from skilltrail.method.run import gate_rule
from skilltrail.methods.registry import train
from skilltrail.runtime.evaluation import items_of, measure
from skilltrail.runtime.outputs import facts_named
from skilltrail.store.protocol import Fact
from skilltrail.verify.doors import gaps_of, rollouts_of, run_of, target_of
from skilltrail.verify.evidence import OPENED, STARTED, Evidence
from skilltrail.verify.log import LogReport
from skilltrail.verify.rerun import ComparingRecorder, EventMismatch, skills_asked
from skilltrail.verify.rescore import Rows
from skilltrail.verify.result import Check, Fault, Level


def splits(evidence: Evidence) -> Check:
    """The frozen splits are what their manifest says, and what the data here give."""
    root, faults = evidence.place.workspace, []
    of, done, note = len(SPLITS) + 1, len(SPLITS), "the data here give the same"
    manifest = read_manifest(root)
    for name in SPLITS:
        try:
            read_split(root, name)
        except FaultError as error:
            faults.append(_fault("data/splits", name, error.found, "the manifest's digest"))
    try:
        report, *_ = frozen(evidence.params, evidence.env, root)
    except SkilltrailError as error:
        return Check(done, of, f"not made again: {error}", tuple(faults))
    if report.manifest != manifest and evidence.erased.items:
        done, note = done - 1, "a text was erased from items, and not from the data here"
    elif report.manifest != manifest:
        recorded, right = manifest["splits"], report.manifest["splits"]
        again = evidence.held("split", 1, [_fault("data/splits", "manifest", recorded, right)])
        faults, note = [*faults, *again.faults], again.note
        done -= not again.whole
    return Check(done + 1, of, note, tuple(faults))


def start(evidence: Evidence) -> Check:
    """A run of what is here would start with what the log starts with."""
    e, recorder, name = evidence, ComparingRecorder([]), evidence.params.env
    if name != e.started.env:
        fault = Fault.of(e.start, "env", e.started.env, name, Level.FACTS)
        return e.held("train", 1, [fault])
    return _same_start(e, "train", e.start, lambda: train(run_of(e, recorder, here=True)))


def opening(evidence: Evidence) -> Check | None:
    """An evaluation of what is here would open what the log opened, on the same target; no
    opening of the test split is missing."""
    return evidence.each_evaluation(lambda report: _opening(evidence, report))


def _opening(evidence: Evidence, report: LogReport) -> Check:
    e = evidence
    if not report.events or report.events[0].type != OPENED:
        raise FaultError(report.name, "the log has no beginning")
    event = report.events[0]
    said, recorder = event.read(TestOpened), ComparingRecorder([], e.training.last)
    home = rollouts_of(e, e.env, target_of(e.params, None), gaps_of(e, evaluated=True))
    items, rule = items_of(e.place.workspace, said.split), gate_rule(e.params)
    skills = skills_asked(e, said)
    check = _same_start(
        e,
        "evaluate",
        event,
        lambda: measure(home, rule, items, skills, recorder, said.split),
        but=("opened_before",),
    )
    project = Project(e.place.workspace, e.place.root)
    found = count_openings(evaluations(project), event.prev)
    if found.lost:
        lost = _fault("test split", "openings", found.run, found.run + found.lost)
        check = replace(check, faults=(*check.faults, lost))
    return replace(check, note=check.note if check.note else str(found))


def _same_start(
    evidence: Evidence,
    stage: str,
    event: Event,
    tell: Callable[[], Coroutine[Any, Any, Any]],
    but: tuple[str, ...] = (),
) -> Check:
    """Hold the first event that `tell` comes to against `event`, field by field."""
    try:
        asyncio.run(tell())
        raise FaultError("the loop", "comes to no event")
    except EventMismatch as found:
        right, data = found.told.data, event.data
    faults: list[Fault] = []
    names = [name for name in {**right, **data} if name not in but]
    of = len(names)
    for name in names:
        if name in ("train", "selection", "items") and name in right:
            of += len(right[name])
            faults += _differing_items(event, name, data[name], right[name])
        elif data.get(name) != right.get(name):
            faults.append(Fault.of(event, name, data.get(name), right.get(name), Level.FACTS))
    if faults and event.seq in evidence.erased.events:
        return Check(of - min(of, len(faults)), of, f"a text was erased from it; {faults[0]}")
    return evidence.held(stage, of, faults)


def _differing_items(event: Event, name: str, found: Any, right: Any) -> Iterator[Fault]:
    digests = {row["item"]: row["digest"] for row in right}
    for row in found:
        wanted = digests.pop(row["item"], "no such item")
        if row["digest"] != wanted:
            yield Fault.of(event, f"{name}, {row['item']}", row["digest"], wanted, Level.FACTS)
    for item in digests:
        yield Fault.of(event, f"{name}, {item}", "no such item", digests[item], Level.FACTS)
    if not digests and [r["item"] for r in found] != [r["item"] for r in right]:
        yield Fault.of(event, name, "another order", "that of the split", Level.FACTS)


def rollouts(evidence: Evidence) -> Check:
    """Every row of the logs has its fact, under the right key, and the score it gives."""
    e, rows = evidence, Rows(evidence)
    done = of = 0
    faults: list[Fault] = []
    why: dict[str, int] = {}
    e.expect(e.rows([*e.reports, *e.asked]))
    for report in [*e.reports, *e.asked]:
        rows.erased = e.erased_from(report)
        for at, event in enumerate(report.events):
            if event.type in (STARTED, OPENED):
                rows.open(event)
            said = event.said
            if not isinstance(said, RolloutsScored):
                continue
            target = rows.target(event, report.events[at + 1 : at + 2])
            for row in said.items:
                of += 1
                e.tick()
                found = rows.check(event, row, target)
                if isinstance(found, str):
                    why[found] = why.get(found, 0) + 1
                else:
                    done += 1
                    faults += found
    note = "; ".join(f"{number} {reason}" for reason, number in why.items())
    if e.env.version != e.started.agent["version"]:
        note += f"; scored by {e.env.version}, recorded {e.started.agent['version']}"
    return Check(done, max(of, 1), note.removeprefix("; "), tuple(faults))


def models(evidence: Evidence) -> Check | None:
    """Which models served the replies; None where no reply says. Several are no fault."""
    events = [event for report in evidence.reports for event in report.events]
    found = served_in(events, evidence.facts.get_many)
    told = sum(counts.total() for counts in found.values())
    return Check(told, told, "; ".join(drift(found))) if told else None


def exports(evidence: Evidence) -> Check:
    """The exports hold what the logs name, line by line as written and as the store has it."""
    e, facts = evidence, evidence.facts
    named: set[str] = set()
    for report in e.reports:
        gaps = gaps_of(e, evaluated=report is not e.training)
        named |= facts_named(report.events, gaps)
    faults = list(facts.damaged)
    e.expect(len(facts.exported))
    for fact, stored in facts.both():
        e.tick()
        faults += _of_fact(fact, stored, lost=fact.key in e.erased.facts)
    here = len(named & facts.exported.keys())
    strange = len(facts.exported.keys() - named)
    note = f"{strange} recorded calls in them are not of these logs" if strange else ""
    return Check(here, len(named) + strange, note, tuple(faults))


def _of_fact(fact: Fact, stored: Fact | None, *, lost: bool) -> Iterator[Fault]:
    """Yield what is wrong with an exported fact: other than in the store, or under another key
    than its request has, unless that `lost` text."""
    where = f"fact {fact.key[:12]}"
    if stored is not None and stored.text != fact.text:
        yield _fault(where, "value", "another value than in the store", "the same in both")
    if fact.kind != "call" or lost:
        return
    value = json.loads(fact.text)
    key = digest("call/1", {name: value.get(name) for name in ("model", "request")})
    if key != fact.key and HIDDEN not in fact.text:  # a key that was taken out is not known
        yield _fault(where, "key", fact.key, key)


def _fault(where: str, what: str, found: Any, right: Any) -> Fault:
    return Fault(None, where, what, found, right, Level.FACTS)

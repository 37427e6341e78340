"""Loop and evaluation run again on recorded facts, held against the log event by event."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.errors import FaultError, SkilltrailError
from skilltrail.history.log.events import Event, read_all
from skilltrail.history.log.log import Following, follow
from skilltrail.history.log.replay import version_of
from skilltrail.history.log.types.outcomes import SkillTransferred, TestOpened
from skilltrail.history.log.types.parts import SkillNamed
from skilltrail.method.run import gate_rule
from skilltrail.methods.registry import train
from skilltrail.models.errors import UnseenRequest
from skilltrail.runtime.evaluation import items_of, measure, transfer
from skilltrail.runtime.evaluation.named_skill import (
    FROM_THE_LOG,
    NamedSkill,
    named_skill,
    skills_of,
)
from skilltrail.verify.doors import (
    RefusingModel,
    gaps_of,
    labelled,
    rollouts_of,
    run_of,
    target_of,
)
from skilltrail.verify.evidence import OPENED, Evidence
from skilltrail.verify.log import LogReport
from skilltrail.verify.result import BROKEN, Check, Fault, Level

ERASED_FROM = "a text was erased from what it rests on, so nobody can run it again"
TAGGED = ("rule", "order", "interval", "share_interval", "counter")


class EventMismatch(Exception):
    """The loop came to another event than the log holds; `stands` is None past its end."""

    def __init__(self, told: Event, stands: Event | None) -> None:
        super().__init__(told.name)
        self.told, self.stands = told, stands

    @property
    def other_tags(self) -> str:
        """The tags of decision functions by which the log's event went, and not this one."""
        if self.stands is None or self.stands.type != self.told.type:
            return ""
        here, there = _tags(self.told.data), _tags(self.stands.data)
        return ", ".join(str(tag) for name, tag in there.items() if here.get(name) != tag)


def _tags(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tags of decision functions that an event names, None where a model decided."""
    inner = {f"{name}.rule": data[name]["rule"] for name in ("batch", "sample") if name in data}
    return {name: data[name] for name in TAGGED if data.get(name) is not None} | inner


class ComparingRecorder(Following):
    """A history that holds each event against the log and writes nothing."""

    def __init__(self, existing: Sequence[Event], after: Event | None = None) -> None:
        super().__init__(after)
        self._existing = existing

    def append(self, type: str, data: Mapping[str, Any]) -> Event:
        event = follow(self.last, type, data)
        at = len(self.events)
        stands = self._existing[at] if at < len(self._existing) else None
        if stands is None or stands.line != event.line:
            raise EventMismatch(event, stands)
        self.events.append(event)
        return event

    def flush(self) -> None:
        pass


def training_again(evidence: Evidence) -> Check:
    """Run the loop on recorded facts alone."""
    events = evidence.training.events
    if evidence.erased:
        return Check(0, len(events), ERASED_FROM)
    recorder = ComparingRecorder(events)
    evidence.expect(evidence.rows([evidence.training]))
    return _compared(
        evidence, "train", recorder, events, lambda: train(run_of(evidence, recorder))
    )


def evaluation_again(evidence: Evidence) -> Check | None:
    """Measure the skills of every evaluation again on recorded facts alone."""
    return evidence.each_evaluation(lambda report: _again(evidence, report))


def _again(evidence: Evidence, report: LogReport) -> Check:
    events = report.events
    if evidence.erased_from(report):
        return Check(0, len(events), ERASED_FROM)
    if not events or events[0].type != OPENED:
        raise FaultError(report.name, "the log has no beginning")
    recorder = ComparingRecorder(events, evidence.training.last)
    evidence.expect(evidence.rows([report]))
    return _compared(
        evidence,
        "evaluate",
        recorder,
        events,
        lambda: _measured(evidence, recorder, events),
        unfinished=report is not evidence.evaluation,
    )


async def _measured(
    evidence: Evidence, recorder: ComparingRecorder, events: Sequence[Event]
) -> None:
    """Open again what was opened: the pipeline's on all targets of params, one that a person
    asked for on those it names."""
    e, rule, opened = evidence, gate_rule(evidence.params), events[0].read(TestOpened)
    env = labelled(e.env, e.started.agent["version"])
    split, before = opened.split, opened.opened_before
    gaps = gaps_of(e, evaluated=True)
    skills, items = skills_asked(e, opened), items_of(e.place.workspace, split)
    home = rollouts_of(e, env, target_of(e.params, opened.target), gaps)
    rolled = await measure(home, rule, items, skills, recorder, split, before)
    models = {said.target: said.model for said in read_all(events, SkillTransferred)}
    roles = e.params.evaluate.roles
    if unknown := sorted(models.keys() - roles.keys()):
        raise FaultError(f"target {unknown[0]}", "params here do not know it")
    for name in roles if before is None else models:
        there = rollouts_of(e, env, RefusingModel(name, roles[name], models.get(name)), gaps)
        await transfer(name, there, rule, rolled, skills, recorder, split)


def skills_asked(evidence: Evidence, opened: TestOpened) -> list[NamedSkill]:
    """Return the skills that params ask for; where a person did, those that were opened."""
    e = evidence
    if opened.opened_before is not None:
        return [_skill(e, skill) for skill in opened.skills]
    named = [named_skill(e.place.workspace, name) for name in e.params.evaluate.skills]
    return named if named else skills_of(e.training.events)


def _skill(evidence: Evidence, skill: SkillNamed) -> NamedSkill:
    """Return a skill that was measured, by the name that it was measured under."""
    name, training = skill.name, evidence.training.events
    if name in FROM_THE_LOG:
        found = NamedSkill(name, version_of(training, name).text)
    else:
        found = named_skill(evidence.place.workspace, name)
    if text_digest(found.text) != skill.digest:
        raise FaultError(f"skill {name}", "its text is another one by now")
    return found


def _compared(
    evidence: Evidence,
    stage: str,
    recorder: ComparingRecorder,
    events: Sequence[Event],
    tell: Callable[[], Awaitable[Any]],
    unfinished: bool = False,
) -> Check:
    """Hold what `tell` comes to against `events`; `unfinished`: they may end early."""
    of, facts = len(events), evidence.facts
    facts.lacks = False

    async def told() -> None:
        await tell()

    try:
        asyncio.run(told())
    except EventMismatch as found:
        done = len(recorder.events)
        if facts.lacks:
            return Check(done, of, "a call is not recorded")
        if found.stands is None and (unfinished or evidence.allow_unfinished):
            return Check(done, of)
        if done == 0:
            return Check(0, of, "the run would start otherwise here")
        if found.other_tags:
            by = f"event {found.told.seq} was decided by {found.other_tags}"
            return Check(done, of, by)
        check = evidence.held(stage, of, [_fault(found)])
        return check if check.faults else Check(done, of, check.note)
    except UnseenRequest as error:
        return Check(len(recorder.events), of, error.found)
    except SkilltrailError as error:
        return Check(len(recorder.events), of, str(error))
    except BROKEN as error:
        done = len(recorder.events)
        note = f"a recorded call is damaged ({type(error).__name__}: {error})"
        return Check(done, of, note)
    if len(recorder.events) < of:
        extra = events[len(recorder.events)]
        return evidence.held(
            stage, of, [Fault.of(extra, "event", extra.type, "the end", Level.FACTS)]
        )
    return Check(of, of)


def _fault(found: EventMismatch) -> Fault:
    told, stands = found.told, found.stands
    line = "the end of the log" if stands is None else stands.line.decode()
    if stands is not None and stands.type == told.type:  # any type: the first field amiss
        names = [n for n, value in told.data.items() if stands.data.get(n) != value]
        if names:
            what, right = names[0], told.data[names[0]]
            return Fault.of(stands, what, stands.data.get(what), right, Level.FACTS)
    return Fault(told.seq, told.type, "event", line, told.line.decode(), Level.FACTS)

"""All runs as one tree: where each forked from which, and what differed there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skilltrail.core.errors import FaultError
from skilltrail.core.layout import EVENTS
from skilltrail.history.ask.differences import in_words, shared_prefix
from skilltrail.history.ask.evaluations import Evaluation, openings
from skilltrail.history.ask.sources import Project, live_logs
from skilltrail.history.log.consumed import CONSUMED_IN, consumed_items, consumed_params
from skilltrail.history.log.erasure import end_of
from skilltrail.history.log.events import Event, Unreadable
from skilltrail.history.log.log import read_whole
from skilltrail.history.log.run_log import RunLog
from skilltrail.history.log.types import GateJudged, RunStarted, SkillVersioned, StepEnded
from skilltrail.history.log.types.parts import StepResult

Runs = dict[str, list[Event]]
HEAVY = ("rollouts.scored", "patch.proposed", "patch.merged")


@dataclass(frozen=True)
class RunRow:
    """One run.

    Attributes:
        forked_from: the run it shares most events with, of those above it; None = a root.
        shared: how many events they share.
        differs: the first difference, in words.
        parent: (run, version) that its seed skill was taken from by `fork`, where known.
        seed_score, best_score: gate metric on selection.
        steps: those that ended; of them `accepted` and `rejected` did so. What comes at the end
            of an epoch is no step.
        openings: how often the test split was opened for it, as far as that is at hand.
    """

    name: str
    events: int
    finished: bool
    forked_from: str | None
    shared: int
    differs: str
    parent: tuple[str, int] | None
    versions: int
    best_version: int | None
    seed_score: float | None
    best_score: float | None
    steps: int
    accepted: int
    rejected: int
    params: Mapping[str, Any]
    openings: int = 0


def runs_at_hand(project: Project) -> tuple[Runs, list[FaultError]]:
    """Return the training events of every run: of refs/evolution, and of logs that no ref
    holds; and what of them is damaged, which is left out."""
    faults: list[FaultError] = []
    found = _in_git(project, faults)
    held = {event.id for events in found.values() for event in events}
    here = project.workspace / EVENTS
    for path in [*([here] if here.exists() else []), *live_logs(project)]:
        name = "workspace" if path == here else path.parent.name
        read = read_whole(path)
        if read.torn is not None and not read.unfinished:
            faults.append(FaultError(f"{name}: {read.torn.asked}", read.torn.found))
        if read.events and read.events[-1].id not in held:
            found[name] = read.events
            held |= {event.id for event in read.events}
    for name in found:
        found[name] = _readable(name, found[name], faults)
    return {name: events for name, events in found.items() if events}, faults


def _in_git(project: Project, faults: list[FaultError]) -> Runs:
    from skilltrail.history.git.branches import branch_of, run_tips
    from skilltrail.history.git.repository import Git, GitError

    found: Runs = {}
    door = Git.find(project.root)
    for name, tip in [] if door is None else run_tips(door):
        assert door is not None
        try:
            found[name] = branch_of(door, tip).training
        except (FaultError, GitError) as error:
            faults.append(FaultError(f"{name}: {error.asked}", error.found))
    return found


def _readable(name: str, events: list[Event], faults: list[FaultError]) -> list[Event]:
    """Return `events` up to the first that a row of the tree could not be made of."""
    rollouts = 0
    for at, event in enumerate(events):
        rollouts += event.type == "rollouts.scored"
        if event.type in HEAVY and rollouts > CONSUMED_IN:
            continue  # most of a log, and no row is made of them
        try:
            _ = event.data
        except Unreadable as error:
            faults.append(FaultError(f"{name}: {error.asked}", error.found))
            return events[:at]
    return events


def run_tree(
    runs: Mapping[str, Sequence[Event]],
    trunk: str = "main",
    evaluations: Sequence[Evaluation] = (),
) -> list[RunRow]:
    """Return a row per run, a run after the one it forked from; `trunk` comes first."""
    names = sorted(runs, key=lambda name: (name != trunk, natural(name)))
    births = {
        event.id: (name, event.read(SkillVersioned).version)
        for name in names
        for event in runs[name]
        if event.type == "skill.versioned"
    }
    rows: list[RunRow] = []
    for at, name in enumerate(names):
        nearest, shared = None, 0
        for other in names[:at]:
            both = shared_prefix(runs[name], runs[other])
            if both > shared:
                nearest, shared = other, both
        differs = ""
        if nearest is not None:
            differs = in_words(_at(runs[nearest], shared), _at(runs[name], shared))
        row = _row(name, runs[name], nearest, shared, differs, births)
        rows.append(replace(row, openings=openings(evaluations, runs[name][-1].id).run))
    return rows


def differing_params(rows: Sequence[RunRow]) -> list[str]:
    """Return the names of params that are not the same in all runs."""
    names = sorted({name for row in rows for name in row.params})
    return [name for name in names if len({str(row.params.get(name)) for row in rows}) > 1]


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key that puts `run-2` before `run-10`."""
    parts = re.split(r"([0-9]+)", name)
    return [(1, int(p), "") if p.isascii() and p.isdigit() else (0, 0, p) for p in parts]


def _at(events: Sequence[Event], index: int) -> Event | None:
    return events[index] if index < len(events) else None


def _row(
    name: str,
    events: Sequence[Event],
    nearest: str | None,
    shared: int,
    differs: str,
    births: Mapping[str, tuple[str, int]],
) -> RunRow:
    log = RunLog(events)
    ended = [said.result for said in log.told(StepEnded)]
    versioned = log.told(SkillVersioned)
    best = [said.version for said in versioned if said.best]
    parent = log.start.read(RunStarted).parent
    seed, high = scores_of(log)
    return RunRow(
        name=name,
        events=len(events),
        finished=end_of(events) is not None,
        forked_from=nearest,
        shared=shared,
        differs=differs,
        parent=None if parent is None else births.get(parent, (parent[:12], -1)),
        versions=len(versioned),
        best_version=best[-1] if best else None,
        seed_score=seed,
        best_score=high,
        steps=len(ended),
        accepted=ended.count(StepResult.ACCEPTED),
        rejected=ended.count(StepResult.REJECTED),
        params=consumed_params(events) | consumed_items(events),
    )


def scores_of(log: RunLog) -> tuple[float | None, float | None]:
    """Return the gate metric of the seed and of the best skill, None where not measured."""
    gates = log.told(GateJudged)
    return (gates[0].before, [*log.best_means.values()][-1]) if gates else (None, None)

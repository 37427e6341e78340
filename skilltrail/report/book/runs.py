"""Runs side by side: the tree of forks, the curves, the params that their events carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skilltrail.history.ask.arena import run_by_calls
from skilltrail.history.ask.evaluations import held_out
from skilltrail.history.ask.runs import run_tree
from skilltrail.history.ask.sources import Project
from skilltrail.history.log.events import Event
from skilltrail.report.book.summary import headline, rows_of
from skilltrail.report.notes import Noted, notes_of


@dataclass(frozen=True)
class Beside:
    """What is known of runs beside their logs, by name.

    Attributes:
        gains: of the best skill on held-out items, and how many those are.
        noted: tags and notes.
        pages: where a run's own page is, on the live page.
    """

    gains: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    noted: Mapping[str, Noted] = field(default_factory=dict)
    pages: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def read(project: Project, state: Path, runs: Mapping[str, Sequence[Event]]) -> Beside:
        """Read what is at hand of `runs`; `state` is the project's `.skilltrail`."""
        tests = held_out(project)
        ends = {name: tests.get(events[-1].id) for name, events in runs.items() if events}
        gains = {n: (t.gain, len(t.best)) for n, t in ends.items() if t is not None}
        return Beside(gains, notes_of(state / "ops.jsonl", runs))


def run_rows(
    runs: Mapping[str, Sequence[Event]], beside: Beside | None = None
) -> list[dict[str, Any]]:
    """Return a row per run, in the order of `skilltrail.history.ask.runs.run_tree`.

    `fork` names the run that it shares its first `at` events with, `curve` is the best score
    after each step, from the seed's on; `calls` are the target calls spent, and `anytime` is
    (calls, best selection score) at each accepted skill, as `skilltrail arena` has them. Logs
    of fewer than two events are passed over.
    """
    beside = Beside() if beside is None else beside
    begun = {name: events for name, events in runs.items() if len(events) > 1}
    rows = []
    for row in run_tree(begun):
        events = begun[row.name]
        numbers, steps = headline(events, ()), rows_of(events)
        means, course = numbers["selection"], run_by_calls(events)
        rows.append(
            {
                "name": row.name,
                "id": events[-1].id[:12],
                "fork": row.forked_from,
                "at": row.shared,
                "differs": row.differs,
                "parent": None if row.parent is None else f"{row.parent[0]}:v{row.parent[1]}",
                "finished": row.finished,
                "steps": numbers["steps"],
                "accepted": numbers["accepted"],
                "tokens": numbers["skill_tokens"],
                "seed": means["seed"],
                "best": means["best"],
                "test": beside.gains.get(row.name),
                "tags": beside.noted.get(row.name, Noted()).tags,
                "notes": beside.noted.get(row.name, Noted()).notes,
                "page": beside.pages.get(row.name),
                "params": dict(row.params),
                "curve": [means["seed"], *(step["best"] for step in steps)],
                "calls": course.spent,
                "anytime": [[point.calls, point.mean] for point in course.points],
            }
        )
    return rows

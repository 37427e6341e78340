"""Runs side by side: the tree of forks, the curves, the params that their events carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skilltrail.history.ask.runs import run_tree
from skilltrail.history.log.events import Event
from skilltrail.report.book.summary import headline, rows_of


def run_rows(runs: Mapping[str, Sequence[Event]]) -> list[dict[str, Any]]:
    """Return a row per run, in the order of `skilltrail.history.ask.runs.run_tree`.

    `fork` names the run that it shares its first `at` events with, `curve` is the best score
    after each step, from the seed's on. Logs of fewer than two events are passed over.
    """
    begun = {name: events for name, events in runs.items() if len(events) > 1}
    rows = []
    for row in run_tree(begun):
        events = begun[row.name]
        numbers, steps = headline(events, ()), rows_of(events)
        means = numbers["selection"]
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
                "params": dict(row.params),
                "curve": [means["seed"], *(step["best"] for step in steps)],
            }
        )
    return rows

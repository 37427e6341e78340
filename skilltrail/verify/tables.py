"""Rule at level *facts*: what evaluations say by task type and in an environment's own metrics.

Rows hold neither: types are those of the frozen items, further metrics are taken from recorded
trajectories. So it holds where an evaluation cannot be run again, as under an older tag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from skilltrail.core.item import Item
from skilltrail.core.score import Outcome
from skilltrail.core.stats import GAIN_INTERVALS
from skilltrail.core.targets import Target
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.protocol import Environment
from skilltrail.envs.scoring import metric_rows
from skilltrail.history.log import types
from skilltrail.history.log.events import Event
from skilltrail.history.log.types.parts import RowScored
from skilltrail.verify.evidence import Evidence
from skilltrail.verify.log import LogReport
from skilltrail.verify.result import Check, Level, differing, together
from skilltrail.verify.rules.evaluations import gain_of, means_of, values_of

Rows = Sequence[RowScored]


def tables(evidence: Evidence) -> Check | None:
    """Means by task type follow from rows and items, further metrics from trajectories."""
    return evidence.each_evaluation(lambda report: _tables(evidence, report))


def _tables(evidence: Evidence, report: LogReport) -> Check:
    e, checks = evidence, [Check(0, 0)]
    items: dict[str, Item] = {}
    rows: dict[tuple[str | None, str | None], Rows] = {}
    for event in report.events:
        said = event.said
        if isinstance(said, types.TestOpened):
            listed = {row.item: e.items.get(row.digest) for row in said.items}
            items = {id: item for id, item in listed.items() if item is not None}
        elif isinstance(said, types.RolloutsScored):
            rows[said.skill, said.target] = said.items
        elif isinstance(said, types.SkillEvaluated):
            there = said.target if isinstance(said, types.SkillTransferred) else None
            several = report.state.targets if there is None else ()
            own, first = rows[said.skill, there], rows.get((said.against, there), ())
            if any(row.item not in items for row in own):
                checks.append(Check(0, 2, "items are not here as the log names them"))
                continue
            checks.append(_types(event, said, items, (first, own), several))
            checks.append(_metrics(e, event, items, own, e.erased_from(report).facts))
    return together(checks)


def _types(
    event: Event,
    said: types.SkillEvaluated,
    items: Mapping[str, Item],
    rows: tuple[Rows, Rows],
    several: Sequence[Target],
) -> Check:
    """Check n, means and gain of each task type, which stand in alphabetical order.

    Args:
        rows: those of the skill that it is paired with, and its own.
    """
    if said.interval not in GAIN_INTERVALS:
        return Check(0, 1, f"decided by {said.interval}")
    right: list[dict[str, Any]] = []
    for kind in sorted({t for row in rows[1] if (t := items[row.item].task_type) is not None}):
        first, own = ([r for r in some if items[r.item].task_type == kind] for some in rows)
        means = means_of(own)
        right.append(
            {
                "task_type": kind,
                "n": sum(row.outcome is Outcome.SCORED for row in own),
                "hard": means["mean_hard"],
                "soft": means["mean_soft"],
                **gain_of(values_of(first, said), values_of(own, said), several, said.interval),
            }
        )
    return Check(1, 1, "", tuple(differing(event, {"task_types": right}, Level.FACTS)))


def _metrics(
    evidence: Evidence,
    event: Event,
    items: Mapping[str, Item],
    rows: Rows,
    erased: frozenset[str],
) -> Check:
    """Check the means of the environment's further metrics."""
    e, done = evidence, list[tuple[Item, Trajectory]]()
    if type(e.env).metrics is not Environment.metrics:
        for row in (row for row in rows if row.outcome is not Outcome.MISSING):
            fact = None if row.key in erased else e.facts.get(str(row.key))
            if fact is None:
                return Check(0, 1, "rollouts are not recorded here")
            item = replace(items[row.item], target=row.target)
            done.append((item, Trajectory.from_json(fact["trajectory"])))
    right = {"metrics": metric_rows(e.env, done) or None}
    return Check(1, 1, "", tuple(differing(event, right, Level.FACTS)))

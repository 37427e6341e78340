"""The headline numbers of a run that may still be going on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from skilltrail.history.log.erasure import end_of
from skilltrail.history.log.events import Event, read_all
from skilltrail.history.log.types.outcomes import GateJudged, SkillVersioned
from skilltrail.history.log.types.parts import Source
from skilltrail.report.tables import baseline_mean, curve, metrics


def headline(training: Sequence[Event], evaluation: Sequence[Event]) -> dict[str, Any]:
    """Return what `report.tables.metrics` returns; of an unfinished run, what is known yet."""
    if end_of(training) is not None:
        return metrics(training, evaluation)
    rows = rows_of(training)
    ended = Counter(row["verdict"] for row in rows)
    baseline = baseline_mean(training)
    best = next((row["best"] for row in reversed(rows) if row["best"] is not None), baseline)
    versions = list(read_all(training, SkillVersioned))
    return {
        "selection": {"seed": baseline, "best": best},
        "steps": len(rows),
        "skill_tokens": versions[-1].tokens if versions else 0,
    } | {name: ended[name] for name in ("accepted", "rejected", "indecisive")}


def rows_of(training: Sequence[Event]) -> list[dict[str, Any]]:
    """Return the curve's rows; none while the log is shorter than its first step."""
    return curve(training) if len(training) > 1 else []


def points_of(training: Sequence[Event]) -> list[dict[str, Any]]:
    """Return the curve's rows with what the gate said beside: what a chart draws."""
    judged = read_all(training, GateJudged)
    gates = {said.step: said for said in judged if said.source is Source.STEP}
    names = ("after_max", "judged", "total", "saved", "forced", "metric")
    return [
        row | {name: getattr(gates.get(row["step"]), name, None) for name in names}
        for row in rows_of(training)
    ]

"""Checks on an evaluation: means and paired gains follow from the rows before them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from stages.core.score import exact_mean, metric
from stages.core.stats import gain_interval
from stages.history.course import Course
from stages.history.events import Event
from stages.history.faults import Fault
from stages.history.verify import Report, check
from stages.recheck.rollouts import differing, mean
from stages.recheck.verdicts import score_of

INTERVAL = "adjusted_wald/1"


@check("skill.evaluated")
def check_evaluation(event: Event, course: Course, report: Report) -> Iterator[Fault]:
    data = event.data
    rows = _rows(course, data["skill"])
    if rows is None:
        yield Fault.of(event, "skill", data["skill"], "a skill rolled out before")
        return
    coverage = {"scored": sum(r["outcome"] == "scored" for r in rows), "asked": len(rows)}
    yield from differing(
        event,
        {
            "coverage": coverage,
            "mean_hard": mean(rows, "hard"),
            "mean_soft": mean(rows, "soft"),
        },
    )
    values = {row["item"]: _value(row, data) for row in rows}
    total = exact_mean(values.values())
    yield from differing(event, {"mean": None if total is None else float(total)})
    if data["against"] is None or not report.knows(data["interval"], INTERVAL):
        return
    first = {row["item"]: _value(row, data) for row in _rows(course, data["against"]) or []}
    pairs = [(v, first.get(item)) for item, v in values.items()]
    differences = [v - w for v, w in pairs if v is not None and w is not None]
    if differences:
        low, high = gain_interval(differences)
        gain = float(sum(differences, Fraction(0)) / len(differences))
        yield from differing(event, {"gain": gain, "gain_low": low, "gain_high": high})


def _rows(course: Course, digest: str) -> list[dict[str, Any]] | None:
    for event in reversed(course.seen):
        if event.type == "rollouts.scored" and event.data["skill"] == digest:
            rows: list[dict[str, Any]] = event.data["items"]
            return rows
    return None


def _value(row: Mapping[str, Any], data: Mapping[str, Any]) -> Fraction | None:
    return metric(score_of(row), data["metric"], data.get("mixed_weight", 0.5))

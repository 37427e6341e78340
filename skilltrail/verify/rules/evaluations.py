"""Checks on an evaluation: means and paired gains follow from the rows before them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from skilltrail.core.score import exact_mean, metric
from skilltrail.core.share import share_of
from skilltrail.core.stats import GAIN_INTERVALS, SHARE_INTERVALS, gain_interval
from skilltrail.history.log.course import Course
from skilltrail.history.log.events import Event
from skilltrail.verify.faults import Fault
from skilltrail.verify.levels import Report, check
from skilltrail.verify.rules.rollouts import differing, mean
from skilltrail.verify.rules.verdicts import score_of


@check("skill.evaluated", "skill.transferred")
def check_evaluation(event: Event, course: Course, report: Report) -> Iterator[Fault]:
    """Check means and gain of a skill, on the target trained on or on another."""
    data = event.data
    target = data.get("target")
    rows = _rows(course, data["skill"], target)
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
    if data["against"] is None or not report.knows(data["interval"], *GAIN_INTERVALS):
        return
    first = {
        row["item"]: _value(row, data) for row in _rows(course, data["against"], target) or []
    }
    pairs = [(v, first.get(item)) for item, v in values.items()]
    differences = [v - w for v, w in pairs if v is not None and w is not None]
    if differences:
        low, high = gain_interval(differences, data["interval"])
        gain = float(sum(differences, Fraction(0)) / len(differences))
        yield from differing(event, {"gain": gain, "gain_low": low, "gain_high": high})


@check("skill.transferred")
def check_share(event: Event, course: Course, report: Report) -> Iterator[Fault]:
    """Check the share of the gain that carries over to another target."""
    data = event.data
    if not report.knows(data["share_interval"], *SHARE_INTERVALS):
        return
    seed = data["skill"] if data["against"] is None else data["against"]
    wanted = [(seed, None), (data["skill"], None), (seed, data["target"]),
              (data["skill"], data["target"])]  # fmt: skip
    found = [_rows(course, digest, target) for digest, target in wanted]
    known = [rows for rows in found if rows is not None]
    orders = {tuple(row["item"] for row in rows) for rows in known}
    if len(known) < len(wanted) or len(orders) > 1:
        yield Fault.of(event, "target", data["target"], "the same items on both targets")
        return
    values = [[_value(row, data) for row in rows] for rows in known]
    yield from differing(event, share_of(*values, tag=data["share_interval"]))


def _rows(course: Course, digest: str, target: str | None) -> list[dict[str, Any]] | None:
    """Return the last rows of a skill on a target; None is the one trained on."""
    for event in reversed(course.seen):
        scored = event.type == "rollouts.scored" and event.data["skill"] == digest
        if scored and event.data.get("target") == target:
            rows: list[dict[str, Any]] = event.data["items"]
            return rows
    return None


def _value(row: Mapping[str, Any], data: Mapping[str, Any]) -> Fraction | None:
    return metric(score_of(row), data["metric"], data.get("mixed_weight", 0.5))

"""Rows of scored rollouts, grouped by item, and the scores that they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from msgspec.structs import astuple

from skilltrail.core.score import Cost, Outcome, Score, exact_mean, mean_score, metric
from skilltrail.core.targets import case_of
from skilltrail.history.log.types.parts import RowScored


def by_item(rows: Iterable[RowScored]) -> dict[str, list[RowScored]]:
    """Return the rows of each item (on each target), in order of first mention."""
    found: dict[str, list[RowScored]] = {}
    for row in rows:
        found.setdefault(case_of(row), []).append(row)
    return found


def scores_of(rows: Iterable[RowScored]) -> dict[str, Score]:
    """Return one score per item: its row's, or the mean over its repeats."""
    return {
        id: mean_score([score_of(row) for row in some]) for id, some in by_item(rows).items()
    }


def score_of(row: RowScored) -> Score:
    """Return a row's score; one that contradicts itself (`verify` says so) is missing."""
    if row.outcome is not Outcome.SCORED:
        return Score(row.outcome, reason=row.reason)
    if row.hard is None or row.soft is None:
        return Score.missing(row.reason)
    score = _scored(row.hard, row.soft, row.reason)
    return score if row.cost is None else replace(score, cost=Cost(*astuple(row.cost)))


@lru_cache(maxsize=1 << 12)  # most rows of a log are like many others
def _scored(hard: float, soft: float, reason: str) -> Score:
    return Score.scored(hard, soft, reason)


def means_of(
    rows: Mapping[str, Sequence[RowScored]], name: str, mixed_weight: float | None = None
) -> dict[str, Fraction | None]:
    """Return each item's mean over its rows in a metric; None where none is scored."""
    weight = 0.5 if mixed_weight is None else mixed_weight
    return {
        item: exact_mean(metric(score_of(row), name, weight) for row in some)
        for item, some in rows.items()
    }

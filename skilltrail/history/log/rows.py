"""Rows of scored rollouts, grouped by item, and the scores that they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from skilltrail.core.score import Cost, Outcome, Score, mean_score
from skilltrail.core.targets import case_of

Row = Mapping[str, Any]


def by_item(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of each item (on each target), in order of first mention."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(case_of(row), []).append(row)
    return found


def scores_of(rows: Iterable[Row]) -> dict[str, Score]:
    """Return one score per item: its row's, or the mean over its repeats."""
    return {
        id: mean_score([score_of(row) for row in some]) for id, some in by_item(rows).items()
    }


def score_of(row: Row) -> Score:
    """Return a row's score; one that contradicts itself (`verify` says so) is missing."""
    outcome, hard, soft = Outcome(row["outcome"]), row["hard"], row["soft"]
    if outcome is not Outcome.SCORED:
        return Score(outcome, reason=row["reason"])
    if hard is None or soft is None:
        return Score.missing(row["reason"])
    cost = row.get("cost")
    score = Score.scored(hard, soft, row["reason"])
    return score if cost is None else replace(score, cost=Cost(**cost))

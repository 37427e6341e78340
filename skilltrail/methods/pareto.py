"""The per-item Pareto front of a pool, and the lots by which parents are drawn from it.

Source: GEPA (arXiv 2507.19457), algorithm 2, and the public package `gepa`. A member is on the
front of an item when none scores higher there. Members that others cover on every item where
they are best are taken out, the lowest mean first; each that is left has as many lots as items
on whose front it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from skilltrail.core.score import Score
from skilltrail.method.gate import GateRule

Scores = Mapping[str, Fraction]  # by item


def values_of(rule: GateRule, scores: Mapping[str, Score]) -> Scores:
    """Return the gate metric of each item that has one."""
    found = {item: rule.value(score) for item, score in scores.items()}
    return {item: value for item, value in found.items() if value is not None}


def lots(members: Sequence[Scores]) -> dict[int, int]:
    """Return the lots of each member (by its place) that is left on the front.

    In the order in which members first stand on a front, items in the first member's order.
    """
    fronts = fronts_of(members)
    left = {place: None for front in fronts for place in front}
    by_mean = sorted(left, key=lambda place: sum(members[place].values(), Fraction(0)))
    while (out := _first_covered(by_mean, left, fronts)) is not None:
        del left[out]
    counts: dict[int, int] = {}
    for front in fronts:
        for place in front:
            if place in left:
                counts[place] = counts.get(place, 0) + 1
    return counts


def fronts_of(members: Sequence[Scores]) -> list[list[int]]:
    """Return the places of the best members of each item, in order."""
    fronts = []
    for item in members[0]:
        values = [scores.get(item, Fraction(-1)) for scores in members]
        best = max(values)
        fronts.append([place for place, value in enumerate(values) if value == best])
    return fronts


def _first_covered(
    order: Sequence[int], left: Mapping[int, None], fronts: Sequence[Sequence[int]]
) -> int | None:
    """Return the first member that shares every front it is on with another that is left."""
    for place in order:
        own = [front for front in fronts if place in front]
        shared = (any(other in left and other != place for other in front) for front in own)
        if place in left and all(shared):
            return place
    return None

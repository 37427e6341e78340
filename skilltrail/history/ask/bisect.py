"""Bisect a run over one item: which version of the skill first broke it, or fixed it.

Selection items were scored under every version, so the log answers. Any other item is rolled
out where it must be: first under the first and the last version, then halving between them.
Recorded rollouts are reused; only what is missing is made.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from skilltrail.core.errors import UsageError
from skilltrail.history.log.replay import Version
from skilltrail.history.log.run_log import RunLog


@dataclass(frozen=True)
class Tested:
    """The item's score under one version; `recorded` when the log held it."""

    version: int
    hard: float | None
    soft: float | None
    recorded: bool


@dataclass(frozen=True)
class BisectResult:
    """What a bisection found.

    Attributes:
        change: `broke`, `fixed`, or `none` when both ends score the same.
        version: the first version that changed the item that way, where the log holds all
            scores; else one that scores as the last does while the one before does not.
        turns: every version at which the item's score changed, where all are recorded.
    """

    item: str
    change: str
    version: int | None
    patch: str | None
    tested: tuple[Tested, ...]
    turns: tuple[int, ...]


Scores = tuple[float | None, float | None]  # hard and soft
Measure = Callable[[Version], Awaitable[Scores]]


async def bisect(
    log: RunLog,
    item: str,
    measure: Measure | None,
    *,
    good: int | None = None,
    bad: int | None = None,
) -> BisectResult:
    """Find the version at which `item` changed between `good` (default 0) and `bad` (last).

    Args:
        measure: returns (hard, soft) of the item under a version; None when it cannot be
            rolled out here.

    Raises:
        UsageError: the log has too few versions, or does not know the item and `measure` is
            None.
    """
    versions, recorded = log.versions, recorded_scores(log, item)
    low, high = _ends(len(versions), good, bad)
    if measure is None and len(recorded) < len(versions):
        raise _unknown(item)
    tested: dict[int, Tested] = {}

    async def score(number: int) -> Scores:
        if number in recorded:
            tested[number] = recorded[number]
        elif number not in tested:
            assert measure is not None
            tested[number] = Tested(number, *await measure(versions[number]), False)
        return tested[number].hard, tested[number].soft

    first, last = await score(low), await score(high)
    change = change_of(first, last)
    version: int | None = None
    turns: tuple[int, ...] = ()
    if len(recorded) == len(versions):
        turns = turns_of(recorded, low, high)
        version = next((n for n in turns if _same_way(change, recorded, n)), None)
    elif change != "none":
        version = await _turn(low, high, last, score)
    return BisectResult(
        item,
        change,
        version,
        None if version is None else versions[version].said.patch,
        tuple(tested[number] for number in sorted(tested)),
        turns,
    )


def _unknown(item: str) -> UsageError:
    return UsageError(
        f"item {item!r}",
        "the log does not hold its score under every version",
        "Name an item of the selection split, or run where the item can be rolled out",
    )


def _ends(count: int, good: int | None, bad: int | None) -> tuple[int, int]:
    """Return the versions to look between, of so many.

    Raises:
        UsageError: they are none, or in the wrong order.
    """
    low, high = 0 if good is None else good, count - 1 if bad is None else bad
    if not 0 <= low < high < count:
        raise UsageError(
            f"bisect between v{low} and v{high}",
            f"the log holds v0 to v{count - 1}",
            "Name an earlier and a later version",
        )
    return low, high


async def _turn(
    low: int,
    high: int,
    last: Scores,
    score: Callable[[int], Awaitable[Scores]],
) -> int:
    """Return a version that scores as the last one while the version before it does not."""
    while high - low > 1:
        middle = (low + high) // 2
        if await score(middle) == last:
            high = middle
        else:
            low = middle
    return high


def change_of(first: Scores, last: Scores) -> str:
    """Return `fixed`, `broke`, `none`, or `missing` when an end was not measured."""
    if first == last:
        return "none"
    before, after = [v for v in first if v is not None], [v for v in last if v is not None]
    if len(before) < len(first) or len(after) < len(last):
        return "missing"
    return "fixed" if after > before else "broke"


def _same_way(change: str, scores: dict[int, Tested], number: int) -> bool:
    """True when version `number` changed the item in the direction of `change`."""
    one, two = scores[number - 1], scores[number]
    return change_of((one.hard, one.soft), (two.hard, two.soft)) == change


def recorded_scores(log: RunLog, item: str) -> dict[int, Tested]:
    """Return the item's score under each version that the log holds it for."""
    found = {}
    for version in log.versions:
        rows = log.scores(version.digest).get(item)
        if rows is None:
            continue
        hard = [row.hard for row in rows if row.hard is not None]
        soft = [row.soft for row in rows if row.soft is not None]
        found[version.number] = Tested(
            version.number,
            sum(hard) / len(hard) if hard else None,
            sum(soft) / len(soft) if soft else None,
            True,
        )
    return found


def turns_of(scores: dict[int, Tested], low: int, high: int) -> tuple[int, ...]:
    """Return the versions in (low, high] whose score differs from the version before."""
    return tuple(
        number
        for number in range(low + 1, high + 1)
        if (scores[number].hard, scores[number].soft)
        != (scores[number - 1].hard, scores[number - 1].soft)
    )

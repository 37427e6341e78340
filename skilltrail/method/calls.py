"""The end of a training in target calls (`stop.calls`): exact, whatever the store holds.

A rollout counts once in a run, under its fact key, in the order in which it was asked for: so a
run stops at the same place with an empty store and a full one, and at any concurrency. What was
in flight beyond an early stop of the gate is not asked for and does not count. A rollout counts
as many calls as it has turns. What would go beyond the limit is not begun, or, where only its
turns tell, not used.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing

from skilltrail.core.errors import UsageError
from skilltrail.core.item import Item
from skilltrail.core.trajectory import calls_of
from skilltrail.method.rollout import Rollout, Rollouts


class CallsSpent(UsageError):
    """The training has made as many target calls as `stop.calls` lets it."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"stop.calls: {most}",
            "spent before the seed skill was measured on the selection split",
            "Give it more calls, or 0 for no end",
        )


class LimitedRollouts(Rollouts):
    """Rollouts that end at `most` target calls."""

    def __init__(self, plain: Rollouts, most: int) -> None:
        vars(self).update(vars(plain))
        self.most, self.spent = most, 0
        self._known: set[str] = set()

    async def in_order(
        self, items: Iterable[Item], skill: str, repeats: int = 1
    ) -> AsyncGenerator[Rollout, None]:
        """Yield as `Rollouts` does.

        Raises:
            CallsSpent: after the last one that fits, where more are asked for.
        """
        asked = list(items)
        fits = self._fitting(asked, skill, repeats)
        # Of an item whose repeats do not all fit none is begun: it could not be used.
        async with aclosing(super().in_order(asked[:fits], skill, repeats)) as stream:
            async for rollout in stream:
                self._count(rollout)
                yield rollout
        if fits < len(asked):
            raise CallsSpent(self.most)

    def _fitting(self, items: Sequence[Item], skill: str, repeats: int) -> int:
        """Return how many of the items fit, each rollout taken to be one call."""
        room, new = self.most - self.spent, set[str]()
        for number, item in enumerate(items):
            new |= {self.key(item, skill, n) for n in range(repeats)} - self._known
            if len(new) > room:
                return number
        return len(items)

    def _count(self, rollout: Rollout) -> None:
        if rollout.key in self._known:
            return
        cost = calls_of(rollout.trajectory)
        if self.spent + cost > self.most:
            raise CallsSpent(self.most)
        self._known.add(rollout.key)
        self.spent += cost


def limited(rollouts: Rollouts, most: int) -> Rollouts:
    """Return `rollouts` with a limit; 0 is none."""
    return LimitedRollouts(rollouts, most) if most else rollouts

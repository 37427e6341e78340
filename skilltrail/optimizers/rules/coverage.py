"""Which worked examples teach most: a greedy cover of the failures by examples like them.

A small model does with a new item what the most similar example shows. So an item counts as
covered by the example that shares most of its traits, and the next example is the one that
adds most cover over the failures (facility location; greedy is within 1 - 1/e of the best:
Nemhauser, Wolsey and Fisher, 1978).
"""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

Traits = frozenset[str]

# Successes weigh a little: what already works should stay covered, and decides between equals.
SUCCESS_WEIGHT = 0.2
# The kind of answer, a trait in brackets, tells more than a word of the question.
KIND_FACTOR = 2


class Likeness:
    """How alike two items of a pool are: the shared part of their traits' weight, in [0, 1].

    A trait weighs the more, the fewer items of the pool have it (inverse document frequency:
    Sparck Jones, 1972), so that "what is the" makes no two questions alike. Weights are whole
    numbers: their sums do not depend on the order in which a set gives its members.
    """

    def __init__(self, pool: Collection[Traits]) -> None:
        found = Counter(trait for traits in pool for trait in traits)
        self._weight = {trait: _weight(trait, n, len(pool)) for trait, n in found.items()}

    def __call__(self, one: Traits, other: Traits) -> float:
        shared, of = self._sum(one & other), self._sum(one | other)
        return shared / of if of else 0.0

    def _sum(self, traits: Traits) -> int:
        return sum(self._weight[trait] for trait in traits)


def _weight(trait: str, having: int, of: int) -> int:
    rarity = math.log((of + 1) / (having + 0.5))
    return max(1, round(1000 * rarity)) * (KIND_FACTOR if trait.startswith("<") else 1)


class Cover:
    """How well a growing set of examples covers weighted items."""

    def __init__(self, traits: Mapping[str, Traits], weights: Mapping[str, float]) -> None:
        self._traits, self._likeness = traits, Likeness(traits.values())
        self._weights = weights
        self._best = dict.fromkeys(weights, 0.0)
        self._rows: dict[str, list[float]] = {}

    def _like(self, one: str, other: str) -> float:
        return self._likeness(self._traits[one], self._traits[other])

    def _row(self, id: str) -> list[float]:
        """Return the likeness of `id` to every weighted item, in their order."""
        if id not in self._rows:
            self._rows[id] = [self._like(id, other) for other in self._best]
        return self._rows[id]

    def gain(self, id: str) -> float:
        """Return the weighted cover that an example of this item would add."""
        state = zip(self._row(id), self._best.values(), self._weights.values(), strict=True)
        return sum(weight * (like - best) for like, best, weight in state if like > best)

    def alike(self, id: str, among: Iterable[str]) -> list[str]:
        """Return the items of `among` that would be covered better by an example of `id`."""
        return [o for o in among if self._like(id, o) > self._best.get(o, 0.0)]

    def uncover(self, id: str) -> None:
        """Count `id` as not covered at all, whatever it is like: it was seen to fail."""
        if id in self._best:
            self._best[id] = 0.0

    def add(self, id: str) -> None:
        """Count `id` as an example from now on."""
        for other, like in zip(self._best, self._row(id), strict=True):
            self._best[other] = max(self._best[other], like)


def greedy_order(
    cover: Cover,
    choices: Iterable[str],
    worth: Callable[[str, float], tuple[float, ...]],
    most: int,
) -> list[str]:
    """Return up to `most` of `choices`; `worth(id, gain)` says how good a choice is now.

    Gains only fall as examples are added, and `worth` must not rise when a gain falls. So a
    choice that leads by its present gain leads for good, and few gains are computed anew
    (lazy greedy: Minoux, 1978).
    """
    queue = [(worth(id, cover.gain(id)), id) for id in choices]
    queue.sort()
    order: list[str] = []
    while queue and len(order) < most:
        _, id = queue.pop()
        now = (worth(id, cover.gain(id)), id)
        if queue and now < queue[-1]:
            insort(queue, now)
            continue
        order.append(id)
        cover.add(id)
    return order


def least_missed(
    examples: Sequence[str], cover_of: Callable[[Sequence[str]], float]
) -> list[str]:
    """Return `examples`, first the one whose absence costs least cover; ties: the oldest."""
    cost = {id: -cover_of([o for o in examples if o != id]) for id in examples}
    return sorted(examples, key=lambda id: cost[id])

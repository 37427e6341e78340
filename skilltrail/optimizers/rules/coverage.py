"""Which worked examples teach most: a greedy cover of the failures by examples like them.

A small model does with a new item what the most similar example shows. So an item counts as
covered by the example that shares most of its traits, and the next example is the one that
adds most cover over the failures (facility location; greedy is within 1 - 1/e of the best:
Nemhauser, Wolsey and Fisher, 1978).
"""

from __future__ import annotations

import math
from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Traits = frozenset[str]
Numbers = NDArray[np.float64]

# Successes weigh a little: what already works should stay covered, and decides between equals.
SUCCESS_WEIGHT = 0.2
# The kind of answer, a trait in brackets, tells more than a word of the question.
KIND_FACTOR = 2


class Likeness:
    """How alike the items of a pool are: the shared part of their traits' weight, in [0, 1].

    A trait weighs the more, the fewer items of the pool have it (inverse document frequency:
    Sparck Jones, 1972), so that "what is the" makes no two questions alike. Weights are whole
    numbers: their sums do not depend on the order in which a set gives its members.

    Args:
        pool: item id -> its traits.
    """

    def __init__(self, pool: Mapping[str, Traits]) -> None:
        having: dict[str, list[int]] = defaultdict(list)
        for at, traits in enumerate(pool.values()):
            for trait in traits:
                having[trait].append(at)
        self._having = {trait: np.array(places) for trait, places in having.items()}
        weight = {t: _weight(t, len(ats), len(pool)) for t, ats in having.items()}
        self._weights = {t: np.full(len(ats), float(weight[t])) for t, ats in having.items()}
        sums = [sum(weight[trait] for trait in traits) for traits in pool.values()]
        self._pool, self._sums = pool, np.array(sums, dtype=np.float64)
        self._rows: dict[str, Numbers] = {}
        self.place = {id: at for at, id in enumerate(pool)}

    def row(self, id: str) -> Numbers:
        """Return the likeness of an item to each item of the pool, in the pool's order."""
        if id not in self._rows:
            traits = self._pool[id]
            shared: Numbers = np.zeros(len(self._pool))
            if traits:
                having = np.concatenate([self._having[trait] for trait in traits])
                weights = np.concatenate([self._weights[trait] for trait in traits])
                shared += np.bincount(having, weights, len(self._pool))
            of = self._sums[self.place[id]] + self._sums - shared
            self._rows[id] = np.divide(shared, of, out=np.zeros_like(of), where=of > 0)
        return self._rows[id]

    def covered(self, ids: Iterable[str]) -> float:
        """Return how much of the pool examples of these items cover: at most 1 an item."""
        rows = [self.row(id) for id in ids]
        return in_turn(np.max(rows, axis=0)) if rows else 0.0


def in_turn(terms: Numbers) -> float:
    """Return the sum of terms, added one after the other: the same bits everywhere."""
    return float(np.add.accumulate(terms)[-1]) if len(terms) else 0.0


def _weight(trait: str, having: int, of: int) -> int:
    rarity = math.log((of + 1) / (having + 0.5))
    return max(1, round(1000 * rarity)) * (KIND_FACTOR if trait.startswith("<") else 1)


class Cover:
    """How well a growing set of examples covers weighted items of a pool."""

    def __init__(self, likeness: Likeness, weights: Mapping[str, float]) -> None:
        self._likeness = likeness
        self._weights = np.array(list(weights.values()), dtype=np.float64)
        self._places = np.array([likeness.place[id] for id in weights], dtype=np.intp)
        self._at = {id: at for at, id in enumerate(weights)}
        self._best = np.zeros(len(weights))
        self._rows: dict[str, Numbers] = {}

    def _row(self, id: str) -> Numbers:
        """Return the likeness of `id` to every weighted item, in their order."""
        if id not in self._rows:
            self._rows[id] = self._likeness.row(id)[self._places]
        return self._rows[id]

    def gain(self, id: str) -> float:
        """Return the weighted cover that an example of this item would add."""
        more = self._row(id) - self._best
        np.maximum(more, 0.0, out=more)
        more *= self._weights
        return in_turn(more)

    def alike(self, id: str, among: Iterable[str]) -> list[str]:
        """Return the items of `among` that would be covered better by an example of `id`."""
        better = self._row(id) > self._best
        return [other for other in among if better[self._at[other]]]

    def uncover(self, id: str) -> None:
        """Count `id` as not covered at all, whatever it is like: it was seen to fail."""
        if id in self._at:
            self._best[self._at[id]] = 0.0

    def add(self, id: str) -> None:
        """Count `id` as an example from now on."""
        self._best = np.maximum(self._best, self._row(id))


def greedy_order(
    cover: Cover, choices: Iterable[str], worth: Callable[[str, float], tuple[float, ...]]
) -> Iterator[str]:
    """Yield `choices`, the best first; `worth(id, gain)` says how good a choice is now.

    Gains only fall as examples are added, and `worth` must not rise when a gain falls. So a
    choice that leads by its present gain leads for good, and few gains are computed anew
    (lazy greedy: Minoux, 1978).
    """
    queue = sorted((worth(id, cover.gain(id)), id) for id in choices)
    while queue:
        _, id = queue.pop()
        now = (worth(id, cover.gain(id)), id)
        if queue and now < queue[-1]:
            insort(queue, now)
            continue
        cover.add(id)
        yield id


def least_missed(
    examples: Sequence[str], cover_of: Callable[[Sequence[str]], float]
) -> list[str]:
    """Return `examples`, first the one whose absence costs least cover; ties: the oldest."""
    cost = {id: -cover_of([o for o in examples if o != id]) for id in examples}
    return sorted(examples, key=lambda id: cost[id])

"""Random draws that are functions of what they are for, so that a rerun draws the same.

Each is named by the step and by what it decides; no draw depends on another. A test may put a
class of the same shape in their place, which repeats another program's draws.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from skilltrail.core.order import seeded_order

T = TypeVar("T")


@dataclass(frozen=True)
class Draws:
    """The draws of one run, by its seed."""

    seed: int

    def below(self, n: int, step: int, what: str) -> int:
        """Return a whole number from 0 to n - 1, each with the same chance (to 2^-64)."""
        told = f"{self.seed}\n{step}\n{what}".encode()
        return (int.from_bytes(hashlib.sha256(told).digest()[:16], "big") * n) >> 128

    def order(self, ids: Sequence[str], step: int, what: str) -> list[str]:
        """Return `ids` in a random order."""
        by_name = {f"{what}\n{id}": id for id in ids}
        return [by_name[name] for name in seeded_order(by_name, self.seed, step)]

    def sample(self, ids: Sequence[str], most: int, step: int, what: str) -> list[str]:
        """Return up to `most` of `ids`, in a random order."""
        return self.order(ids, step, what)[: max(0, most)]

    def weighted(self, weights: Sequence[int], step: int, what: str) -> int:
        """Return a place in `weights`, each with the chance that its weight gives."""
        lot = self.below(sum(weights), step, what)
        for place, weight in enumerate(weights):
            lot -= weight
            if lot < 0:
                return place
        raise ValueError("no weight is above 0")

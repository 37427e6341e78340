"""Seeded order that no random generator, file order or platform can change.

Everything that is shuffled is sorted by a digest of seed, epoch and id. Nested subsets follow:
the first N of an order are contained in the first N + 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache


# Asked for at each step of a run, of the same ids.
@lru_cache(maxsize=1 << 16)
def order_key(seed: int, epoch: int, id: str) -> str:
    """Return the sort key of one id in one epoch (64 hex digits)."""
    return hashlib.sha256(f"{seed}\n{epoch}\n{id}".encode()).hexdigest()


def seeded_order(ids: Iterable[str], seed: int, epoch: int = 0) -> list[str]:
    """Return `ids` in the order of this seed and epoch; the input order does not matter."""
    return sorted(ids, key=lambda id: (order_key(seed, epoch, id), id))

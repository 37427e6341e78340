"""What splits of this size can show: the smallest gain whose 95 % interval leaves out 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from skilltrail.core.item import SPLITS
from skilltrail.core.stats import gain_interval

FEW_TRAIN = 20  # below a batch each step sees every failure there is
LARGE_GAIN = 0.2  # a split that shows only larger gains is small


def smallest_gain(n_items: int) -> float:
    """Return the smallest mean gain of `n_items` 0/1 scores that differs from 0 at 95 %.

    Items are only won; each one lost needs another won.
    """
    for won in range(1, n_items + 1):
        rows = [Fraction(1)] * won + [Fraction(0)] * (n_items - won)
        if gain_interval(rows)[0] > 0:
            return won / n_items
    return 1.0


def size_warnings(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence per split that is too small to decide on, with its numbers."""
    if counts["train"] < FEW_TRAIN:
        yield (
            f"train has {counts['train']} items: a batch of 20 holds them all, so every step "
            "learns from the same failures; 60 or more are worth having"
        )
    for split in SPLITS[1:]:
        n = counts[split]
        least = smallest_gain(n)
        if least > LARGE_GAIN:
            yield (
                f"{split} has {n} items: one item moves its mean by {1 / n:.3f}, and the "
                f"smallest gain it could show (95 % interval above 0) is {least:+.2f}, "
                f"{round(least * n)} of {n} items; 60 items show "
                f"{smallest_gain(60):+.2f}, 200 show {smallest_gain(200):+.3f}"
            )

"""Closed-form intervals and exact tests, the same on every CPU.

Sums are exact fractions or `fsum`; no bootstrap, no random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

Z95 = 1.959963984540054  # two-sided 95 % quantile of the normal distribution
_GRID = 10_000  # differences enter the sign-flip test rounded to 1 / _GRID


def mean_interval(mean: float, n: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a mean of `n` values in [0, 1].

    Exact in form for 0/1 values; conservative for others, whose variance is at most that of
    0/1 values with the same mean. Source: Wilson (1927).
    """
    if n == 0:
        return 0.0, 1.0
    z2 = Z95 * Z95
    centre = (mean + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(mean * (1 - mean) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def gain_interval(differences: Sequence[Fraction]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of paired differences in [-1, 1].

    Adjusted Wald interval of Bonett and Price (2012): one win and one loss are added, so that
    it neither collapses when all pairs agree nor needs a table.
    """
    n = len(differences) + 2
    mean = float(sum(differences, Fraction(0)) / n)
    square = float((sum((d * d for d in differences), Fraction(0)) + 2) / n)
    half = Z95 * math.sqrt(max(0.0, square - mean * mean) / n)
    return max(-1.0, mean - half), min(1.0, mean + half)


def share_interval(pairs: Sequence[tuple[Fraction, Fraction]]) -> tuple[float, float] | None:
    """Return the 95 % interval of mean(b) / mean(a) over pairs (a, b) in [-1, 1].

    Fieller's theorem (1954) in closed form. As in `gain_interval` two observations are added
    that leave sums and products alone and add 2 to each sum of squares, so the interval is
    bounded exactly when that of mean(a) does not hold 0; otherwise the result is None, for any
    ratio would fit.
    """
    n = len(pairs) + 2
    a = sum((x for x, _ in pairs), Fraction(0)) / n
    b = sum((y for _, y in pairs), Fraction(0)) / n
    z2 = Fraction(Z95) ** 2 / n
    lead = a * a - z2 * (_mean_of(pairs, 0, 0, n) - a * a)
    if lead <= 0:
        return None
    middle = a * b - z2 * (_mean_of(pairs, 0, 1, n) - a * b)
    rest = b * b - z2 * (_mean_of(pairs, 1, 1, n) - b * b)
    root = math.sqrt(max(Fraction(0), middle * middle - lead * rest))
    return (float(middle) - root) / float(lead), (float(middle) + root) / float(lead)


def _mean_of(pairs: Sequence[tuple[Fraction, Fraction]], i: int, j: int, n: int) -> Fraction:
    """Return the mean product of two columns, the two added observations included."""
    added = 2 if i == j else 0
    return (sum((pair[i] * pair[j] for pair in pairs), Fraction(0)) + added) / n


def sign_flip_p(differences: Sequence[Fraction]) -> float:
    """Return the one-sided p of an exact sign-flip test: P(sum of +-|d| >= sum of d).

    All 2^n sign patterns are counted by convolution over a grid of 1/10000, on which 0/1
    scores lie exactly. No differences at all give p = 1.
    """
    steps = [round(d * _GRID) for d in differences]
    sizes = [abs(step) for step in steps if step]
    if not sizes:
        return 1.0
    unit = math.gcd(*sizes)
    reach = sum(sizes) // unit
    share = np.zeros(2 * reach + 1)  # share[reach + k]: share of the patterns that sum to k
    share[reach] = 1.0
    for size in (size // unit for size in sizes):
        flipped = np.zeros_like(share)
        flipped[size:] += 0.5 * share[:-size]
        flipped[:-size] += 0.5 * share[size:]
        share = flipped
    return math.fsum(share[reach + sum(steps) // unit :])

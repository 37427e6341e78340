"""Closed-form intervals and exact tests, the same on every CPU.

Sums are exact fractions or `fsum`; no bootstrap, no random numbers. Items are the units of
every interval. `benchmarks/bench_intervals.py` measures how often each holds the true value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from skilltrail.core.score import exact_sum

Z95 = 1.959963984540054  # two-sided 95 % quantile of the normal distribution
# The ones in use first: for scores in between, and for 0/1 scores, where /3 is /2 and /2 is /1.
GAIN_INTERVALS = ("adjusted_wald/3", "adjusted_wald/2", "adjusted_wald/1")
SHARE_INTERVALS = ("fieller_adjusted/3", "fieller_adjusted/2", "fieller_adjusted/1")
# Seeds that differ by more than this, over what noise within items explains, are a factor of
# their own. A quarter of samples without any such factor exceed it, at any number of seeds.
_SEEDS_DIFFER = 1.4
_T95 = (
    math.inf,
    12.7062,
    4.3027,
    3.1824,
)  # by degrees of freedom, where the series is too far off
_GRID = 10_000  # differences enter the sign-flip test rounded to 1 / _GRID


def mean_interval(values: Sequence[Fraction]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of values in [0, 1].

    Of 0/1 values the interval of Agresti and Coull (1998): two zeros and two ones are added,
    here with Student's t. Of others both their variance and what is added shrink by the share
    of a 0/1 value's variance that they have, itself estimated with two such values added.
    """
    n = len(values)
    if n == 0:
        return 0.0, 1.0
    mean = float(exact_sum(values) / n)
    most = mean * (1 - mean)
    spread = _squares(float(value) - mean for value in values)
    share = min(1.0, (spread + 2 * most) / ((n + 2) * most)) if most else 1.0
    size = n + 4 * share
    centre = (n * mean + 2 * share) / size
    half = t95(max(n - 1, 1)) * math.sqrt(share * centre * (1 - centre) / size)
    return max(0.0, centre - half), min(1.0, centre + half)


def gain_interval(
    differences: Sequence[Fraction], tag: str = GAIN_INTERVALS[0]
) -> tuple[float, float]:
    """Return the 95 % interval of the mean of paired differences in [-1, 1].

    Adjusted Wald interval of Bonett and Price (2012): one win and one loss are added, so that
    it neither collapses when all pairs agree nor needs a table. They are as large as the
    differences that make up the variance (`_added`); under `adjusted_wald/1` always whole,
    which is the same for 0/1 scores and too wide for others.
    """
    added = _added(differences, tag=tag)
    mean, variance = _adjusted(differences, added)
    half = Z95 * math.sqrt(variance)
    return max(-1.0, mean - half), min(1.0, mean + half)


def crossed_interval(rows: Sequence[Sequence[Fraction]]) -> tuple[float, float]:
    """Return the 95 % interval of the mean difference over items and seeds.

    Seeds are averaged within an item, and items are the units: equal seeds say what one says.
    What is added (see `gain_interval`) shrinks as far as averaging shrinks an item's own
    square. Where seeds differ by more than noise within items explains, their own variance
    comes on top, with Student's t: of a few trainings little is known.

    Args:
        rows: a row per item with a difference per seed; all have the same seeds.
    """
    if all(value == row[0] for row in rows for value in row):
        rows = [row[:1] for row in rows]  # to the last bit
    n, seeds = len(rows), len(rows[0])
    items = [exact_sum(row) / seeds for row in rows]
    singles = [value for row in rows for value in row]
    whole = _squares(map(float, singles)) / seeds
    kept = _squares(map(float, items)) / whole if whole else 1.0
    added = _added(singles, n) * Fraction(min(1.0, max(kept, 1 / seeds)))
    mean, variance = _adjusted(items, added)
    more = 0.0
    if seeds > 1 and n > 1:
        centre = float(exact_sum(items) / n)
        of_seed = [float(exact_sum(column) / n) for column in zip(*rows, strict=True)]
        between = n * _squares(one - centre for one in of_seed) / (seeds - 1)
        rest = _squares(
            float(value) - float(item) - one + centre
            for row, item in zip(rows, items, strict=True)
            for value, one in zip(row, of_seed, strict=True)
        )
        noise = rest / ((n - 1) * (seeds - 1))
        if between > _SEEDS_DIFFER * noise:
            critical = t95(seeds - 1)
            more = critical * critical * (between - noise) / (n * seeds)
    half = math.sqrt(Z95 * Z95 * variance + more)
    return max(-1.0, mean - half), min(1.0, mean + half)


def share_interval(
    pairs: Sequence[tuple[Fraction, Fraction]], tag: str = SHARE_INTERVALS[0]
) -> tuple[float, float] | None:
    """Return the 95 % interval of mean(b) / mean(a) over pairs (a, b) in [-1, 1].

    Fieller's theorem (1954) in closed form. As in `gain_interval` two observations are added
    that leave sums and products alone, so the interval is bounded exactly when that of mean(a)
    does not hold 0; otherwise the result is None, for any ratio would fit.
    """
    n = len(pairs) + 2
    home, there = [x for x, _ in pairs], [y for _, y in pairs]
    a, b = exact_sum(home) / n, exact_sum(there) / n
    aa, bb = (
        (exact_sum(x * x for x in column) + 2 * added) / n
        for column in (home, there)
        for added in [_added(column, tag=tag)]
    )
    ab = exact_sum(x * y for x, y in pairs) / n
    z2 = Fraction(Z95) ** 2 / n
    lead = a * a - z2 * (aa - a * a)
    if lead <= 0:
        return None
    middle = a * b - z2 * (ab - a * b)
    rest = b * b - z2 * (bb - b * b)
    root = math.sqrt(max(Fraction(0), middle * middle - lead * rest))
    return (float(middle) - root) / float(lead), (float(middle) + root) / float(lead)


def gain_tag(differences: Iterable[Fraction]) -> str:
    """Return the tag that the interval of these differences is recorded under."""
    return GAIN_INTERVALS[_are_whole(differences)]


def share_tag(pairs: Iterable[tuple[Fraction, Fraction]]) -> str:
    """Return the tag that the interval of the share of these pairs is recorded under."""
    return SHARE_INTERVALS[_are_whole(value for pair in pairs for value in pair)]


def _are_whole(values: Iterable[Fraction]) -> bool:
    return all(value.denominator == 1 for value in values)


def t95(df: int) -> float:
    """Return the two-sided 95 % quantile of Student's t, to three decimals.

    Source: Abramowitz and Stegun, 26.7.5.
    """
    if df < len(_T95):
        return _T95[df]
    z, v = Z95, float(df)
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * v**4)
    )


def _added(
    differences: Sequence[Fraction], n: int | None = None, tag: str = GAIN_INTERVALS[0]
) -> Fraction:
    """Return the square of the differences that are added, 1 for those of 0/1 scores.

    It goes by the mean square of the differences, each weighted by its own square: the size of
    those that make up the variance. `n` items tell it the less surely the fewer they are. With
    many items half of it will do, the less so the more the scores are like 0/1 ones; by the
    rule /2 it was taken whole, and more than that.
    """
    rule = tag.rpartition("/")[2]
    if rule == "1":
        return Fraction(1)
    squares = [float(value) * float(value) for value in differences]
    whole = math.fsum(squares)
    if not whole:
        return Fraction(1)
    size = math.fsum(one * one for one in squares) / whole
    few = 4 / (len(differences) if n is None else n)
    if rule == "2":
        return Fraction(min(1.0, (1 + few) * size))
    share = min(1.0, 0.5 + few)
    return Fraction(min(1.0, size * (share + (1 - share) * size**8)))


def _squares(values: Iterable[float]) -> float:
    return math.fsum(value * value for value in values)


def _adjusted(differences: Sequence[Fraction], added: Fraction) -> tuple[float, float]:
    """Return the mean of the differences and two that are added, and the variance of it."""
    n = len(differences) + 2
    mean = float(exact_sum(differences) / n)
    square = float((exact_sum(d * d for d in differences) + 2 * added) / n)
    return mean, max(0.0, square - mean * mean) / n


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

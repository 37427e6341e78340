"""Intervals hold the true value as often as they say, and items are their units."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bench_intervals import (
    RATES,
    World,
    both_right,
    by_score,
    by_wins,
    exact_gain,
    faults_of,
    rates_of,
)
from skilltrail.core.stats import (
    GAIN_INTERVALS,
    crossed_interval,
    gain_interval,
    gain_tag,
    mean_interval,
    t95,
)

EIGHT = [Fraction(n) for n in (1, 1, 1, 0, 0, 0, 0, 0)]
whole = st.sampled_from([Fraction(-1), Fraction(0), Fraction(1)])
parts = st.integers(-100, 100).map(lambda n: Fraction(n, 100))


def test_equal_seeds_say_what_one_seed_says() -> None:
    """Three runs with the same skill once gave +0.134 to +0.558, as if of 24 items."""
    for seeds in (1, 2, 3, 10):
        low, high = crossed_interval([[value] * seeds for value in EIGHT])
        assert (round(low, 3), round(high, 3)) == (-0.097, 0.697)


@given(st.lists(whole, min_size=1, max_size=40))
def test_for_whole_scores_the_interval_is_the_earlier_ones(values: list[Fraction]) -> None:
    assert gain_tag(values) == "adjusted_wald/2"
    assert len({gain_interval(values, tag) for tag in GAIN_INTERVALS}) == 1


@given(st.lists(parts, min_size=1, max_size=40))
def test_for_scores_in_between_each_rule_is_as_wide_as_the_next_at_most(
    values: list[Fraction],
) -> None:
    widths = [high - low for low, high in (gain_interval(values, t) for t in GAIN_INTERVALS)]
    assert widths == sorted(widths)
    whole = all(value.denominator == 1 for value in values)
    assert gain_tag(values) == ("adjusted_wald/2" if whole else "adjusted_wald/3")


def test_an_interval_of_scores_in_between_is_recomputed_by_the_rule_that_it_names() -> None:
    values = [Fraction(n, 10) for n in (3, -2, 5, 0, 0, 4, 1, 0, 7, -1)]
    found = [tuple(round(x, 4) for x in gain_interval(values, tag)) for tag in GAIN_INTERVALS]
    assert found == [(-0.0508, 0.3341), (-0.072, 0.3553), (-0.1321, 0.4154)]


@given(st.lists(parts, min_size=1, max_size=40), st.integers(1, 4))
def test_an_interval_is_that_of_one_seed_lies_in_bounds_and_turns_with_the_sign(
    values: list[Fraction], seeds: int
) -> None:
    low, high = crossed_interval([[value] * seeds for value in values])
    assert (low, high) == pytest.approx(gain_interval(values))
    assert -1 <= low <= high <= 1
    assert crossed_interval([[-value] * seeds for value in values]) == pytest.approx(
        (-high, -low)
    )


def test_seeds_that_differ_as_a_whole_are_a_factor_of_their_own() -> None:
    agree = [[Fraction(1, 2)] * 3 for _ in range(30)]
    apart = [[Fraction(1), Fraction(1, 2), Fraction(0)] for _ in range(30)]
    narrow, wide = crossed_interval(agree), crossed_interval(apart)
    assert narrow[0] > 0.3
    assert wide[0] < 0


@pytest.mark.parametrize(
    ("df", "quantile"), [(1, 12.706), (2, 4.303), (4, 2.776), (7, 2.365), (29, 2.045)]
)
def test_the_quantiles_are_those_of_the_tables(df: int, quantile: float) -> None:
    assert t95(df) == pytest.approx(quantile, abs=2e-3)


def test_a_mean_of_nothing_may_be_anything_and_one_of_ones_is_not_certain() -> None:
    assert mean_interval([]) == (0.0, 1.0)
    low, high = mean_interval([Fraction(1)] * 10)
    assert low < 0.8
    assert high == 1.0


@pytest.mark.parametrize(
    "world",
    [
        World("mean", 8),
        World("gain", 8, soft=True),
        World("gain", 30, soft=True),
        World("transfer", 30),
        *(World("compare", 30, seeds=3, seeds_alike=alike) for alike in (0.0, 0.5, 1.0)),
        World("compare", 8, seeds=10, seeds_alike=1.0),
    ],
    ids=repr,
)
def test_each_interval_is_right_about_as_often_as_it_says(world: World) -> None:
    """Seeded and short; `benchmarks/bench_intervals.py` draws more, of more worlds."""
    found = rates_of(world, 150)
    assert faults_of(world, found) == [], found


@pytest.mark.parametrize("alike", [0.0, 0.5])
def test_at_every_fixed_pair_of_rates_30_items_are_covered_as_promised(alike: float) -> None:
    """Computed over all outcomes, without draws; 0.9510 to 0.9652."""
    found = [exact_gain(30, a, b, alike) for a in RATES for b in RATES if a <= b]
    assert min(found) > 0.93
    assert max(found) < 0.97


def test_the_interval_is_wider_only_where_too_few_items_differ_for_a_verdict() -> None:
    """Below six items no outcome is rare enough for a two-sided 5 %; at most 0.9808."""
    for first in RATES:
        for second in RATES:
            if first <= second and exact_gain(30, first, second, 0.8) > 0.97:
                assert 30 * (first + second - 2 * both_right(first, second, 0.8)) < 6.5


def test_no_interval_is_covered_as_promised_however_few_items_differ() -> None:
    """Computed over all outcomes. Where 4.3 of 30 differ, 98.3 % of gains of 0 are held by what
    shuts 0 out from five wins and no loss on (p=0.063), 94.7 % from four on (p=0.125), and
    there is nothing in between; where one differs, three wins would have to do."""
    five, four, three = (by_wins(wins) for wins in (5, 4, 3))
    assert exact_gain(30, 0.2, 0.2, 0.8, five) == pytest.approx(0.9830, abs=5e-5)
    assert exact_gain(30, 0.2, 0.2, 0.8, four) == pytest.approx(0.9468, abs=5e-5)
    assert exact_gain(30, 0.2, 0.2, 0.95, four) > 0.97
    assert exact_gain(30, 0.2, 0.2, 0.99, three) > 0.97


def test_the_score_interval_would_be_nearer_there_and_over_elsewhere() -> None:
    """Computed over all outcomes: 0.9331 to 0.9729 where the one in use has up to 0.9808."""
    pairs = [(a, b) for a in RATES for b in RATES if a <= b]
    found = {(a, b): exact_gain(30, a, b, 0.8, by_score) for a, b in pairs}
    assert min(found.values()) > 0.933
    assert [pair for pair, held in found.items() if held > 0.97] == [(0.2, 0.8)]
    assert min(exact_gain(12, a, b, 0.8, by_score) for a, b in pairs) > 0.97

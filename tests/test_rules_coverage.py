"""Choosing worked examples by cover: toys by hand, then laws."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from skilltrail.optimizers.rules.coverage import (
    Cover,
    Likeness,
    greedy_order,
    least_missed,
)

TRAITS = st.frozensets(st.sampled_from("abcdef"), max_size=4)
POOLS = st.dictionaries(st.sampled_from(["1", "2", "3", "4", "5"]), TRAITS, min_size=1)


def alike(pool: Sequence[frozenset[str]], one: int, other: int) -> float:
    """Return how alike the items at two places of a pool are."""
    row = Likeness({str(at): traits for at, traits in enumerate(pool)}).row(str(one))
    return float(row[other])


def cover_of(traits: dict[str, frozenset[str]]) -> Cover:
    return Cover(Likeness(traits), dict.fromkeys(traits, 1.0))


def gain_of(cover: Cover, id: str) -> float:
    return cover.gain(id)


def order_of(traits: dict[str, frozenset[str]], most: int = 9) -> list[str]:
    cover = cover_of(traits)
    order = greedy_order(cover, list(traits), lambda id, gain: (gain,))
    return list(islice(order, most))


def test_likeness_is_the_shared_part_of_the_weight() -> None:
    pool = [frozenset("ab"), frozenset("bc"), frozenset("ca")]
    assert alike(pool, 0, 1) == 1 / 3
    assert alike(pool, 0, 0) == 1.0
    assert alike([frozenset(), frozenset()], 0, 1) == 0.0


def test_a_word_that_all_items_share_makes_hardly_any_two_of_them_alike() -> None:
    rare, common = frozenset({"the", "ring"}), frozenset({"the", "bridge"})
    pool = [rare, common, frozenset({"the", "fare"}), frozenset({"the", "ship"})]
    assert 0 < alike(pool, 0, 1) < 0.05


def test_the_kind_of_answer_tells_more_than_a_word_as_rare() -> None:
    one, kind, word = frozenset({"<date>", "day"}), frozenset({"<date>"}), frozenset({"day"})
    pool = [one, kind, word]
    assert alike(pool, 0, 1) == 2 * alike(pool, 0, 2)


@given(st.lists(TRAITS, min_size=2, max_size=8))
def test_likeness_is_the_same_both_ways_and_a_share(pool: list[frozenset[str]]) -> None:
    assert alike(pool, 0, 1) == alike(pool, 1, 0)
    assert 0 <= alike(pool, 0, 1) <= 1
    assert alike(pool, 0, 0) == float(bool(pool[0]))


def test_the_second_example_is_of_another_kind() -> None:
    traits = {"1": "ab", "2": "ab", "3": "ab", "4": "cd", "5": "cd"}
    order = order_of({id: frozenset(text) for id, text in traits.items()})
    assert order[0] in "123"
    assert order[1] in "45"


def test_what_is_covered_adds_nothing() -> None:
    cover = cover_of({"1": frozenset("ab"), "2": frozenset("ab")})
    assert gain_of(cover, "2") == 2.0
    cover.add("1")
    assert gain_of(cover, "2") == 0.0
    assert cover.alike("2", ["1", "2"]) == []


def test_a_twin_is_missed_least() -> None:
    value = {("1",): 1.0, ("2",): 1.0, ("1", "2"): 1.0, ("1", "3"): 2.0, ("2", "3"): 2.0}
    assert least_missed(["1", "2", "3"], lambda left: value[tuple(left)]) == ["1", "2", "3"]


@given(POOLS, st.integers(0, 6))
def test_an_order_holds_each_choice_once_and_no_more_than_asked(
    traits: dict[str, frozenset[str]], most: int
) -> None:
    order = order_of(traits, most)
    assert len(order) == len(set(order)) == min(most, len(traits))


@given(POOLS)
def test_gains_never_grow_as_examples_are_added(traits: dict[str, frozenset[str]]) -> None:
    cover = cover_of(traits)
    before = {id: gain_of(cover, id) for id in traits}
    for id in traits:
        cover.add(id)
        after = {other: gain_of(cover, other) for other in traits}
        assert all(after[other] <= before[other] for other in traits)
        before = after


@given(POOLS)
def test_the_order_does_not_depend_on_the_order_of_the_choices(
    traits: dict[str, frozenset[str]],
) -> None:
    turned = list(reversed(traits))
    cover = cover_of(traits)
    first = greedy_order(cover, turned, lambda id, gain: (gain,))
    assert list(first) == order_of(traits)


@given(POOLS)
def test_the_lazy_order_is_the_greedy_one(traits: dict[str, frozenset[str]]) -> None:
    cover = cover_of(traits)
    for id in order_of(traits):
        assert gain_of(cover, id) == max(gain_of(cover, other) for other in traits)
        cover.add(id)

"""Ratio mode: an item's split is its own business, and too few items are refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.core.errors import DataError, ParamError
from skilltrail.core.item import SPLITS, Item
from skilltrail.data.assign import assign, limited, minimum_items, parse_ratio, split_of
from skilltrail.data.load import Loaded
from skilltrail.envs.protocol import Where

RATIO = parse_ratio("2:1:7")


def loaded(id: str, group: str | None = None) -> Loaded:
    item = Item(id, {"q": id}, group=group)
    return Loaded(item, {"id": id}, Where("items.jsonl", 1), "", id)


def many(n: int) -> list[Loaded]:
    return [loaded(f"i{k}") for k in range(n)]


def test_a_ratio_is_three_numbers_above_zero() -> None:
    assert parse_ratio("2:1:7") == (Fraction(1, 5), Fraction(1, 10), Fraction(7, 10))
    assert parse_ratio(" 0.2 : 0.1 : 0.7 ") == RATIO


@pytest.mark.parametrize("text", ["", "2:1", "2:1:7:1", "2:0:8", "-2:1:7", "a:b:c", "²:1:7"])
def test_any_other_ratio_is_refused(text: str) -> None:
    with pytest.raises(ParamError, match=r"data\.ratio.*2:1:7"):
        parse_ratio(text)


def test_three_items_are_too_few_for_2_1_7_and_the_minimum_is_said() -> None:
    with pytest.raises(DataError, match="needs at least 20 items.*2 selection.*: 3 items"):
        assign(many(3), RATIO, 42)


@pytest.mark.parametrize("seed", range(200))
def test_too_few_items_are_refused_even_where_luck_would_fill_every_split(seed: int) -> None:
    with pytest.raises(DataError, match="needs at least 6 items"):
        assign(many(5), parse_ratio("1:1:1"), seed)


def test_too_few_groups_are_refused_however_many_items_they_hold() -> None:
    items = [loaded(f"i{k}", group=f"g{k % 3}") for k in range(300)]
    with pytest.raises(DataError, match="20 items from 10 sources.*: 300 items from 3 sources"):
        assign(items, RATIO, 42)


@given(st.integers(0, 50), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_no_split_is_ever_left_empty(seed: int, train: int, selection: int, test: int) -> None:
    ratio = parse_ratio(f"{train}:{selection}:{test}")
    try:
        splits = assign(many(minimum_items(ratio)), ratio, seed)
    except DataError:
        return
    assert set(splits.values()) == set(SPLITS)
    assert list(splits.values()).count("selection") >= 2


def test_counts_follow_the_ratio_on_average() -> None:
    splits = list(assign(many(5000), RATIO, 42).values())
    shares = [splits.count(name) / 5000 for name in SPLITS]
    assert shares == pytest.approx([0.2, 0.1, 0.7], abs=0.02)


@given(
    st.sets(st.text(min_size=1), min_size=60, max_size=70),
    st.sets(st.text(min_size=1)),
    st.integers(0, 2**31),
)
def test_a_new_item_never_moves_an_old_one(
    before: set[str], added: set[str], seed: int
) -> None:
    ratio = parse_ratio("1:1:1")
    old = assign([loaded(id) for id in before], ratio, seed)
    new = assign([loaded(id) for id in sorted(before | added, reverse=True)], ratio, seed)
    assert {id: new[id] for id in before} == old


@given(st.text(min_size=1), st.integers(0, 1000))
def test_items_of_one_group_share_a_split_whatever_their_ids(group: str, seed: int) -> None:
    items = many(80) + [loaded(f"g{k}", group) for k in range(5)]
    splits = assign(items, parse_ratio("1:1:1"), seed)
    assert len({splits[f"g{k}"] for k in range(5)}) == 1


def test_seed_zero_is_a_seed_like_any_other() -> None:
    splits = [assign(many(100), RATIO, seed) for seed in (0, 1, 42)]
    assert splits[0] != splits[1]
    assert splits[0] != splits[2]


def test_the_assignment_is_the_same_in_every_version() -> None:
    names = [split_of(("id", f"i{k}"), RATIO, 42) for k in range(12)]
    assert "".join(name[:2] for name in names) == "tetesetetetetetetesesetr"


def test_an_id_and_a_group_of_one_name_are_apart() -> None:
    pairs = [(split_of(("id", str(k)), RATIO, 0), split_of(("group", str(k)), RATIO, 0))
             for k in range(50)]  # fmt: skip
    assert any(one != other for one, other in pairs)


@given(st.sets(st.text(), min_size=1), st.integers(0, 9), st.integers(0, 99))
def test_a_smaller_limit_lies_inside_a_larger_one(ids: set[str], n: int, seed: int) -> None:
    smaller, larger = limited(ids, n + 1, seed), limited(ids, n + 2, seed)
    assert set(smaller) <= set(larger)
    assert len(smaller) == min(n + 1, len(ids))
    assert set(limited(ids, 0, seed)) == ids


def test_a_limit_is_not_the_first_of_the_file() -> None:
    ids = [f"i{k}" for k in range(100)]
    assert limited(ids, 10, 42) != ids[:10]
    assert limited(ids, 10, 42) == limited(reversed(ids), 10, 42)
    assert limited(ids, 10, 42) != limited(ids, 10, 43)

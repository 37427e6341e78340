"""Splits share no content and no group; what is only suspicious is a warning."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.core.errors import DataError
from skilltrail.core.item import Item
from skilltrail.data.load import Loaded
from skilltrail.data.overlap import (
    normalised,
    overlap_counts,
    overlaps,
    refuse_overlaps,
)
from skilltrail.data.suspect import warnings_for
from skilltrail.envs.protocol import Where


def loaded(
    id: str, content: str, split: str = "", group: str | None = None, **fields: Any
) -> Loaded:
    item = Item(id, {"q": content}, group=group)
    return Loaded(item, {"id": id, **fields}, Where(f"{split}.jsonl", 1), split, content)


def in_place(*ones: Loaded) -> dict[str, str]:
    return {one.item.id: one.split for one in ones}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is the height of Mount Foo?", "what is the height of mount foo"),
        ("  Two\t words\n", "two words"),
        ("“Quoted” — text…", "quoted text"),
        ("ﬁne Ｆｕｌｌ", "fine full"),
        ("STRASSE", "straße"),
        ("soft\u00adhyphen\u200b", "softhyphen"),
        ("don't U.S.", "dont us"),
        ("cafe\u0301", "café"),
        ("cafe\u200b\u0301", "café"),
        ("It was in 1999.", "It was in 1999"),
    ],
)
def test_capitals_punctuation_blanks_and_forms_hide_nothing(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is 3.5?", "What is 35?"),
        ("Is it -2 + 5?", "Is it 2 + 5?"),
        ("1+1", "1-1"),
        ("12:30", "1230"),
        ("???", "!!!"),
        ("हिंदी", "हदी"),
        ("a < b", "a > b"),
    ],
)
def test_what_changes_the_meaning_stays(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


@given(st.text())
def test_blanks_around_a_text_never_matter(text: str) -> None:
    assert normalised(f" \t{text}\n") == normalised(text)


def test_the_same_question_in_train_and_test_is_refused_with_both_places() -> None:
    ones = (
        loaded("1", "What is the height of Mount Foo?", "train"),
        loaded("9", "what is the height of mount foo", "test"),
    )
    found = overlaps(ones, in_place(*ones))
    assert [overlap.items for overlap in found] == [(("train", "1"), ("test", "9"))]
    with pytest.raises(DataError) as caught:
        refuse_overlaps(found, ones)
    for part in (
        "1 content in both train and test",
        "'1' (train",
        "'9' (test",
        "allow_overlap",
    ):
        assert part in str(caught.value)


def test_one_group_in_two_splits_is_an_overlap() -> None:
    ones = (loaded("1", "a", "train", "D"), loaded("2", "b", "selection", "D"))
    found = overlaps(ones, in_place(*ones))
    assert overlap_counts(found) == "1 group in both train and selection"


def test_nothing_shared_is_no_overlap_and_nothing_is_raised() -> None:
    ones = (
        loaded("1", "a", "train", "D"),
        loaded("2", "b", "test", "E"),
        loaded("3", "a", "train"),
    )
    found = overlaps(ones, in_place(*ones))
    assert found == []
    refuse_overlaps(found, ones)


def test_in_ratio_mode_one_content_from_two_sources_is_refused_whatever_the_luck() -> None:
    ones = [loaded("1", "Same?"), loaded("2", "same")]
    found = overlaps(ones, {"1": "train", "2": "train"})
    assert overlap_counts(found) == "1 content twice in train"
    one_source = [loaded("1", "Same?", group="D"), loaded("2", "same", group="D")]
    assert overlaps(one_source, {"1": "train", "2": "train"}) == []


def test_overlaps_do_not_depend_on_the_order_of_the_items() -> None:
    ones = [
        loaded(str(k), f"q{k % 3}", ("train", "selection", "test")[k % 2]) for k in range(9)
    ]
    assert overlaps(ones, in_place(*ones)) == overlaps(ones[::-1], in_place(*ones))


def kinds(*ones: Loaded, group_key: str | None = None) -> list[str]:
    return [warning.kind for warning in warnings_for(list(ones), group_key)]


def test_ids_that_differ_only_in_case_are_warned_about() -> None:
    (warning,) = warnings_for([loaded("Case-1", "a"), loaded("case-1", "b")])
    assert warning.kind == "ids_alike"
    assert "'Case-1' and 'case-1'" in warning.message


def test_rows_of_one_document_are_warned_about_when_no_group_key_is_set() -> None:
    rows = (loaded("q1", "a", doc="D"), loaded("q2", "b", doc="D"))
    (warning,) = warnings_for(list(rows))
    assert warning.kind == "group_candidate"
    assert "data.group_key: doc" in warning.message
    assert kinds(*rows, group_key="doc") == []


@pytest.mark.parametrize("field", ["ucsf_document_id", "docId", "source_files", "image_path"])
def test_published_names_of_source_fields_are_known(field: str) -> None:
    rows = (loaded("1", "a", **{field: "x"}), loaded("2", "b", **{field: "x"}))
    assert kinds(*rows) == ["group_candidate"]


@pytest.mark.parametrize("field", ["topic", "difficulty", "task_type", "answer", "page_no"])
def test_other_fields_may_repeat(field: str) -> None:
    rows = (loaded("1", "a", **{field: "x"}), loaded("2", "b", **{field: "x"}))
    assert kinds(*rows) == []


def test_a_source_held_together_by_groups_or_ready_made_splits_is_no_warning() -> None:
    grouped = (loaded("1", "a", group="D", doc="D"), loaded("2", "b", group="D", doc="D"))
    assert kinds(*grouped) == []
    together = (loaded("1", "a", "train", doc="D"), loaded("2", "b", "train", doc="D"))
    assert kinds(*together) == []
    apart = (loaded("1", "a", "train", doc="D"), loaded("2", "b", "test", doc="D"))
    assert kinds(*apart) == ["group_candidate"]


def test_repeated_content_within_a_split_is_a_warning() -> None:
    assert kinds(loaded("1", "Same?"), loaded("2", "same")) == ["repeated_content"]

"""SQuAD v1.1 scores: every published vector, and the laws they follow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.envs.kit.qa_scoring import exact_match, normalize, token_f1

VECTORS = [
    ("The Beatles", ["beatles"], 1, 1),
    ("A. Lincoln", ["Abraham Lincoln"], 0, 2 / 3),
    ("U.S.A.", ["USA"], 1, 1),
    ("well-known", ["well known"], 0, 0),
    ("New York City", ["New York"], 0, 0.8),
    ("red red blue", ["red blue"], 0, 0.8),
    ("1,000", ["1000"], 1, 1),
    ("café", ["cafe"], 0, 0),
    ("“Dew point”", ["dew point"], 0, 0),
    ("an apple a day", ["apple day"], 1, 1),
    ("Tom  Clancy", ["Clancy", "Tom Clancy"], 1, 1),
    ("", ["x"], 0, 0),
]


@pytest.mark.parametrize(("prediction", "golds", "em", "f1"), VECTORS)
def test_published_vectors(prediction: str, golds: list[str], em: float, f1: float) -> None:
    assert exact_match(prediction, golds) == em
    assert token_f1(prediction, golds) == pytest.approx(f1)


@pytest.mark.parametrize(("prediction", "gold"), [("", ""), ("the", "a"), ("the", "")])
def test_f1_is_0_where_nothing_is_left_on_both_sides(prediction: str, gold: str) -> None:
    assert exact_match(prediction, [gold]) == 1.0
    assert token_f1(prediction, [gold]) == 0.0


def test_punctuation_leaves_no_gap_and_articles_do() -> None:
    assert normalize("The well-known, (an) apple's core!") == "wellknown apples core"


def test_articles_go_only_as_whole_words() -> None:
    assert normalize("Theatre and a banana") == "theatre and banana"


def test_without_golds_nothing_is_right() -> None:
    assert exact_match("x", []) == 0.0
    assert token_f1("x", []) == 0.0


@given(st.text(), st.lists(st.text(), max_size=3))
def test_scores_are_in_range_and_a_match_has_full_f1(prediction: str, golds: list[str]) -> None:
    match, f1 = exact_match(prediction, golds), token_f1(prediction, golds)
    assert match in (0.0, 1.0)
    assert 0.0 <= f1 <= 1.0
    if match and normalize(prediction):
        assert f1 == 1.0


@given(st.text(), st.lists(st.text(), min_size=1, max_size=3))
def test_the_order_of_golds_does_not_matter(prediction: str, golds: list[str]) -> None:
    assert token_f1(prediction, golds) == token_f1(prediction, golds[::-1])


def test_a_text_too_long_to_be_kept_in_memory_is_normalised_all_the_same() -> None:
    assert normalize("The Word! " * 2000) == " ".join(["word"] * 2000)

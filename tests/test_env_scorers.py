"""Every vector of the official evaluators, and the laws that a score keeps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.envs.docvqa.anls import anls, edit_distance
from skilltrail.envs.kit.answers import extract_answer, tagged
from skilltrail.envs.kit.choices import lenient_label, read_label, shuffled
from skilltrail.envs.kit.numbers import numbers_in
from skilltrail.envs.kit.qa_scoring import token_f1
from skilltrail.envs.korqa.env import character_f1, normalize
from skilltrail.envs.officeqa.official import score_answer
from skilltrail.envs.officeqa.reference_metric import reference_em, reference_f1


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("x <answer>A</answer> y <answer>B</answer>", "B"),
        ("<ANSWER> hi </ANSWER>", "hi"),
        ("<answer>open only", "<answer>open only"),
        ("line1\n\nline2 ", "line2"),
        ("<answer></answer>", ""),
        ("<answer>two\nlines</answer> more", "two\nlines"),
        ("", ""),
        ("</answer> x <answer>", "</answer> x <answer>"),
    ],
)
def test_the_answer_is_in_the_last_closed_pair_or_the_last_line(text: str, answer: str) -> None:
    assert extract_answer(text) == answer


def test_a_million_open_tags_take_no_time() -> None:
    assert tagged("<answer>" * 100_000, "answer") is None


@pytest.mark.parametrize(
    ("prediction", "golds", "score"),
    [
        ("54.45", ["54.45", "$54.45"], 1),
        ("$54.45", ["54.45"], 0.8333),
        ("5445", ["54.45"], 0.8),
        ("Des Moines", ["Des Moines, Iowa"], 0.625),
        ("des  moines", ["Des Moines"], 1),
        ("abc", ["abcd"], 0.75),
        ("ab", ["abcd"], 0),
        ("12", ["13"], 0),
        ("hello", ["hallo"], 0.8),
        ("Iowa 1", ["iowa1"], 0.8333),
        ("cat", ["dog"], 0),
        ("", [""], 1),
        ("", ["x"], 0),
        ("x", [""], 0),
        ("", [], 1),
        ("x", [], 0),
    ],
)
def test_docvqa_scores_by_anls(prediction: str, golds: list[str], score: float) -> None:
    assert anls(prediction, golds) == pytest.approx(score, abs=5e-5)


CHOICES = {"A": "x=1", "B": "x=2", "C": "x=3", "D": "x=4", "E": "none"}


@pytest.mark.parametrize(
    ("response", "label"),
    [
        ("<answer>b.</answer>", "B"),
        ("B)", "B"),
        ("<answer>B: x=2</answer>", "B"),
        ("<answer>x=2</answer>", "B"),
        ("<answer>(B)</answer>", None),
        ("<answer>Option B</answer>", None),
        ("The answer is B", None),
        ("<answer>**B**</answer>", None),
        (r"<answer>\boxed{B}</answer>", None),
        ("A is wrong, so B", "A"),
        ("<answer>F</answer>", None),
        ("", None),
    ],
)
def test_livemath_reads_a_label_strictly(response: str, label: str | None) -> None:
    assert read_label(extract_answer(response), CHOICES) == label


@pytest.mark.parametrize(
    "answer", ["(B)", "**B**", r"\boxed{B}", "Option B", "The answer is B", "b."]
)
def test_the_named_metric_reads_more_forms(answer: str) -> None:
    assert lenient_label(answer, CHOICES) == "B"


def test_choices_are_shuffled_by_seed_and_id_alone() -> None:
    values = list(range(5))
    orders = {tuple(shuffled(values, 42, f"202602:{n}")) for n in range(200)}
    assert len(orders) > 60
    assert shuffled(values, 42, "x") == shuffled(values, 42, "x")
    assert any(shuffled(values, 1, f"{n}") != shuffled(values, 2, f"{n}") for n in range(5))


OFFICEQA = [
    ("543 million", "543", 0, 1),
    ("543 million", "543 million", 0, 1),
    ("543 million", "543000000", 0, 0),
    ("543 million", "543 billion", 0, 0),
    ("543", "543 million", 0, 1),
    ("1,234.5", "1235", 0, 0),
    ("1,234.5", "1235", 0.01, 1),
    ("10", "9.5", 0.05, 1),
    ("10", "9.49", 0.05, 0),
    ("12.3%", "12.3", 0, 1),
    ("12.3%", ".123", 0, 0),
    ("(45.2)", "-45.2", 0, 1),
    ("(1977)", "1977", 0, 1),
    ("(1977)", "-1977", 0, 0),
    ("$(1,977)", "-1977", 0, 0),
    ("$2,003", "2003", 0, 1),
    ("2003", "1999", 0, 0),
    ("March 1977", "March 1977", 0, 1),
    ("March 1977", "April 1977", 0, 0),
    ("March 1977", "1977", 0, 0),
    ("100", "the answer is 100 in 1954", 0, 1),
    ("100", "100 or 101", 0, 0),
    ("[1, 2]", "1, 2", 0, 1),
    ("[1, 2]", "[2, 1]", 0, 0),
    ("[8, 152260]", "[8,152,260]", 0, 1),
    ("0", "0.0", 0.05, 1),
    ("0", "0.001", 0.05, 0),
    ("yes", "yes", 0, 1),
    ("yes", "Yes.", 0, 0),
    ("Old-Age (OASI) Trust Fund", "old-age trust fund", 0, 1),
    ("5", "5\nbecause", 0, 0),
    ("5", "Unable to determine", 0, 0),
    ("5", "", 0, 0),
]


@pytest.mark.parametrize(("gold", "predicted", "tolerance", "score"), OFFICEQA)
def test_officeqa_scores_officially(
    gold: str, predicted: str, tolerance: float, score: float
) -> None:
    assert score_answer(gold, predicted, tolerance) == score
    tagged_reply = f"Thinking: 7, 8.\n<final_answer>\n{predicted}\n</final_answer>"
    assert score_answer(gold, tagged_reply, tolerance) == score


@pytest.mark.parametrize(
    ("gold", "predicted", "score"),
    [
        ("[8, 152260]", "[8, 152, 260]", 0),
        ("[8, 152260]", "[8,152,261]", 0),
        ("[1, 2, 3]", "[1, 2]", 0),
        ("3 and 4", "4 and 3", 1),
        ("12", "<b>12</b>", 0),
        ("7", "7 " + "x" * 300, 0),
        ("−12.5", "-12.5", 1),
        ("5 thousand", "5 k", 1),
        ("£1,234 million", "1234 m", 1),
        ("abc", "abc 12", 0),
    ],
)
def test_officeqa_scores_what_the_rules_say(gold: str, predicted: str, score: float) -> None:
    assert score_answer(gold, predicted) == score


@pytest.mark.parametrize(
    ("gold", "predicted", "em"),
    [
        ("$1,234.50", "1234.5", 0),
        ("12.3%", "12.3", 0),
        ("(45.2)", "-45.2", 0),
        ("543 million", "543 billion", 1),
    ],
)
def test_the_reference_metric_differs_from_the_official_one(
    gold: str, predicted: str, em: float
) -> None:
    assert reference_em(predicted, gold) == em
    assert reference_f1(predicted, gold) >= em


@pytest.mark.parametrize(
    ("prediction", "gold", "em", "f1"),
    [
        ("임종석은", "임종석", 0, 0.8571),
        ("《삼국지》", "삼국지", 1, 1),
        ("서울 특별시", "서울특별시", 0, 1),
        ("1989년 2월 15일", "1989년 2월 15일에", 0, 0.9524),
        ("(주)삼성", "주 삼성", 1, 1),
        ("“인용”", "인용", 0, 0.6667),
        ("3,000명", "3000명", 1, 1),
        ("The Who", "the who", 1, 1),
        ("a", "a", 1, 1),
    ],
)
def test_korqa_scores_over_characters(prediction: str, gold: str, em: float, f1: float) -> None:
    assert float(normalize(prediction) == normalize(gold)) == em
    assert character_f1(prediction, gold) == pytest.approx(f1, abs=5e-5)


@given(st.text(), st.text(), st.floats(0, 1))
def test_no_text_breaks_a_scorer(gold: str, said: str, tolerance: float) -> None:
    for score in (
        anls(said, [gold]),
        character_f1(said, gold),
        token_f1(said, [gold]),
        score_answer(gold, said, tolerance),
        reference_f1(said, gold),
    ):
        assert 0 <= score <= 1


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_the_edit_distance_is_a_distance(a: str, b: str, c: str) -> None:
    assert edit_distance(a, b) == edit_distance(b, a)
    assert (edit_distance(a, b) == 0) == (a == b)
    assert edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c)


@given(st.integers(-(10**12), 10**12))
def test_thousands_commas_and_brackets_are_read(value: int) -> None:
    written = f"{value:,}" if value >= 0 else f"(${-value:,})"
    assert [one.value for one in numbers_in(written)] == [float(value)]

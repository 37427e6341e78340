"""The declarative environment: scorers, checks, and records that need no code."""

from __future__ import annotations

from typing import Any

import pytest
from env_world import WHERE, env_of, record

from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.qa.checks import has_section, is_format_only


def judged(said: str, ending: str = "answered", **fields: Any) -> Score:
    env = env_of("qa")
    item = env.parse(record("qa", **fields), WHERE)
    return env.score(item, Trajectory((), said, ending))


@pytest.mark.parametrize(
    ("answer", "fields", "hard", "reason"),
    [
        ("The Oak", {"answers": ["oak"]}, 1, "correct"),
        ("an old oak", {"answers": ["oak"]}, 0, "verbose"),
        ("elm", {"answers": None, "answer": "oak"}, 0, "wrong"),
        ("", {"answers": None, "answer": "oak"}, 0, "empty"),
        ("It is the oak tree.", {"answers": ["oak"], "scorer": "contains"}, 1, "correct"),
        ("cloaked", {"answers": ["oak"], "scorer": "contains"}, 0, "wrong"),
        ("$12.50", {"answers": [12.5], "scorer": "number"}, 1, "correct"),
        ("12.6", {"answers": ["12.5"], "scorer": "number", "tolerance": 0.01}, 1, "correct"),
        ("12.7", {"answers": ["12.5"], "scorer": "number", "tolerance": 0.01}, 0, "wrong"),
        ("1 or 2", {"answers": ["1"], "scorer": "number"}, 0, "verbose"),
        ("one", {"answers": ["1"], "scorer": "number"}, 0, "wrong_form"),
        ("3 million", {"answers": ["3 billion"], "scorer": "number"}, 0, "wrong"),
        ("b.", {"choices": ["x", "y"], "answers": ["B"]}, 1, "correct"),
        ("y", {"choices": ["x", "y"], "answers": ["B"]}, 1, "correct"),
        ("A", {"choices": ["x", "y"], "answers": ["y"]}, 0, "wrong"),
        ("neither", {"choices": ["x", "y"], "answers": ["B"]}, 0, "wrong_form"),
        ("yes", {"choices": {"yes": "true", "no": "false"}, "answers": ["YES"]}, 1, "correct"),
        ("AB-12", {"answers": [r"^[A-Z]{2}-\d+$"], "scorer": "regex"}, 1, "correct"),
        ("ab-12", {"answers": [r"^[A-Z]{2}-\d+$"], "scorer": "regex"}, 0, "wrong"),
    ],
)
def test_a_record_declares_how_it_is_scored(
    answer: str, fields: dict[str, Any], hard: float, reason: str
) -> None:
    score = judged(answer, **fields)
    assert (score.hard, score.reason) == (hard, reason)


def test_f1_is_soft_and_exact_match_hard() -> None:
    score = judged("New York City", answers=["New York"], scorer="f1")
    assert (score.hard, score.soft) == (0.0, 0.8)


def test_a_wrong_answer_that_was_cut_off_is_truncated() -> None:
    assert judged("something el", "truncated").reason == "truncated"
    assert judged("x", "truncated").reason == "correct"


RISKS = [
    {"op": "section_contains", "arg": "key risks"},
    {"op": "contains", "arg": "refund"},
    {"op": "not_regex", "arg": r"(?i)as an ai"},
    {"op": "max_words", "arg": 12},
]


@pytest.mark.parametrize(
    ("reply", "soft", "reason"),
    [
        ("### 1. Key risks (overview)\nNo refund after a week.", 1.0, "correct"),
        ("Key risks\nNo refund.", 0.75, "format"),
        ("## Key risks\nAs an AI I see no refund.", 0.75, "content"),
        ("## Other\nnothing " + "more " * 20, 0.25, "content"),
    ],
)
def test_checks_tell_form_from_content(reply: str, soft: float, reason: str) -> None:
    score = judged(reply, answers=None, checks=RISKS)
    assert (score.hard, score.soft, score.reason) == (float(soft == 1), soft, reason)


@pytest.mark.parametrize(
    "reply",
    [
        "### 1. Key risks (overview)\n...",
        "# KEY RISKS",
        "## 2.3 Key risks: a list",
        "## (a) Key risks",
        "## IV. **Key risks** – today",
        "Key risks\n=========",
        "text\n\n#### 3) Key  risks ####",
        "## 1 - Key risks",
        "## 2 – Key risks",
        "## Section 3: Key risks",
        "## Step 4 — Key risks",
        "## ⚠️ Key risks",
        "## § 3 Key risks",
        "## _Key risks_ (n=3)",
        "## 1\\. __Key risks__",
        "## [Key risks](#key-risks)",
        "## １．Key\u00a0risks",
    ],
)
def test_a_section_is_found_whatever_number_and_suffix_it_has(reply: str) -> None:
    assert has_section(reply, "key risks")
    assert has_section(reply, "1. Key risks")


@pytest.mark.parametrize(
    "reply",
    ["Key risks", "```\n# Key risks\n```", "# Key risksome", "# No key risks", "## Risks, key"],
)
def test_a_section_is_a_heading_that_begins_so(reply: str) -> None:
    assert not has_section(reply, "key risks")


def test_a_heading_check_is_literal() -> None:
    assert has_section("# C++ (notes)", "c++")
    assert not has_section("# CXX", "c..")
    assert has_section("# C: drive", "C: drive")


def test_checks_of_form_are_flagged() -> None:
    assert [is_format_only(check) for check in RISKS] == [True, False, False, True]


def test_the_named_metrics_count_form_and_content_apart() -> None:
    env = env_of("qa")
    item = env.parse(record("qa", answers=None, checks=RISKS), WHERE)
    found = env.metrics(item, Trajectory((), "Key risks: no refund"))  # type: ignore[attr-defined]
    assert found == {"content_checks": 1.0, "format_checks": 0.5}


def test_the_param_names_the_scorer_of_records_that_name_none() -> None:
    item = env_of("qa", scorer="contains").parse(record("qa"), WHERE)
    assert item.gold["scorer"] == "contains"
    own = env_of("qa", scorer="contains").parse(record("qa", scorer="exact"), WHERE)
    assert own.gold["scorer"] == "exact"


def test_a_changed_scorer_or_gold_changes_no_input() -> None:
    env = env_of("qa")
    one = env.parse(record("qa"), WHERE)
    other = env.parse(record("qa", answers=["y"], scorer="contains"), WHERE)
    assert one.input_digest == other.input_digest
    assert one.content_digest != other.content_digest

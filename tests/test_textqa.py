"""The environment `textqa`: items, prompts, rollouts, scores and reasons, data set."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.core.errors import DataError
from skilltrail.core.item import Item
from skilltrail.core.trajectory import Trajectory, Turn
from skilltrail.envs.kit.asking import TurnLimits
from skilltrail.envs.kit.catalogue import load_catalogue
from skilltrail.envs.kit.excerpts import around
from skilltrail.envs.kit.reasons import REASONS, form, reason_of
from skilltrail.envs.protocol import Where
from skilltrail.envs.registry import environment_class, load_environment
from skilltrail.envs.scoring import by_rule
from skilltrail.envs.textqa.env import TextQa, TextQaParams
from skilltrail.models.protocol import Reply, Request

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data" / "textqa"
SHARED = Path(os.environ.get("SKILLTRAIL_SHARED", ROOT.parent / "shared"))
WHERE = Where("items.jsonl", 3)
ENV = TextQa()
RECORD: dict[str, Any] = {
    "id": "q1",
    "question": "How long is the bridge?",
    "context": "A bridge crosses the Arra. It was built in 1850. Its length is 120 metres.",
    "answers": ["120 metres"],
}


def item(**changes: Any) -> Item:
    return ENV.parse({**RECORD, **changes}, WHERE)


def answered(text: str, ending: str = "answered") -> Trajectory:
    return Trajectory((Turn("", text),), text, ending)


@dataclass
class Scripted:
    """A model that always says the same and remembers what it was asked."""

    text: str
    finish: str = "stop"
    style: str = "completion"
    asked: list[Request] = field(default_factory=list)
    identity = {"backend": "scripted"}
    abilities: frozenset[str] = frozenset()
    workers = 1

    async def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        return Reply(self.text, self.finish, model="m", usage={"input": 9})

    async def close(self) -> None:
        pass


def roll_out(model: Scripted, skill: str, env: TextQa = ENV) -> Trajectory:
    return asyncio.run(env.rollout(item(), skill, model))


# -- items --------------------------------------------------------------------------------


def test_a_record_becomes_an_item_whose_gold_is_not_in_its_input() -> None:
    parsed = item(task_type="quantity", group="arra", source="a book")
    assert parsed.input == {key: RECORD[key] for key in ("question", "context")}
    assert parsed.gold == ["120 metres"]
    assert (parsed.group, parsed.task_type) == ("arra", "quantity")
    assert parsed.extra == {"source": "a book"}


def test_a_whole_number_is_an_id() -> None:
    assert item(id=7).id == "7"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", None),
        ("id", ""),
        ("id", True),
        ("question", None),
        ("question", "  "),
        ("context", 5),
        ("answers", None),
        ("answers", ""),
        ("answers", "[]"),
        ("answers", {"text": "120 metres"}),
        ("answers", []),
        ("answers", [120]),
        ("answers", [" "]),
        ("group", ["a"]),
        ("task_type", ["a"]),
    ],
)
def test_a_bad_field_is_named_with_file_and_line(field: str, value: Any) -> None:
    if value is None:
        record = {key: v for key, v in RECORD.items() if key != field}
    else:
        record = {**RECORD, field: value}
    with pytest.raises(DataError, match=rf"items\.jsonl, line 3, field '{field}'"):
        ENV.parse(record, WHERE)


@pytest.mark.parametrize(
    ("cell", "answers"),
    [
        ("120 metres", ["120 metres"]),
        ('["120 m", "120"]', ["120 m", "120"]),
        ("[sic]", ["[sic]"]),
    ],
)
def test_a_table_cell_holds_one_answer_or_a_list(cell: str, answers: list[str]) -> None:
    assert item(answers=cell).gold == answers


def test_an_empty_cell_is_an_absent_label() -> None:
    parsed = item(task_type="", group=" ")
    assert (parsed.task_type, parsed.group) == (None, None)


def test_content_tells_questions_about_one_text_apart() -> None:
    assert ENV.content(item()) != ENV.content(item(question="When was it built?"))


# -- rollouts -----------------------------------------------------------------------------


def test_a_completion_model_goes_on_after_the_skill_and_the_question() -> None:
    model = Scripted(" 120 metres")
    trajectory = roll_out(model, "# Skill\n\n- be brief\n")
    (request,) = model.asked
    assert request.system == "# Skill\n\n- be brief\n\n"
    assert request.prompt == (
        f"Context: {RECORD['context']}\nQuestion: {RECORD['question']}\nAnswer:"
    )
    assert request.decoding.stop == ("\n",)
    assert trajectory.answer == "120 metres"
    assert ENV.score(item(), trajectory).hard == 1.0


def test_without_a_skill_nothing_stands_before_the_question() -> None:
    model = Scripted("x")
    roll_out(model, "")
    assert model.asked[0].system == ""


def test_a_chat_model_gets_messages_and_answers_inside_tags() -> None:
    model = Scripted("It is long.\n<answer>120 metres</answer>", style="chat")
    trajectory = roll_out(model, "# Skill\n")
    (request,) = model.asked
    assert request.system == "# Skill\n"
    assert request.prompt is None
    assert request.messages[0].role == "user"
    assert trajectory.answer == "120 metres"


def test_a_worked_example_is_the_prompt_with_the_answer_after_it() -> None:
    model = Scripted("x")
    roll_out(model, "")
    assert ENV.example(item()) == f"{model.asked[0].prompt} 120 metres"


def test_params_change_what_they_say() -> None:
    env = TextQa(TextQaParams(context_chars=8, answer_tokens=5, example_chars=30))
    model = Scripted("x")
    roll_out(model, "", env)
    assert model.asked[0].prompt is not None
    assert model.asked[0].prompt.startswith("Context: A bridge\n")
    assert model.asked[0].decoding.max_tokens == 5
    example = env.example(item())
    assert example is not None
    assert len(example.split("\n")[0]) <= len("Context: ") + 30
    assert "120 metres" in example.split("\n")[0]


@pytest.mark.parametrize(
    ("finish", "ending"), [("length", "truncated"), ("refusal", "refused")]
)
def test_how_a_reply_ended_is_kept(finish: str, ending: str) -> None:
    trajectory = roll_out(Scripted("The bridge that", finish=finish), "")
    assert trajectory.ending == ending
    score = by_rule(ENV, item(), trajectory)
    assert (score.hard, score.reason) == (0.0, ending)


def test_with_a_second_turn_the_answer_is_reviewed_and_the_last_one_counts() -> None:
    model = Scripted(" 120 metres")
    trajectory = roll_out(model, "", TextQa(TextQaParams(limits=TurnLimits(turns=2))))
    first, second = model.asked
    assert second.prompt is not None
    assert second.prompt.startswith(f"{first.prompt} 120 metres\n")
    assert (len(trajectory.turns), trajectory.answer) == (2, "120 metres")


# -- scores -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("120 metres", "correct"),
        ("", "empty"),
        (" the ", "empty"),
        ("The bridge is 120 metres long.", "verbose"),
        ("How long is the bridge?", "echo"),
        ("A bridge crosses the Arra. It was built in 1850.", "echo"),
        ("120 feet", "wrong_unit"),
        ("120", "wrong_unit"),
        ("metres", "partial"),
        ("Arra", "wrong_form"),
        ("99 metres", "invented"),
    ],
)
def test_reasons_name_what_went_wrong(answer: str, reason: str) -> None:
    score = ENV.score(item(), answered(answer))
    assert score.reason == reason
    assert score.hard == float(reason == "correct")


def test_another_thing_of_the_same_form_is_a_wrong_span() -> None:
    two_people = item(
        question="Who painted it?",
        context="Ada Lind painted it. Bo Fens sold it.",
        answers=["Ada Lind"],
    )
    assert ENV.score(two_people, answered("Bo Fens")).reason == "wrong_span"


def test_a_cut_answer_that_holds_the_gold_is_verbose_not_truncated() -> None:
    assert ENV.score(item(), answered("It is 120 metres and", "truncated")).reason == "verbose"
    assert ENV.score(item(), answered("It is a very", "truncated")).reason == "truncated"


@pytest.mark.parametrize("ending", ["too_long", "refused", "out_of_turns", "out_of_time"])
def test_an_end_without_an_answer_scores_0_with_that_reason(ending: str) -> None:
    score = by_rule(ENV, item(), answered("120 metres", ending))
    assert (score.hard, score.soft, score.reason) == (0.0, 0.0, ending)


@given(st.text(), st.text(min_size=1), st.text(), st.booleans())
def test_every_answer_has_a_known_reason(
    answer: str, gold: str, context: str, truncated: bool
) -> None:
    assert reason_of(answer, [gold], context, "Who?", truncated=truncated) in REASONS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12 May", "date"),
        ("May 12, 1999", "date"),
        ("Mondays", "date"),
        ("1,200", "number"),
        ("8:45", "number"),
        ("120 metres", "quantity"),
        ("$499.50", "quantity"),
        ("G1", "code"),
        ("LH 797", "quantity"),
        ("Ada Lind", "name"),
        ("a loose valve", "words"),
    ],
)
def test_forms_are_told_apart(text: str, expected: str) -> None:
    assert form(text) == expected


def test_traits_are_common_words_and_the_answers_form() -> None:
    asked = item(question="How long is the Arra bridge of 1850?")
    assert ENV.traits(asked) == {"how", "long", "is", "the", "bridge", "of", "<quantity>"}


# -- worked examples and the catalogue ----------------------------------------------------


def test_an_example_is_one_paragraph_whatever_the_context_holds() -> None:
    example = ENV.example(item(context="# Title\n\n- a list\n\nIts length is 120 metres."))
    assert example is not None
    assert example.split("\n")[0] == "Context: # Title - a list Its length is 120 metres."
    assert len(example.split("\n")) == 3


def test_a_long_context_without_the_answer_gives_no_example() -> None:
    assert ENV.example(item(context="word " * 500)) is None


@given(st.lists(st.sampled_from(["ab", "cde", "f"]), max_size=60), st.integers(10, 80))
def test_a_cut_context_is_short_and_holds_the_answer(words: list[str], chars: int) -> None:
    context = " ".join([*words, "the answer", *words])
    part = around(context, "the answer", chars)
    assert part is not None
    assert "the answer" in part
    assert part in context
    assert len(part) <= max(chars, len("the answer"))


def test_the_environment_can_be_taught_by_rules() -> None:
    assert ENV.supports_rules


def test_every_wrong_reason_stands_for_one_failure_type() -> None:
    listed = [reason for failure in ENV.catalogue.types for reason in failure.reasons]
    assert len(listed) == len(set(listed))
    assert set(REASONS) - {"correct"} <= set(listed)


def test_a_broken_catalogue_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    for text in ("failure_types:\n  x: {line: [a]}\n", "a: [", "types: {}\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=r"rules\.yaml"):
            load_catalogue(path)


def test_the_registry_finds_it() -> None:
    assert environment_class("textqa") is TextQa
    assert load_environment("textqa", TextQaParams(context_chars=5)).params.context_chars == 5


# -- the data set -------------------------------------------------------------------------


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def splits() -> dict[str, list[Item]]:
    names = ("train", "selection", "test")
    return {
        name: [ENV.parse(row, WHERE) for row in read(DATA / f"{name}.jsonl")] for name in names
    }


def test_the_data_set_is_large_enough_and_its_splits_are_disjoint() -> None:
    data = splits()
    assert [len(items) for items in data.values()] == [60, 60, 120]
    for what in (lambda i: i.id, lambda i: i.group, lambda i: i.input["context"]):
        seen = [{what(item) for item in items} for items in data.values()]
        assert len(set.union(*seen)) == sum(map(len, seen))


def test_every_answer_stands_in_its_text() -> None:
    for items in splits().values():
        assert all(item.gold[0] in item.input["context"] for item in items)


def test_the_generator_writes_the_same_bytes_again(tmp_path: Path) -> None:
    command = [sys.executable, str(DATA / "generate.py"), "--out", str(tmp_path)]
    subprocess.run(command, check=True)
    for name in ("train", "selection", "test"):
        file = f"{name}.jsonl"
        assert (tmp_path / file).read_bytes() == (DATA / file).read_bytes()


def test_real_questions_in_this_shape_load() -> None:
    path = SHARED / "data" / "searchqa" / "standin_xquad_en.json"
    if not path.is_file():
        pytest.skip(f"no shared data at {path.parent}")
    records = json.loads(path.read_text(encoding="utf-8"))
    items = [ENV.parse(record, Where(path.name, at)) for at, record in enumerate(records)]
    assert len(items) == 120
    taught = [ENV.example(item) for item in items]
    assert sum(example is not None for example in taught) > 100
    perfect = [ENV.score(item, answered(item.gold[0])) for item in items]
    assert all(score.hard == score.soft == 1.0 for score in perfect)

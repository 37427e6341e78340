"""Agents: what models are sent, in each of their styles, and how a rollout ends."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from env_world import OURS, ROOT, WHERE, env_of, own_items, record, roll, scripted
from null_store import NullStore

from skilltrail.core.errors import DataError
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.officeqa.agent import calls_in
from skilltrail.envs.officeqa.tools import GREP_LINES, READ_CHARS, run_tool
from skilltrail.envs.scoring import metric_means
from skilltrail.method.rollout import Rollouts
from skilltrail.models.errors import TooLong
from skilltrail.models.protocol import Reply
from skilltrail.params.knob import result_values

VISION = frozenset({"vision"})
TOOLS = frozenset({"tools"})


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("name", OURS)
def test_a_completion_model_goes_on_after_a_colon(name: str) -> None:
    item = own_items(name)[0].item
    model = scripted(["an answer"])
    trajectory = roll(env_of(name), item, model)
    (request,) = model.requests
    assert request.prompt is not None
    assert request.prompt.endswith(":")
    assert request.system == "Be brief.\n\n"
    assert request.decoding.stop == ("\n",)
    assert trajectory.turns[0].sent == request.prompt
    assert trajectory.answer == "an answer"


@pytest.mark.parametrize("name", OURS)
def test_a_chat_model_is_told_the_skill_as_system_text(name: str) -> None:
    item = own_items(name)[0].item
    model = scripted(["so <answer>an answer</answer>"], style="chat")
    trajectory = roll(env_of(name), item, model)
    (request,) = model.requests
    assert (request.system, request.prompt) == ("Be brief.", None)
    assert trajectory.turns[0].sent == [message.to_json() for message in request.messages]
    assert trajectory.answer in ("an answer", "so <answer>an answer</answer>")


def test_with_more_turns_the_last_answer_counts() -> None:
    env = env_of("qa", limits=type(env_of("qa").params.limits)(turns=3))
    item = env.parse(record("qa"), WHERE)
    for style in ("completion", "chat"):
        model = scripted(["first", "second", "third"], style=style)
        trajectory = roll(env, item, model)
        assert [turn.reply for turn in trajectory.turns] == ["first", "second", "third"]
        assert trajectory.answer == "third"
        assert [request.turn for request in model.requests] == [0, 1, 2]


def test_item_text_that_looks_like_a_place_is_left_alone() -> None:
    env = env_of("korqa")
    item = env.parse(record("korqa", context="{{question}} {context}"), WHERE)
    model = scripted(["x"])
    roll(env, item, model)
    assert "{{question}} {context}" in str(model.requests[0].prompt)


def test_a_context_is_cut_where_the_param_says() -> None:
    item = env_of("searchqa").parse(record("searchqa", context="c" * 9000), WHERE)
    model = scripted(["x"])
    roll(env_of("searchqa"), item, model)
    assert str(model.requests[0].prompt).count("c") < 6010
    assert str(model.requests[0].prompt).count("cccc") >= 1499


@pytest.mark.parametrize(
    ("finish", "ending"),
    [("stop", "answered"), ("length", "truncated"), ("refusal", "refused")],
)
def test_a_rollout_ends_as_its_last_reply_does(finish: str, ending: str) -> None:
    item = env_of("qa").parse(record("qa"), WHERE)
    reply = Reply("text", finish=finish, usage={"input": 5, "output": 2})
    trajectory = roll(env_of("qa"), item, scripted([reply]))
    assert (trajectory.ending, trajectory.usage) == (ending, {"input": 5, "output": 2})


def test_a_vision_model_is_shown_the_page_and_a_text_model_its_text() -> None:
    item = own_items("docvqa")[0].item
    seeing = scripted(["x"], style="chat", abilities=VISION)
    roll(env_of("docvqa"), item, seeing)
    image, words = seeing.requests[0].messages[0].parts
    assert (image.image, image.image_type) == (item.input["image"], "image/png")
    assert item.input["page_text"] not in words.text
    reading = scripted(["x"], style="chat")
    roll(env_of("docvqa"), item, reading)
    assert item.input["page_text"].strip() in reading.requests[0].messages[0].parts[0].text


def test_what_a_model_cannot_be_shown_is_said() -> None:
    item = own_items("docvqa")[0].item
    with pytest.raises(DataError, match="reads no images"):
        roll(env_of("docvqa", see="image"), item, scripted(["x"]))
    bare = type(item)(item.id, {**item.input, "page_text": None}, item.gold, extra=item.extra)
    with pytest.raises(DataError, match="no page text beside the image"):
        roll(env_of("docvqa"), bare, scripted(["x"]))


def test_an_image_that_changed_since_the_split_is_refused() -> None:
    item = own_items("docvqa")[0].item
    other = type(item)(item.id, {**item.input, "image": "0" * 64}, item.gold, extra=item.extra)
    with pytest.raises(DataError, match="has changed since the splits were made"):
        roll(env_of("docvqa"), other, scripted(["x"], style="chat", abilities=VISION))


CALL = {
    "id": "c1",
    "name": "grep",
    "arguments": {"path": "own_bulletin_1951.txt", "pattern": "fund"},
}


def test_tools_are_called_and_their_results_sent_back() -> None:
    item = own_items("officeqa")[0].item
    model = scripted(
        [
            Reply("", finish="tool", tool_calls=(CALL,)),
            "<FINAL_ANSWER>1,842 million</FINAL_ANSWER>",
        ],
        style="chat",
        abilities=TOOLS,
    )
    env = env_of("officeqa")
    trajectory = roll(env, item, model)
    assert [tool["name"] for tool in model.requests[0].tools] == ["glob", "grep", "read"]
    assistant, result = model.requests[1].messages[1:]
    assert (assistant.role, result.role, result.tool_call_id) == ("assistant", "tool", "c1")
    assert "Road Fund" in result.parts[0].text
    assert trajectory.turns[0].observation == result.parts[0].text
    assert env.score(item, trajectory).hard == 1.0


@pytest.mark.parametrize("style", ["chat", "completion"])
def test_without_tool_definitions_calls_are_lines_of_text(style: str) -> None:
    item = own_items("officeqa")[0].item
    line = f"CALL grep {json.dumps(CALL['arguments'])}"
    model = scripted([line, "1,842 million"], style=style)
    trajectory = roll(env_of("officeqa"), item, model)
    assert "Road Fund" in str(model.requests[1].to_json())
    assert "RESULT of CALL grep" in str(model.requests[1].to_json())
    assert (trajectory.answer, trajectory.ending) == ("1,842 million", "answered")


def test_an_agent_that_keeps_calling_is_out_of_turns() -> None:
    item = own_items("officeqa")[0].item
    limits = type(env_of("officeqa").params.limits)(tool_turns=3)
    env = env_of("officeqa", limits=limits)
    model = scripted([Reply("", tool_calls=(CALL,))] * 9, style="chat", abilities=TOOLS)
    trajectory = roll(env, item, model)
    assert (trajectory.ending, trajectory.answer, len(model.requests)) == (
        "out_of_turns",
        "",
        4,
    )


def test_an_agent_whose_tools_take_too_long_is_out_of_time() -> None:
    item = own_items("officeqa")[0].item
    limits = type(env_of("officeqa").params.limits)(item_s=0.0)
    model = scripted([Reply("", tool_calls=(CALL,))] * 9, style="chat", abilities=TOOLS)
    assert roll(env_of("officeqa", limits=limits), item, model).ending == "out_of_time"


def test_calls_over_the_limit_of_a_turn_are_answered_but_not_run() -> None:
    item = own_items("officeqa")[0].item
    calls = tuple({**CALL, "id": f"c{n}"} for n in range(3))
    model = scripted([Reply("", tool_calls=calls), "5"], style="chat", abilities=TOOLS)
    trajectory = roll(env_of("officeqa", queries_per_turn=2), item, model)
    assert str(trajectory.turns[0].observation).endswith("[not run: at most 2 calls a turn]")


FILES = {
    "a.txt": "\n".join(f"line {n} of Receipts" for n in range(1, 200)),
    "b.txt": "x" * 9000,
}


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("glob", {"pattern": "*.txt"}, "a.txt\nb.txt"),
        ("glob", {"pattern": "c*"}, "[no file fits]"),
        ("grep", {"path": "a.txt", "pattern": "line 7 OF"}, "7: line 7 of Receipts"),
        ("grep", {"path": "a.txt", "pattern": ".*"}, "[no line holds it]"),
        ("grep", {"path": "a.txt"}, "[grep needs a pattern]"),
        ("read", {"path": "a.txt", "start": 3, "limit": 1}, "line 3 of Receipts"),
        ("read", {"path": "a.txt", "start": "4", "limit": "1"}, "line 4 of Receipts"),
        ("read", {"path": "a.txt", "start": 900}, "[no text there; the file has 199 lines]"),
        ("read", {"path": "../a.txt"}, "[no file '../a.txt'; there are a.txt, b.txt]"),
        ("read", {"path": "/etc/passwd"}, "[no file '/etc/passwd'; there are a.txt, b.txt]"),
        ("rm", {}, "[there is no tool 'rm'; use glob, grep or read]"),
    ],
)
def test_a_tool_answers_in_words(name: str, arguments: dict[str, Any], says: str) -> None:
    assert run_tool(name, arguments, FILES) == says


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read", {"path": "a.txt", "start": " " * 18 + "5"}),
        ("read", {"path": "a.txt", "start": 10**30, "limit": "9" * 5000}),
        ("glob", {"pattern": "[" * 100_000}),
        ("glob", {"pattern": "[z-a\ud800"}),
    ],
)
def test_no_call_of_a_model_raises_or_runs_for_minutes(
    name: str, arguments: dict[str, Any]
) -> None:
    assert run_tool(name, arguments, FILES)


def test_tools_keep_their_limits() -> None:
    found = run_tool("grep", {"path": "a.txt", "pattern": "receipts"}, FILES).split("\n")
    assert len(found) == GREP_LINES + 1
    assert len(run_tool("read", {"path": "b.txt"}, FILES)) < READ_CHARS + 80


def test_broken_calls_are_calls_that_fail() -> None:
    first, second = calls_in('CALL grep {"path": }\nCALL read {"path": "a"}\nnot a call {}')
    assert "_broken" in first["arguments"]
    assert second["arguments"] == {"path": "a"}


def test_a_tolerance_makes_no_new_rollouts_but_an_agent_param_does() -> None:
    item = own_items("officeqa")[0].item

    def key(**params: Any) -> str:
        made = Rollouts(env_of("officeqa", **params), scripted([]), NullStore(), _NoCounter())
        return made.key(item, "skill")

    assert key() == key(tolerance=0.01) == key(data_dirs=("elsewhere",))
    assert key() != key(queries_per_turn=1)
    assert result_values(env_of("officeqa").params)["tolerance"] == 0.0
    assert "data_dirs" not in result_values(env_of("officeqa").params)


class _NoCounter:
    def count(self, trajectory: Any, *, reused: bool) -> None:
        """Nothing is counted."""


def test_a_search_that_outgrows_the_model_keeps_its_turns() -> None:
    item = own_items("officeqa")[0].item
    model = scripted([Reply("", tool_calls=(CALL,))], style="chat", abilities=TOOLS)
    model.answer = _once_then_too_long
    trajectory = roll(env_of("officeqa"), item, model)
    assert (trajectory.ending, len(trajectory.turns)) == ("too_long", 1)


def _once_then_too_long(turn: int) -> Reply:
    if turn:
        raise TooLong("the contract of this test", "too long")
    return Reply("", tool_calls=(CALL,))


def test_named_metrics_are_means_over_items_and_0_without_an_answer() -> None:
    env = env_of("officeqa", limits=type(env_of("officeqa").params.limits)(turns=1))
    item = own_items("officeqa")[0].item
    right = Trajectory((), item.gold)
    found = metric_means(env, [(item, right), (item, replace(right, ending="refused"))])
    assert set(found) >= {"official_0", "official_5pct", "reference_em", "reference_f1"}
    assert set(found.values()) == {0.5}
    assert metric_means(env_of("korqa"), [(item, right)]) == {}

"""Whatever a provider or a program says, the outcome is one of the named ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skilltrail.core.canon import canonical
from skilltrail.models.backends.anthropic_messages import read_message
from skilltrail.models.backends.openai_chat import read_chat, read_completion
from skilltrail.models.backends.openai_responses import read_response
from skilltrail.models.client.classify import Endpoint, Refused
from skilltrail.models.client.client import answered, lost_text, what_came_without_text
from skilltrail.models.client.foreign import body_of
from skilltrail.models.errors import ModelError
from skilltrail.models.harness.claude import read_claude
from skilltrail.models.harness.codex import read_codex
from skilltrail.models.harness.generic import ExecHarness
from skilltrail.models.harness.process import Finished
from skilltrail.models.protocol import Reply
from skilltrail.params.model_options import ExecOptions, RoleOptions


def one_of(words: str) -> st.SearchStrategy[str]:
    return st.sampled_from(words.split())


HERE = Endpoint("target", "lab", "m", None)
# Names and words that protocols use, so that drawn values come near real ones.
NAMES = one_of(
    "choices message content text type output role tool_calls function name arguments id error "
    "code usage prompt_tokens completion_tokens input_tokens output_tokens finish_reason "
    "stop_reason status refusal reasoning_content model result subtype is_error item event "
    "input errors detail incomplete_details reason structured_output api_error_status call_id "
    "function_call native_finish_reason"
)
WORDS = one_of(
    "text thinking tool_use function_call message reasoning output_text refusal assistant user "
    "result turn.completed turn.failed item.completed agent_message error success stop length "
    "tool_calls content_filter completed queued <synthetic> None null {} [1] <think> </think> "
    "<|channel|>final<|message|>"
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 2000)
    | st.floats()
    | WORDS
    | st.text(max_size=6)
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT = {
    "model": "m",
    "choices": [
        {"finish_reason": "stop", "message": {"role": "assistant", "content": [
            {"type": "text", "text": "GOLD"}], "refusal": None, "tool_calls": [CALL]}}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3,
              "prompt_tokens_details": {"cached_tokens": 1}},
}  # fmt: skip
COMPLETION = {"choices": [{"text": "GOLD", "finish_reason": "stop"}], "usage": {}}
RESPONSE = {
    "status": "completed", "incomplete_details": None, "error": None,
    "output": [{"type": "reasoning", "summary": []},
               {"type": "message", "content": [{"type": "output_text", "text": "GOLD"}]},
               {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}],
    "usage": {"input_tokens": 9, "output_tokens": 3},
}  # fmt: skip
MESSAGE = {
    "content": [{"type": "text", "text": "GOLD"},
                {"type": "tool_use", "id": "1", "name": "f", "input": {}}],
    "stop_reason": "end_turn", "usage": {"input_tokens": 9, "output_tokens": 3},
}  # fmt: skip
Read = Callable[[Endpoint, Any], Reply]
PROTOCOLS: dict[str, tuple[Read, Any]] = {
    "chat": (read_chat, CHAT),
    "completions": (read_completion, COMPLETION),
    "responses": (lambda endpoint, body: read_response(endpoint, body, 3), RESPONSE),
    "anthropic": (read_message, MESSAGE),
}
CLAUDE = [
    {"type": "assistant", "message": {"model": "m", "content": [
        {"type": "text", "text": "GOLD"}, {"type": "tool_use", "id": "u", "name": "Bash"}]}},
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "u"}]}},
    {"type": "result", "subtype": "success", "is_error": False, "result": "GOLD",
     "usage": {"input_tokens": 9, "output_tokens": 3}},
]  # fmt: skip
CODEX = [
    {"type": "item.completed", "item": {"type": "agent_message", "text": "GOLD"}},
    {"type": "error", "message": "odd"},
    {"type": "turn.completed", "usage": {"input_tokens": 9, "output_tokens": 3}},
]
PROGRAM = RoleOptions(
    backend="exec",
    model="m",
    exec=ExecOptions(argv=("x",), parser="jsonl", text_field="a.text"),
)
PROGRAMS: dict[str, tuple[Callable[[Finished], Reply], list[Any]]] = {
    "claude": (lambda finished: read_claude(HERE, finished), CLAUDE),
    "codex": (lambda finished: read_codex(HERE, "m", finished), CODEX),
    "exec": (ExecHarness(PROGRAM, HERE, {}, "").read, [{"a": {"text": "GOLD"}}]),
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside a JSON value, its own () included."""
    inside: Any = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    return [path, *(at for key, inner in inside for at in places(inner, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a copy of a JSON value with `new` at `path`."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


def strings(value: Any) -> set[str]:
    """Return all texts in a JSON value, joined ones too where a list holds several."""
    if isinstance(value, str):
        return {value}
    inside = value.values() if isinstance(value, dict) else value
    return set().union(*map(strings, inside)) if isinstance(value, (dict, list)) else set()


def check(make: Callable[[], Reply], told: Any) -> None:
    """Make a reply, and hold that it is one or a named error, never a text made of null."""
    try:
        reply = answered(make())
        came = what_came_without_text(reply)
        if came:
            raise lost_text(HERE.asked, came)
    except (ModelError, Refused):
        return
    assert reply.finish in ("stop", "length", "tool", "refusal", "out_of_turns")
    canonical(reply.to_json())
    assert Reply.from_json(json.loads(json.dumps(reply.to_json()))) == replace(reply, blocks=())
    assert all(type(n) is int and n >= 0 for n in reply.usage.values())
    assert reply.text != "None" or any("None" in text for text in strings(told))
    for call in reply.tool_calls:
        assert isinstance(call["name"], str)
        assert isinstance(call["arguments"], dict)


def spoiled(sound: Any) -> st.SearchStrategy[Any]:
    """Return sound values with one to three places put to something else."""

    @st.composite
    def draw(draw: st.DrawFn) -> Any:
        value = sound
        for _ in range(draw(st.integers(1, 3))):
            value = put(value, draw(st.sampled_from(places(value))), draw(JSON))
        return value

    return draw()


@pytest.mark.parametrize("name", PROTOCOLS)
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_body_of_a_200_has_a_named_outcome(name: str, data: st.DataObject) -> None:
    read, sound = PROTOCOLS[name]
    body = data.draw(JSON | spoiled(sound))
    check(lambda: read(HERE, body_of(HERE, json.dumps(body).encode())), body)


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_output_of_a_program_has_a_named_outcome(name: str, data: st.DataObject) -> None:
    read, sound = PROGRAMS[name]
    events = data.draw(spoiled(sound) | st.lists(JSON, max_size=3))
    lines = events if isinstance(events, list) else [events]
    stdout = "\n".join(json.dumps(line) for line in lines)
    code = data.draw(st.sampled_from([0, 0, 0, 1, 2]))
    check(lambda: read(Finished(code, stdout, data.draw(st.sampled_from(["", "x"])))), lines)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_of_a_200_have_a_named_outcome(data: bytes) -> None:
    check(lambda: read_chat(HERE, body_of(HERE, data)), data.decode("utf-8", "replace"))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_sound_bodies_that_are_spoiled_here_are_replies(name: str) -> None:
    read, sound = PROTOCOLS[name]
    assert read(HERE, body_of(HERE, json.dumps(sound).encode())).text == "GOLD"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_sound_outputs_that_are_spoiled_here_are_replies(name: str) -> None:
    read, sound = PROGRAMS[name]
    assert read(Finished(0, "\n".join(map(json.dumps, sound)), "")).text == "GOLD"

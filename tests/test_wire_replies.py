"""What real servers answer, each shape with what it means: a reply, asked again, or a stop.

Every body is sent by a loopback server to the real SDKs. The shapes are those that users of
such servers have reported.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from skilltrail.models.client.client import what_came_without_text
from skilltrail.models.errors import LostText, ModelError, Transient
from skilltrail.models.probe import probe
from skilltrail.models.protocol import Message, Model, Reply, Request
from skilltrail.models.registry import open_model
from tests.fault_server import Call, Fault, FaultServer
from tests.role_options import KEYS, options_at

ASK = Request(system="Be brief.", prompt="Say ok.")
USED = {"prompt_tokens": 9, "completion_tokens": 3}
USED_R = {"input_tokens": 9, "output_tokens": 3}
ONE = {"prompt_tokens": 9, "completion_tokens": 1}
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Let me look."}]}


def chat(message: Any, finish: Any = "stop", usage: Any = USED, **more: Any) -> dict[str, Any]:
    """Return the body of a chat completion."""
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "c", "model": "m", "choices": [choice], "usage": usage, **more}


def said(text: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def response(*output: Any, status: Any = "completed", usage: Any = USED_R, **more: Any) -> Any:
    return {"id": "r", "model": "m", "status": status, "output": list(output), "usage": usage,
            **more}  # fmt: skip


def spoken(content: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": content}


def message(content: Any, stop: Any = "end_turn", usage: Any = USED_R) -> dict[str, Any]:
    return {"type": "message", "model": "m", "content": content, "stop_reason": stop,
            "usage": usage}  # fmt: skip


def completion(text: Any, finish: Any = "stop", usage: Any = USED, **more: Any) -> Any:
    choice = {"index": 0, "text": text, "finish_reason": finish, **more}
    return {"id": "c", "model": "m", "choices": [choice], "usage": usage}


def ask(
    name: str, *bodies: Any, request: Request = ASK, attempts: int = 2, **changes: Any
) -> tuple[Reply | ModelError, list[Call]]:
    """Return what a backend makes of `bodies`, one a call and the last for all further ones."""

    def spoil(call: Call) -> Fault:
        body = bodies[min(call.number, len(bodies)) - 1]
        return Fault(raw=body if isinstance(body, bytes) else json.dumps(body).encode())

    with FaultServer(spoil) as server:
        options = options_at(name, server.url)
        policy = replace(options.retry, attempts=attempts)
        model = open_model("target", replace(options, retry=policy, **changes), environ=KEYS)
        return asyncio.run(_outcome(model, request)), server.calls


async def _outcome(model: Model, request: Request) -> Reply | ModelError:
    try:
        return await model.complete(request)
    except ModelError as error:
        return error
    finally:
        await model.close()


def text_of(found: Reply | ModelError) -> str:
    assert isinstance(found, Reply), found
    return found.text


# A whole text, whatever stands around it.
TEXTS = {
    "parts of text and thinking": (
        "chat",
        chat(said([THOUGHT, {"type": "text", "text": "GOLD"}])),
    ),
    "parts without a type": ("chat", chat(said([{"text": "GO"}, {"text": "LD"}]))),
    "parts that are plain texts": ("chat", chat(said(["GO", "LD"]))),
    "an unknown part and a null": (
        "chat",
        chat(said([{"type": "hologram"}, None, {"type": "text", "text": "GOLD"}])),
    ),
    "a text inside a text object": (
        "chat",
        chat(said([{"type": "text", "text": {"value": "GOLD"}}])),
    ),
    "no finish reason": ("chat", chat(said("GOLD"), None)),
    "an empty finish reason": ("chat", chat(said("GOLD"), "")),
    "a finish reason in capitals": ("chat", chat(said("GOLD"), "STOP")),
    "a finish reason of an enum's name": ("chat", chat(said("GOLD"), "FinishReason.STOP")),
    "a finish reason of a token's name": ("chat", chat(said("GOLD"), "eos_token")),
    "a finish reason nobody has heard of": ("chat", chat(said("GOLD"), "satisfied")),
    "a finish reason that is a number": ("chat", chat(said("GOLD"), 1)),
    "an empty refusal": ("chat", chat(said("GOLD", refusal=""))),
    "empty tool calls": ("chat", chat(said("GOLD", tool_calls=[], function_call=None))),
    "an end by tool calls without any": ("chat", chat(said("GOLD"), "tool_calls")),
    "a null error beside it": ("chat", chat(said("GOLD"), error=None)),
    "an empty error beside it": (
        "chat",
        chat(said("GOLD"), error={"code": None, "message": ""}),
    ),
    "a provider's status that is fine": (
        "minimax",
        chat(said("GOLD"), base_resp={"status_code": 0, "status_msg": "success"}),
    ),
    "no usage": ("chat", chat(said("GOLD"), usage=None)),
    "reasoning beside it": ("chat", chat(said("GOLD", reasoning_content="The text says"))),
    "a number for the model's name": ("chat", {**chat(said("GOLD")), "model": 7}),
    "a key twice": ("chat", json.dumps(chat(said("GOLD")))[:-1].encode() + b', "model": "n"}'),
    "numbers that are none": (
        "chat",
        json.dumps(chat(said("GOLD"), logprob=float("-inf"))).encode(),
    ),
    "a byte order mark": ("chat", b"\xef\xbb\xbf" + json.dumps(chat(said("GOLD"))).encode()),
    "a list around the body": ("chat", [chat(said("GOLD"))]),
    "a plain content of a response": ("responses", response(spoken("GOLD"))),
    "a reasoning item before": (
        "responses",
        response(
            {"type": "reasoning", "summary": []},
            spoken([{"type": "output_text", "text": "GOLD"}]),
        ),
    ),
    "a null status": ("responses", response(spoken("GOLD"), status=None)),
    "the field that the SDKs compute": ("responses", response(output_text="GOLD")),
    "what was said on the way, marked as such": (
        "responses",
        response(
            {**spoken("Let me look."), "phase": "commentary"},
            {**spoken("GOLD"), "phase": "final_answer"},
        ),
    ),
    "blank lines before the body": (
        "chat",
        b"\n\n  \n" + json.dumps(chat(said("GOLD"))).encode(),
    ),
    "a null content beside another": ("responses", response(spoken(None), spoken("GOLD"))),
    "a plain content of a message": ("anthropic", message("GOLD")),
    "a thinking block before": (
        "anthropic",
        message([THOUGHT, {"type": "text", "text": "GOLD"}]),
    ),
    "no stop reason": ("anthropic", message([{"type": "text", "text": "GOLD"}], None)),
    "a null text before": (
        "anthropic",
        message([{"type": "text", "text": None}, {"type": "text", "text": "GOLD"}]),
    ),
    "a completion without a finish reason": ("completions", completion("GOLD", None)),
    "a completion that ended by its end token": ("completions", completion("GOLD", "eos")),
}


@pytest.mark.parametrize("shape", TEXTS)
def test_a_whole_text_is_a_reply(shape: str) -> None:
    """Cases wire-01 and wire-05: the text parts are the reply, thinking is dropped, a text
    without a finish reason is a reply that stopped, and it is paid for once."""
    name, body = TEXTS[shape]
    found, calls = ask(name, body)
    assert text_of(found) == "GOLD"
    assert isinstance(found, Reply)
    assert found.finish == "stop"
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("name", "body", "finish"),
    [
        ("chat", chat(said("half"), "MAX_TOKENS"), "length"),
        ("chat", chat(said("half"), "FinishReason.MAX_TOKENS"), "length"),
        ("chat", chat(said("half"), "model_length"), "length"),
        ("chat", chat(said("half"), "FINISH_REASON_MAX_TOKENS"), "length"),
        ("chat", chat(said("half"), "maxTokens"), "length"),
        ("chat", chat(said("half"), "TokenLimitReached"), "length"),
        ("chat", chat(None, "content_filter: PROHIBITED_CONTENT"), "refusal"),
        ("chat", chat(said("half"), "contentFilter"), "refusal"),
        ("chat", chat(said(None), "IMAGE_SAFETY"), "refusal"),
        ("chat", {"choices": [], "promptFeedback": {"blockReason": "OTHER"}}, "refusal"),
        ("anthropic", message("half", "model_context_window_exceeded"), "length"),
        ("responses", response(spoken("half"), status="incomplete"), "length"),
        ("chat", chat(said(""), "SAFETY", usage=None), "refusal"),
        ("chat", chat(said(""), "content_filter: SAFETY"), "refusal"),
        ("chat", chat(said(None, refusal="I can't."), usage=None), "refusal"),
        ("chat", chat(said([{"type": "refusal", "refusal": "no"}])), "refusal"),
        ("anthropic", message([], "refusal"), "refusal"),
        ("responses", response(status="incomplete",
                               incomplete_details={"reason": "content_filter"}), "refusal"),
    ],
)  # fmt: skip
def test_a_cut_and_a_refusal_are_known_in_every_provider_s_words(
    name: str, body: Any, finish: str
) -> None:
    found, calls = ask(name, body)
    assert isinstance(found, Reply)
    assert (found.finish, len(calls)) == (finish, 1)


LOST = {
    "reasoning_content": ("chat", chat(said("", reasoning_content="The text says GOLD …"))),
    "reasoning": ("chat", chat(said(None, reasoning="Hm."), usage=ONE)),
    "reasoning_details": (
        "chat",
        chat(said("", reasoning_details=[{"type": "reasoning.text", "text": "x"}]), usage=ONE),
    ),
    "thoughts": ("chat", chat(said("", thoughts="Hm."), usage=ONE)),
    "320 output tokens": (
        "chat",
        chat(said(""), usage={"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 329}),
    ),
    "3 output tokens": ("chat", chat(said(""))),
    "no count of its tokens": ("chat", chat(said(""), usage=None)),
    "count of its tokens": (
        "chat",
        chat(said(""), usage={"prompt_tokens": 0, "completion_tokens": 0}),
    ),
    "thinking": ("chat", chat(said([THOUGHT]), usage=ONE)),
    "a tool call that is none": ("chat", chat(said(""), "tool_calls", usage=ONE)),
    "reasoning in the text": ("chat", chat(said("<think>GOLD</think>\n"), usage=ONE)),
    "redacted_thinking": (
        "anthropic",
        message(
            [{"type": "redacted_thinking", "data": "x"}],
            usage={"input_tokens": 9, "output_tokens": 1},
        ),
    ),
    "server_tool_use": ("anthropic", message([{"type": "server_tool_use", "name": "x"}])),
    "40 output tokens": (
        "anthropic",
        message([], usage={"input_tokens": 9, "output_tokens": 40}),
    ),
    "reasoning item": ("responses", response({"type": "reasoning", "summary": []})),
    "an unknown item": ("responses", response({"id": "x"}, usage=None)),
    "web_search_call": ("responses", response({"type": "web_search_call"}, usage=None)),
    "of its tokens": ("completions", completion("", usage=None)),
    "12 output tokens": (
        "completions",
        completion("", usage={"prompt_tokens": 9, "completion_tokens": 12}),
    ),
}


@pytest.mark.parametrize("came", LOST)
def test_no_text_with_evidence_that_output_came_is_retried_then_missing(came: str) -> None:
    """Case wire-08: a rollout without a reply is missing, never a score of 0."""
    name, body = LOST[came]
    found, calls = ask(name, body)
    assert isinstance(found, LostText)
    assert came.removesuffix(" item") in str(found)
    assert len(calls) == 2


@pytest.mark.parametrize("name", ["chat", "responses", "anthropic", "completions"])
def test_a_text_that_comes_at_the_second_try_is_the_reply_and_both_are_paid(name: str) -> None:
    whole = {"chat": chat(said("GOLD")), "responses": response(spoken("GOLD")),
             "anthropic": message("GOLD"), "completions": completion("GOLD")}[name]  # fmt: skip
    lost = {"chat": chat(said("")), "responses": response(), "anthropic": message([]),
            "completions": completion("")}[name]  # fmt: skip
    found, calls = ask(name, lost, whole)
    assert isinstance(found, Reply)
    assert (found.text, found.attempts, found.usage["output"]) == ("GOLD", 2, 6)
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("name", "body", "text"),
    [
        ("chat", chat(said(""), usage=ONE), ""),
        ("chat", chat(said(None), usage={"prompt_tokens": 9, "completion_tokens": 0}), ""),
        ("chat", chat(said("\n")), "\n"),
        ("completions", completion("", usage=ONE), ""),
        ("completions", completion(" "), " "),
        ("anthropic", message([], usage={"input_tokens": 9, "output_tokens": 1}), ""),
        ("anthropic", message([{"type": "text", "text": " \n"}]), " \n"),
        ("responses", response(usage={"input_tokens": 9, "output_tokens": 1}), ""),
        ("responses", response(spoken([{"type": "output_text", "text": "\t"}])), "\t"),
    ],
)
def test_an_end_at_once_and_blanks_are_answers(name: str, body: Any, text: str) -> None:
    found, calls = ask(name, body)
    assert (text_of(found), len(calls)) == (text, 1)


STOP = "\nQuestion:"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("chat", chat(said(""))),
        ("chat", chat(said(None))),
        ("completions", completion("")),
        ("anthropic", {**message([], "stop_sequence"), "stop_sequence": STOP}),
    ],
)
@pytest.mark.parametrize("field", ["stop_reason", "matched_stop"])
def test_the_tokens_of_a_stop_that_the_server_names_are_no_sign_of_a_lost_text(
    name: str, body: Any, field: str
) -> None:
    body = json.loads(json.dumps(body))
    for choice in body.get("choices", []):
        choice[field] = STOP
    request = replace(ASK, decoding=replace(ASK.decoding, stop=(STOP,)))
    found, calls = ask(name, body, request=request)
    assert (text_of(found), len(calls)) == ("", 1)
    found, _ = ask(name, body)  # a stop that nobody asked for is a word like any other
    assert isinstance(found, LostText)


def test_a_stop_inside_the_reasoning_loses_the_text() -> None:
    body = chat(said("", reasoning_content="Hm."))
    body["choices"][0]["stop_reason"] = STOP
    request = replace(ASK, decoding=replace(ASK.decoding, stop=(STOP,)))
    assert isinstance(ask("chat", body, request=request)[0], LostText)


@pytest.mark.parametrize("message", [None, {}])
def test_a_cap_that_left_no_message_at_all_is_tried_with_a_higher_one(message: Any) -> None:
    found, calls = ask("chat", chat(message, "length"), chat(said("GOLD")))
    assert (text_of(found), len(calls)) == ("GOLD", 2)
    caps = [call.body["max_tokens"] for call in calls]
    assert caps[1] > caps[0]


def test_a_text_that_begins_with_a_stop_is_not_lost() -> None:
    request = replace(ASK, decoding=replace(ASK.decoding, stop=("\n",)))
    found, _ = ask("responses", response(spoken("\nmore")), request=request)
    assert text_of(found) == ""


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("chat", chat(said(5)), "content of type int"),
        ("chat", chat(said({"text": "x"})), "content of type dict"),
        ("chat", chat("text"), "no message in the choice"),
        ("chat", chat(None), "no message in the choice"),
        ("chat", {"choices": []}, "no choice"),
        ("chat", {"choices": None, "model": "m"}, 'what came: choices null, model "m"'),
        ("chat", {"choices": {"0": "x"}}, "no choice"),
        ("chat", [], "no JSON object"),
        ("chat", "ok", "no JSON object"),
        ("chat", b"not json", "not json"),
        ("chat", b'{"a": ' * 400, "no JSON"),
        ("chat", chat(said("", tool_calls=[{"function": {"name": None}}])), "without a name"),
        ("chat", chat(said("half"), "error"), "finish reason 'error'"),
        ("chat", chat(said("half"), "abort"), "finish reason 'abort'"),
        ("chat", chat(said("half"), "network_error"), "finish reason"),
        (
            "chat",
            chat(said("half"), "function_call_filter: MALFORMED_FUNCTION_CALL"),
            "finish reason",
        ),
        ("chat", chat(said("half"), "insufficient_system_resource"), "finish reason"),
        ("completions", completion(None), "no text in the choice"),
        ("completions", completion(["x"]), "no text in the choice"),
        ("responses", {"output": None, "status": "completed"}, "no output"),
        ("responses", response(spoken(3)), "content of type int"),
        ("responses", response(spoken("half"), status="queued"), "'queued'"),
        ("responses", response(spoken("half"), status="in_progress"), "'in_progress'"),
        ("responses", response(status="cancelled"), "'cancelled'"),
        ("responses", response({"type": "function_call", "name": 3}), "without a name"),
        ("anthropic", message(None), "no content"),
        ("anthropic", {"content": 3}, "no content"),
        ("anthropic", message([{"type": "tool_use"}]), "without a name"),
        ("anthropic", message("half", "pause_turn"), "pause_turn"),
    ],
)
def test_another_shape_is_an_unusable_answer_that_says_what_came(
    name: str, body: Any, words: str
) -> None:
    found, calls = ask(name, body)
    assert isinstance(found, Transient)
    assert words in str(found)
    assert len(calls) == 2


TOOL = {"name": "f", "parameters": {"type": "object"}}


@pytest.mark.parametrize(
    ("name", "body", "arguments"),
    [
        ("chat", [{"id": "1", "type": "", "function": {"name": "f", "arguments": "{}"}}], {}),
        ("chat", [{"id": "1", "function": {"name": "f", "arguments": '{"a": 1}'}}], {"a": 1}),
        ("chat", [{"function": {"name": "f", "arguments": {"a": 1}}}], {"a": 1}),
        ("chat", [{"function": {"name": "f", "arguments": None}}], {}),
        ("chat", [{"function": {"name": "f"}}], {}),
        ("chat", [{"function": {"name": "f", "arguments": ""}}], {}),
        ("chat", [{"function": {"name": "f", "arguments": "[1]"}}], {"_unparsed": "[1]"}),
        ("chat", [{"function": {"name": "f", "arguments": 3}}], {"_unparsed": "3"}),
        (
            "chat",
            [None, {"function": {"name": "f", "arguments": '{"a"'}}],
            {"_unparsed": '{"a"'},
        ),
    ],
)
def test_a_call_with_a_function_is_a_call_whatever_its_type_says(
    name: str, body: Any, arguments: Any
) -> None:
    """Case wire-04."""
    request = Request(messages=(Message.text("user", "go"),), tools=(TOOL,))
    found, calls = ask(name, chat(said(None, tool_calls=body), "tool_calls"), request=request)
    assert isinstance(found, Reply)
    assert found.finish == "tool"
    (call,) = found.tool_calls
    assert (call["name"], call["arguments"]) == ("f", arguments)
    assert isinstance(call["id"], str)
    assert call["id"]
    assert len(calls) == 1


@pytest.mark.parametrize(
    "told",
    [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
        [{"id": "a", "name": "f", "arguments": {"a": 1}}],
        [{"id": "a", "type": "function", "name": "f", "arguments": '{"a": 1}'}],
    ],
)
def test_a_call_that_is_no_list_or_lacks_its_wrapping_is_a_call(told: Any) -> None:
    request = Request(messages=(Message.text("user", "go"),), tools=(TOOL,))
    found, _ = ask("chat", chat(said(None, tool_calls=told), "tool_calls"), request=request)
    assert isinstance(found, Reply)
    assert found.tool_calls == ({"id": "a", "name": "f", "arguments": {"a": 1}},)


@pytest.mark.parametrize(
    "ids", [("x", "x", "x"), ("call_2", "", ""), (None, "call_1", "call_1")]
)
def test_the_calls_of_one_reply_have_ids_of_their_own(ids: tuple[Any, ...]) -> None:
    told = [{"id": id, "function": {"name": "f", "arguments": "{}"}} for id in ids]
    request = Request(messages=(Message.text("user", "go"),), tools=(TOOL,))
    found, _ = ask("chat", chat(said(None, tool_calls=told), "tool_calls"), request=request)
    assert isinstance(found, Reply)
    own = [call["id"] for call in found.tool_calls]
    assert len({*own}) == 3
    assert all(own)


def test_a_call_of_an_unknown_kind_beside_a_text_is_named() -> None:
    told = [{"id": "a", "type": "custom", "custom": {"name": "g", "input": "x"}}]
    found, _ = ask("chat", chat(said("GOLD", tool_calls=told)))
    assert text_of(found) == "GOLD"
    assert isinstance(found, Reply)
    assert found.blocks == ("a tool call that is none",)


@pytest.mark.parametrize(
    ("usage", "output"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 312}, 303),
        ({"prompt_tokens": 9.0, "completion_tokens": 3.0}, 3),
        ({"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 0}, 3),
        ({"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}, 3),
    ],
)
def test_reasoning_that_only_the_total_holds_is_counted(
    usage: dict[str, Any], output: int
) -> None:
    found, _ = ask("chat", chat(said("GOLD"), usage=usage))
    assert isinstance(found, Reply)
    assert (found.usage["input"], found.usage["output"]) == (9, output)


def test_calls_of_older_and_other_shapes_are_calls() -> None:
    request = Request(messages=(Message.text("user", "go"),), tools=(TOOL,))
    old = chat(said(None, function_call={"name": "f", "arguments": "{}"}), "function_call")
    use = message([{"type": "tool_use", "id": None, "name": "f", "input": '{"a": 1}'}], None)
    item = response({"type": "function_call", "name": "f", "arguments": {"a": 1}})
    for name, body in (("chat", old), ("anthropic", use), ("responses", item)):
        found, _ = ask(name, body, request=request, abilities=("tools",))
        assert isinstance(found, Reply)
        assert [call["name"] for call in found.tool_calls] == ["f"]
        assert found.finish == "tool"


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": None, "completion_tokens": None},
        "free",
        {"prompt_tokens": -1, "completion_tokens": -1},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": "9", "completion_tokens": "3"},
        {"prompt_tokens": 1e400},
        [9, 3],
    ],
)
def test_a_count_that_is_none_is_unknown_and_not_zero(usage: Any) -> None:
    found, _ = ask("chat", chat(said("GOLD"), usage=usage))
    assert isinstance(found, Reply)
    assert found.usage == {}


def test_what_speaks_for_a_lost_text_is_nothing_else() -> None:
    used = {"input": 9, "output": 1}
    for reply in (
        Reply("", usage=used),
        Reply(" ", blocks=("thinking",)),
        Reply("", "refusal", blocks=("thinking",)),
        Reply("", "out_of_turns"),
        Reply("", "tool", ({"id": "1", "name": "f", "arguments": {}},)),
    ):
        assert what_came_without_text(reply) == ()
    assert what_came_without_text(Reply("", usage={})) == ("no count of its tokens",)


@pytest.mark.parametrize(
    ("name", "body", "kinds"),
    [
        (
            "chat",
            chat(said("", reasoning_content="x")),
            ["reasoning_content", "3 output tokens"],
        ),
        ("anthropic", message([THOUGHT]), ["thinking", "3 output tokens"]),
        ("responses", response({"type": "reasoning", "summary": []}), ["reasoning"]),
    ],
)
def test_a_probe_fails_and_lists_the_kinds_of_blocks_that_came(
    name: str, body: Any, kinds: list[str]
) -> None:
    fault = Fault(raw=json.dumps(body).encode())
    with FaultServer(lambda _: fault) as server:
        found = asyncio.run(probe("target", options_at(name, server.url), KEYS))
        assert len(server.calls) == 1
    assert not found.ok
    assert all(kind in found.problem for kind in kinds)


def test_a_probe_takes_a_reply_cut_by_its_small_cap_for_a_working_role() -> None:
    body = chat(said("", reasoning_content="Let me"), "length")
    fault = Fault(raw=json.dumps(body).encode())
    with FaultServer(lambda _: fault) as server:
        assert asyncio.run(probe("target", options_at("chat", server.url), KEYS)).ok

"""One contract over every HTTP backend: the real SDKs against a server that speaks each
protocol. Each test runs over all of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from skilltrail.models.errors import (
    EmptyCompletion,
    ModelConfigError,
    RateLimited,
    TimedOut,
    TooLong,
    Transient,
)
from skilltrail.models.protocol import Decoding, Message, Model, Reply, Request
from skilltrail.models.registry import open_model
from skilltrail.params.model_options import RetryOptions, RoleOptions
from tests.fault_server import Answer, Call, Fault, FaultServer, Say, Spoil
from tests.role_options import CHATS, FAST, HTTP, KEYS, options_at

ASK = Request(system="Be brief.", prompt="Say ok.")
every = pytest.mark.parametrize("name", HTTP)
every_chat = pytest.mark.parametrize("name", CHATS)

Use = Callable[[Model], Awaitable[Any]]


def ask(
    name: str,
    use: Use | Request = ASK,
    spoil: Spoil = lambda _: None,
    say: Say = lambda _: Answer(),
    **changes: Any,
) -> tuple[Any, list[Call]]:
    """Open backend `name` at a fresh server, use it, and return what came and what was sent."""
    with FaultServer(spoil, say) as server:

        async def go() -> Any:
            options = replace(options_at(name, server.url), **changes)
            model = open_model("target", options, environ=KEYS)
            try:
                if isinstance(use, Request):
                    return await model.complete(use)
                return await use(model)
            finally:
                await model.close()

        return asyncio.run(go()), server.calls


def sent_text(call: Call) -> str:
    return json.dumps(call.body)


@every
def test_a_reply_has_text_finish_model_and_usage(name: str) -> None:
    say = Answer("fine", input=12, output=3, cached=8)
    reply, calls = ask(name, say=lambda _: say)
    assert (reply.text, reply.finish, reply.model, reply.attempts) == ("fine", "stop", "m", 1)
    assert reply.usage["input"] == 12
    assert reply.usage["output"] == 3
    assert reply.usage["cached"] == 8
    assert len(calls) == 1


@every
def test_the_key_goes_in_a_header_and_nowhere_else(name: str) -> None:
    _, calls = ask(name)
    headers = " ".join(calls[0].headers.values())
    assert KEYS["LAB_KEY"] in headers
    assert KEYS["LAB_KEY"] not in calls[0].path + sent_text(calls[0])


@every
def test_the_system_text_stands_before_the_prompt(name: str) -> None:
    _, calls = ask(name)
    body = calls[0].body
    if name == "completions":
        assert body["prompt"] == "Be brief.Say ok."
        return
    if name == "responses":
        assert body["instructions"] == "Be brief."
    elif name == "anthropic":
        assert body["system"][0]["text"] == "Be brief."
        assert body["system"][0]["cache_control"] == {"type": "ephemeral"}
    else:
        assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert "Say ok." in sent_text(calls[0])


@every
def test_what_is_not_set_is_not_sent(name: str) -> None:
    _, calls = ask(name, max_tokens=None)
    allowed = {"model", "messages", "prompt", "input", "instructions", "system", "store"}
    allowed |= {"max_tokens"} if name == "anthropic" else set()
    allowed |= {"seed"} if name == "vllm" else set()
    assert set(calls[0].body) <= allowed


@every
def test_params_win_over_the_request(name: str) -> None:
    request = replace(ASK, decoding=Decoding(temperature=0.9, top_p=0.5, max_tokens=7))
    _, calls = ask(name, request, temperature=0.1, max_tokens=None)
    body = calls[0].body
    cap = {"responses": "max_output_tokens", "azure": "max_completion_tokens"}
    assert body["temperature"] == 0.1
    assert body["top_p"] == 0.5
    assert body[cap.get(name, "max_tokens")] == 7


@every
def test_an_omitted_setting_is_never_sent(name: str) -> None:
    request = replace(ASK, decoding=Decoding(temperature=0.9))
    _, calls = ask(name, request, omit=("temperature",))
    assert "temperature" not in calls[0].body


@every
def test_repeats_have_keys_of_their_own_and_the_index_is_not_sent(name: str) -> None:
    """Public case cache-02."""

    async def twice(model: Model) -> list[str]:
        first, second = (replace(ASK, repeat=n, turn=n) for n in (0, 1))
        await model.complete(first)
        await model.complete(second)
        return [first.key(model.identity), second.key(model.identity)]

    keys, calls = ask(name, twice, temperature=0.7)
    assert keys[0] != keys[1]
    bodies = [{k: v for k, v in call.body.items() if k != "seed"} for call in calls]
    assert bodies[0] == bodies[1]
    assert "repeat" not in sent_text(calls[0])


@every
def test_the_identity_names_no_url_path_key_or_time(name: str) -> None:
    async def identity(model: Model) -> Any:
        return dict(model.identity)

    found, _ = ask(name, identity)
    text = json.dumps(found)
    assert found["provider"] == "lab"
    for hidden in ("127.0.0.1", "http", KEYS["LAB_KEY"], "LAB_KEY", "timeout"):
        assert hidden not in text


@every
@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_stops_at_once_and_names_the_variable(name: str, status: int) -> None:
    with pytest.raises(ModelConfigError, match="LAB_KEY"):
        ask(name, spoil=lambda _: Fault(status=status))


@every
def test_a_missing_key_is_named_before_any_call(name: str) -> None:
    with pytest.raises(ModelConfigError, match="OTHER_KEY"):
        ask(name, key_env="OTHER_KEY")


@every
def test_an_unknown_model_stops_and_names_the_param(name: str) -> None:
    with pytest.raises(ModelConfigError, match="target.model"):
        ask(name, spoil=lambda _: Fault(status=404))


@every
def test_a_refused_setting_stops_and_names_the_way_out(name: str) -> None:
    body = {"error": {"message": "Unsupported parameter: temperature"}}
    with pytest.raises(ModelConfigError, match=r"temperature.*target.omit"):
        ask(name, spoil=lambda _: Fault(status=400, body=body))


@every
def test_too_long_is_the_requests_own_outcome(name: str) -> None:
    body = {"error": {"message": "prompt is too long: 9000 tokens > 4096 maximum"}}
    with pytest.raises(TooLong):
        ask(name, spoil=lambda _: Fault(status=400, body=body))


@every
@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=500),
        Fault(status=503),
        Fault(status=408),
        Fault(cut=True),
        Fault(raw=b""),
        Fault(raw=b'{"id": "x", "choi'),
        Fault(raw=b"{}"),
        Fault(raw=b"null"),
        Fault(raw=b'{"id": "\xff"}'),
        Fault(raw=b"[" * 100_000),
        Fault(status=429, headers={"retry-after": "0"}),
    ],
    ids=[
        "500",
        "503",
        "408",
        "cut",
        "empty",
        "torn",
        "nothing",
        "null",
        "bytes",
        "deep",
        "429",
    ],
)
def test_one_failure_is_got_over(name: str, fault: Fault) -> None:
    reply, calls = ask(name, spoil=lambda call: fault if call.number == 1 else None)
    assert (reply.text, reply.attempts, len(calls)) == ("ok", 2, 2)


@every
def test_attempts_are_bounded(name: str) -> None:
    policy = RetryOptions(attempts=2, give_up_after=50)
    with FaultServer(lambda _: Fault(status=500)) as server:
        options = replace(options_at(name, server.url), retry=policy)
        with pytest.raises(Transient, match="500"):
            asyncio.run(open_model("target", options, environ=KEYS).complete(ASK))
        assert len(server.calls) == 2


@every
@pytest.mark.parametrize("after_timeout", [0, 1])
def test_a_slow_call_is_made_again_as_often_as_params_say(
    name: str, after_timeout: int
) -> None:
    """Public case retry-06: at most one resubmission, 0 disables."""
    policy = replace(FAST, attempts=5, after_timeout=after_timeout)
    with FaultServer(lambda _: Fault(hang=True)) as server:
        options = replace(options_at(name, server.url), retry=policy, timeout_s=0.1)
        model = open_model("target", options, environ=KEYS)
        with pytest.raises(TimedOut, match=r"0\.1 s"):
            asyncio.run(model.complete(ASK))
        assert len(server.calls) == 1 + after_timeout


@every
def test_a_reply_that_drips_is_bounded_by_the_whole_call(name: str) -> None:
    with pytest.raises(TimedOut):
        ask(name, spoil=lambda _: Fault(drip_s=0.05), timeout_s=0.3,
            retry=replace(FAST, after_timeout=0))  # fmt: skip


@every
def test_a_cut_reply_keeps_its_finish_reason(name: str) -> None:
    reply, calls = ask(name, say=lambda _: Answer("half a", "length"))
    assert (reply.text, reply.finish, len(calls)) == ("half a", "length", 1)


@every
def test_an_empty_answer_that_the_model_ended_is_an_answer(name: str) -> None:
    reply, calls = ask(name, say=lambda _: Answer("", output=0))
    assert (reply.text, reply.finish, len(calls)) == ("", "stop", 1)


@every
def test_a_budget_spent_on_reasoning_is_tried_once_with_a_higher_cap(name: str) -> None:
    """Public case scoring-05."""

    def say(call: Call) -> Answer:
        spent = call.number == 1
        return Answer("" if spent else "42", "length" if spent else "stop", output=64)

    reply, calls = ask(name, say=say)
    caps = [next(v for k, v in c.body.items() if k.startswith("max_")) for c in calls]
    assert (reply.text, caps) == ("42", [64, 256])
    assert reply.usage["output"] == 128
    assert reply.attempts == 2


@every
def test_reasoning_that_uses_the_higher_cap_too_is_missing_not_wrong(name: str) -> None:
    with pytest.raises(EmptyCompletion, match="length"):
        ask(name, say=lambda _: Answer("", "length", output=1024))


@every_chat
def test_a_refusal_is_a_reply(name: str) -> None:
    reply, _ = ask(name, say=lambda _: Answer("no", "refusal"))
    assert reply.finish == "refusal"


@every
def test_a_content_filter_error_is_a_refusal_too(name: str) -> None:
    body = {"error": {"code": "content_filter", "message": "filtered"}}
    reply, calls = ask(name, spoil=lambda _: Fault(status=400, body=body))
    assert (reply.finish, len(calls)) == ("refusal", 1)


@every_chat
def test_tool_calls_come_back_as_data(name: str) -> None:
    tool = {
        "name": "grep",
        "description": "Search.",
        "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
    }
    request = Request(messages=(Message.text("user", "find x"),), tools=(tool,))
    reply, calls = ask(name, request, say=lambda _: Answer("", "tool", ("grep", {"q": "x"})),
                       abilities=("tools",))  # fmt: skip
    assert reply.finish == "tool"
    assert reply.tool_calls == ({"id": "call_1", "name": "grep", "arguments": {"q": "x"}},)
    assert "grep" in sent_text(calls[0])


@every_chat
def test_a_conversation_with_tool_results_is_sent_in_order(name: str) -> None:
    used = Message("assistant", (), ({"id": "c1", "name": "f", "arguments": {"a": 1}},))
    messages = (
        Message.text("user", "first"),
        used,
        Message("tool", Message.text("tool", "second").parts, tool_call_id="c1"),
        Message.text("user", "third"),
    )
    _, calls = ask(name, Request(messages=messages))
    text = sent_text(calls[0])
    assert text.index("first") < text.index('"f"') < text.index("second") < text.index("third")


@every
def test_a_request_for_an_absent_ability_is_refused_before_any_call(name: str) -> None:
    async def refused(model: Model) -> None:
        tool = {"name": "f", "parameters": {"type": "object"}}
        with pytest.raises(ModelConfigError, match="tools"):
            await model.complete(replace(ASK, tools=(tool,)))

    _, calls = ask(name, refused, abilities=())
    assert calls == []


@every
def test_many_calls_are_in_flight_together_and_no_more_than_asked(name: str) -> None:
    async def many(model: Model) -> list[Reply]:
        return await asyncio.gather(*(model.complete(ASK) for _ in range(24)))

    with FaultServer(lambda _: Fault(together=8)) as server:
        options: RoleOptions = replace(options_at(name, server.url), workers=8)
        asyncio.run(many(open_model("target", options, environ=KEYS)))
        assert server.most_at_once == 8
        assert len(server.calls) == 24


@every
def test_a_rate_limit_without_end_is_bounded(name: str) -> None:
    policy = replace(FAST, max_wait_s=0.0)
    with pytest.raises(Exception, match="429") as caught:
        ask(name, spoil=lambda _: Fault(status=429), retry=policy)
    assert not isinstance(caught.value, RateLimited)

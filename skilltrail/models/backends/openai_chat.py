"""Chat completions and plain completions by the official `openai` SDK.

The system text goes first and never changes between items, so providers cache it by
themselves. Source: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import openai

from skilltrail.models.backends.sdk import HttpBackend, arguments_text, present
from skilltrail.models.backends.strict import openai_schema
from skilltrail.models.client.backend import content_of, image_url, model_name
from skilltrail.models.client.classify import Endpoint, classify
from skilltrail.models.client.foreign import (
    Said,
    beside,
    ended,
    holds,
    mapping,
    no_reply,
    openai_usage,
    rows,
    said_in,
    text_of,
    with_calls,
)
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import Decoding, Message, Part, Reply, Request

MOST_FINGERPRINT_CHARS = 100


class OpenAIChat(HttpBackend):
    """One call to `/chat/completions`.

    A compatible provider may differ in `cap`, the field that carries `max_tokens`, and in
    `extra`, fields sent with every call.
    """

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        model: str,
        endpoint: Endpoint,
        cap: str = "max_tokens",
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(openai, client, model, endpoint)
        self.cap, self.extra = cap, {} if extra is None else extra

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        body = chat_body(request, decoding, self.cap) | self.extra
        answer = await self.post("/chat/completions", body)
        return read_chat(self.endpoint, answer, decoding.stop)


class OpenAICompletions(OpenAIChat):
    """One call to `/completions`: plain text in and out, for base and very small models."""

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        if request.prompt is None:
            raise ModelConfigError(
                self.endpoint.asked,
                "the request is a conversation, which `api: completions` cannot carry",
                f"Set {self.endpoint.role}.api: chat",
            )
        body = sampling(decoding) | present(
            prompt=request.system + request.prompt, max_tokens=decoding.max_tokens
        )
        answer = await self.post("/completions", body | self.extra)
        return read_completion(self.endpoint, answer, decoding.stop)


def read_chat(endpoint: Endpoint, body: Mapping[str, Any], stops: Sequence[str] = ()) -> Reply:
    """Return the reply of a chat completion that was to end at one of `stops`.

    Raises:
        Refused, ModelError: there is none.
    """
    choice = _choice(endpoint, body)
    message = mapping(choice.get("message"))
    # Nothing was written where the cap or a filter came first.
    if not message and ended(choice.get("finish_reason")) not in ("length", "refusal"):
        raise no_reply(endpoint, body, "no message in the choice")
    said = said_in(endpoint, message.get("content"))
    functions, others = _functions(message)
    said = with_calls(
        endpoint, said, [(id, f.get("name"), f.get("arguments")) for id, f in functions]
    )
    more, refused = (*others, *beside(message)), holds(message.get("refusal"))
    if more or refused:
        said = replace(said, blocks=(*said.blocks, *more), refused=said.refused or refused)
    return _reply(endpoint, said, choice, body, stops)


def _functions(
    message: Mapping[str, Any],
) -> tuple[list[tuple[Any, Mapping[str, Any]]], list[str]]:
    """Return the functions that a message calls, each with its id, and the kinds of the calls
    that are none."""
    told = message.get("tool_calls")
    functions, others = [], []
    for call in rows([told] if isinstance(told, Mapping) else told):
        function = mapping(call.get("function", call))  # some servers leave the wrapping out
        if function is not call or text_of(call.get("name")):
            functions.append((call.get("id"), function))
        elif holds(call):
            others.append("a tool call that is none")
    if (old := mapping(message.get("function_call"))) and not functions:
        functions = [(None, old)]
    return functions, others


def read_completion(
    endpoint: Endpoint, body: Mapping[str, Any], stops: Sequence[str] = ()
) -> Reply:
    """Return the reply of a plain completion that was to end at one of `stops`.

    Raises:
        Refused, ModelError: there is none.
    """
    choice = _choice(endpoint, body)
    if not isinstance(choice.get("text"), str):
        raise no_reply(endpoint, body, "no text in the choice")
    return _reply(endpoint, Said(choice["text"], blocks=beside(choice)), choice, body, stops)


def _choice(endpoint: Endpoint, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first choice, unless it tells of an error."""
    choices = rows(body.get("choices"))
    if not choices:
        raise no_reply(endpoint, body, "no choice in the completion")
    if holds(choices[0].get("error")):
        raise classify(endpoint, 200, choices[0])
    return choices[0]


def _reply(
    endpoint: Endpoint,
    said: Said,
    choice: Mapping[str, Any],
    body: Mapping[str, Any],
    stops: Sequence[str],
) -> Reply:
    said = said.ended_at(choice.get("stop_reason"), choice.get("matched_stop"), of=stops)
    native = choice.get("native_finish_reason")
    usage = openai_usage(body.get("usage"), "prompt", "completion")
    word = native if ended(native) == "broken" else choice.get("finish_reason")
    reply = said.reply(endpoint, word, model_name(text_of(body.get("model"))), usage)
    # A router (OpenRouter) names the host that answered: each may have other weights.
    weights = [text_of(body.get(name)) for name in ("provider", "system_fingerprint")]
    told = " ".join(filter(None, weights))[:MOST_FINGERPRINT_CHARS]
    return replace(reply, fingerprint=told) if told else reply


def sampling(decoding: Decoding) -> dict[str, Any]:
    return present(
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        stop=list(decoding.stop) if decoding.stop else None,
        seed=decoding.seed,
    )


def chat_body(request: Request, decoding: Decoding, cap: str) -> dict[str, Any]:
    """Return the body of a chat call, the model's name apart."""
    tools = [{"type": "function", "function": dict(tool)} for tool in request.tools]
    schema = None if request.schema is None else openai_schema(request.schema)
    return sampling(decoding) | present(
        messages=chat_messages(request),
        reasoning_effort=decoding.effort,
        tools=tools if tools else None,
        response_format=schema and {"type": "json_schema", "json_schema": schema},
        **{cap: decoding.max_tokens},
    )


def chat_messages(request: Request) -> list[dict[str, Any]]:
    """Return system text, then prompt or messages, in the chat protocol's shape."""
    messages: list[dict[str, Any]] = []
    if request.system:
        messages.append({"role": "system", "content": request.system})
    if request.prompt is not None:
        messages.append({"role": "user", "content": request.prompt})
    messages.extend(_message(message) for message in request.messages)
    return messages


def _message(message: Message) -> dict[str, Any]:
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": arguments_text(call["arguments"])},
        }
        for call in message.tool_calls
    ]
    return present(
        role=message.role,
        content=content_of(message, "text", _image),
        tool_calls=calls if calls else None,
        tool_call_id=message.tool_call_id,
    )


def _image(part: Part) -> dict[str, Any]:
    url = {"url": image_url(part), "detail": part.image_detail}
    return {"type": "image_url", "image_url": url}

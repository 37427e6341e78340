"""Chat completions and plain completions by the official `openai` SDK.

The system text goes first and never changes between items, so providers cache it by
themselves. Source: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import openai

from stages.models import sdk
from stages.models.classify import Endpoint
from stages.models.protocol import Decoding, Message, Reply, Request
from stages.models.wire import (
    cut_at_stop,
    image_url,
    is_strict_schema,
    model_name,
    without_reasoning,
)

# Words for the same ends at the providers that copy this protocol.
FINISH = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool",
    "function_call": "tool",
    "content_filter": "refusal",
    "sensitive": "refusal",
}


@dataclass(frozen=True)
class Dialect:
    """How a compatible provider differs.

    Attributes:
        cap: the field that carries `max_tokens`.
        extra_body: fields sent with every call.
        template_opens_thinking: replies may start inside a reasoning block.
    """

    cap: str = "max_tokens"
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    template_opens_thinking: bool = False


class OpenAIChat:
    """One call to `/chat/completions`."""

    def __init__(
        self, client: openai.AsyncOpenAI, model: str, endpoint: Endpoint, dialect: Dialect
    ) -> None:
        self._client, self._model, self._endpoint = client, model, endpoint
        self._dialect = dialect

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        body = chat_body(request, decoding, self._dialect)
        completion = await sdk.call(
            openai,
            self._endpoint,
            lambda: self._client.chat.completions.create(model=self._model, **body),
        )
        return self._reply(completion)

    async def close(self) -> None:
        await self._client.close()

    def _reply(self, completion: Any) -> Reply:
        choices = getattr(completion, "choices", None)
        if not choices or getattr(choices[0], "message", None) is None:
            raise sdk.malformed(self._endpoint, "no choice in the completion")
        choice, message = choices[0], choices[0].message
        calls = tuple(
            {
                "id": call.id,
                "name": call.function.name,
                "arguments": sdk.arguments(call.function.arguments),
            }
            for call in message.tool_calls or ()
            if call.type == "function"
        )
        finish = FINISH.get(str(choice.finish_reason))
        if finish is None:
            raise sdk.malformed(self._endpoint, f"finish reason {choice.finish_reason!r}")
        if getattr(message, "refusal", None) is not None:
            finish = "refusal"
        text = message.content if message.content is not None else ""
        return Reply(
            text=without_reasoning(text, self._dialect.template_opens_thinking),
            finish="tool" if calls and finish == "stop" else finish,
            tool_calls=calls,
            model=model_name(completion.model),
            usage=usage_of(completion.usage),
        )


class OpenAICompletions:
    """One call to `/completions`: plain text in and out, for base and very small models."""

    def __init__(
        self, client: openai.AsyncOpenAI, model: str, endpoint: Endpoint, dialect: Dialect
    ) -> None:
        self._client, self._model, self._endpoint = client, model, endpoint
        self._dialect = dialect

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        if request.prompt is None:
            raise sdk.malformed(self._endpoint, "a chat request cannot go to /completions")
        settings = present(
            max_tokens=decoding.max_tokens,
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            stop=list(decoding.stop) if decoding.stop else None,
            seed=decoding.seed,
            extra_body=dict(self._dialect.extra_body) if self._dialect.extra_body else None,
        )
        completion: Any = await sdk.call(
            openai,
            self._endpoint,
            lambda: self._client.completions.create(
                model=self._model, prompt=request.system + str(request.prompt), **settings
            ),
        )
        choices = getattr(completion, "choices", None)
        if not choices or not isinstance(choices[0].text, str):
            raise sdk.malformed(self._endpoint, "no choice in the completion")
        finish = FINISH.get(str(choices[0].finish_reason))
        if finish is None:
            raise sdk.malformed(self._endpoint, f"finish reason {choices[0].finish_reason!r}")
        return Reply(
            text=cut_at_stop(choices[0].text, decoding.stop),
            finish=finish,
            model=model_name(completion.model),
            usage=usage_of(completion.usage),
        )

    async def close(self) -> None:
        await self._client.close()


def present(**settings: Any) -> dict[str, Any]:
    """Return the settings that are not None: what is absent is not sent."""
    return {name: value for name, value in settings.items() if value is not None}


def chat_body(request: Request, decoding: Decoding, dialect: Dialect) -> dict[str, Any]:
    """Return the body of a chat call, the model's name apart."""
    body = present(
        messages=chat_messages(request),
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        stop=list(decoding.stop) if decoding.stop else None,
        seed=decoding.seed,
        reasoning_effort=decoding.effort,
        extra_body=dict(dialect.extra_body) if dialect.extra_body else None,
    )
    if decoding.max_tokens is not None:
        body[dialect.cap] = decoding.max_tokens
    if request.tools:
        body["tools"] = [{"type": "function", "function": dict(tool)} for tool in request.tools]
    if request.schema is not None:
        schema = dict(request.schema)
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": "reply",
                "schema": schema,
                "strict": is_strict_schema(schema),
            },
        }
    return body


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
    content: Any = "".join(part.text for part in message.parts if part.image is None)
    if any(part.image is not None for part in message.parts):
        content = [
            {"type": "text", "text": part.text}
            if part.image is None
            else {
                "type": "image_url",
                "image_url": {"url": image_url(part), "detail": part.image_detail},
            }
            for part in message.parts
        ]
    shaped: dict[str, Any] = {"role": message.role, "content": content}
    if message.tool_calls:
        shaped["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {
                    "name": call["name"],
                    "arguments": sdk.arguments_text(call["arguments"]),
                },
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        shaped["tool_call_id"] = message.tool_call_id
    return shaped


def usage_of(usage: Any) -> dict[str, int]:
    """Return token counts; a provider that sends none gives an empty usage."""
    if usage is None:
        return {}
    prompt = getattr(usage, "prompt_tokens_details", None)
    completion = getattr(usage, "completion_tokens_details", None)
    return {
        "input": sdk.count(usage, "prompt_tokens"),
        "output": sdk.count(usage, "completion_tokens"),
        "cached": sdk.count(prompt, "cached_tokens"),
        "reasoning": sdk.count(completion, "reasoning_tokens"),
    }

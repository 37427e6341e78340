"""Chat completions and plain completions by the official `openai` SDK.

The system text goes first and never changes between items, so providers cache it by
themselves. Source: https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from typing import Any

import openai

from skilltrail.models.backends import sdk
from skilltrail.models.backends.openai_wire import Dialect, OpenAIWire, named_schema, usage_of
from skilltrail.models.client.backend import (
    cut_at_stop,
    image_url,
    model_name,
    without_reasoning,
)
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import Decoding, Message, Reply, Request

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


class OpenAIChat(OpenAIWire):
    """One call to `/chat/completions`."""

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        body = chat_body(request, decoding, self.dialect)
        completion = await sdk.call(
            openai,
            self.endpoint,
            lambda: self.client.chat.completions.create(model=self.model, **body),
        )
        return self._reply(completion)

    def _reply(self, completion: Any) -> Reply:
        choices = getattr(completion, "choices", None)
        if not choices or getattr(choices[0], "message", None) is None:
            raise sdk.malformed(self.endpoint, "no choice in the completion")
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
        finish = _finish(self.endpoint, choice.finish_reason)
        if getattr(message, "refusal", None) is not None:
            finish = "refusal"
        text = message.content if message.content is not None else ""
        return Reply(
            text=without_reasoning(text, self.dialect.template_opens_thinking),
            finish="tool" if calls and finish == "stop" else finish,
            tool_calls=calls,
            model=model_name(completion.model),
            usage=usage_of(completion.usage, "prompt", "completion"),
        )


class OpenAICompletions(OpenAIWire):
    """One call to `/completions`: plain text in and out, for base and very small models."""

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        if request.prompt is None:
            raise ModelConfigError(
                self.endpoint.asked,
                "the request is a conversation, which `api: completions` cannot carry",
                f"Set {self.endpoint.role}.api: chat",
            )
        settings = sdk.present(
            max_tokens=decoding.max_tokens,
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            stop=list(decoding.stop) if decoding.stop else None,
            seed=decoding.seed,
            extra_body=dict(self.dialect.extra_body) if self.dialect.extra_body else None,
        )
        completion: Any = await sdk.call(
            openai,
            self.endpoint,
            lambda: self.client.completions.create(
                model=self.model, prompt=request.system + str(request.prompt), **settings
            ),
        )
        choices = getattr(completion, "choices", None)
        if not choices or not isinstance(choices[0].text, str):
            raise sdk.malformed(self.endpoint, "no choice in the completion")
        return Reply(
            text=cut_at_stop(choices[0].text, decoding.stop),
            finish=_finish(self.endpoint, choices[0].finish_reason),
            model=model_name(completion.model),
            usage=usage_of(completion.usage, "prompt", "completion"),
        )


def _finish(endpoint: Endpoint, reason: Any) -> str:
    """Return why a reply ended, in the door's words.

    Raises:
        Transient: the provider's word is none of the protocol's.
    """
    finish = FINISH.get(str(reason))
    if finish is None:
        raise sdk.malformed(endpoint, f"finish reason {reason!r}")
    return finish


def chat_body(request: Request, decoding: Decoding, dialect: Dialect) -> dict[str, Any]:
    """Return the body of a chat call, the model's name apart."""
    body = sdk.present(
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
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": named_schema(request.schema),
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

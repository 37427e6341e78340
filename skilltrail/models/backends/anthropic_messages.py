"""The Messages API by the official `anthropic` SDK: Anthropic, and all that speak it.

The system text carries a cache mark, so that the skill is read once and then from the cache.
Source: https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import anthropic

from skilltrail.models.backends.sdk import HttpBackend, client_settings, present
from skilltrail.models.backends.strict import anthropic_schema
from skilltrail.models.client.backend import Backend, image_base64, model_name
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.client.foreign import (
    message_usage,
    no_reply,
    rows,
    said_in,
    text_of,
    with_calls,
)
from skilltrail.models.environ import Environ
from skilltrail.models.protocol import Decoding, Message, Part, Reply, Request
from skilltrail.models.registry import require_key
from skilltrail.params.model_options import RoleOptions

ANTHROPIC_URL = "https://api.anthropic.com"
# The API wants a cap; this one stands where neither params nor environment set any.
_DEFAULT_MAX_TOKENS = 4096
# Smallest thinking budget that the API takes.
_MIN_THINKING_TOKENS = 1024


def anthropic_backend(options: RoleOptions, endpoint: Endpoint, environ: Environ) -> Backend:
    """Return the backend of Anthropic, or of `base_url`."""
    url = ANTHROPIC_URL if options.base_url is None else options.base_url
    key = require_key(endpoint, environ)
    client = anthropic.AsyncAnthropic(base_url=url, **client_settings(anthropic, options, key))
    return AnthropicMessages(client, options.model, endpoint, options.thinking)


class AnthropicMessages(HttpBackend):
    """One call to `/v1/messages`."""

    def __init__(
        self,
        client: anthropic.AsyncAnthropic,
        model: str,
        endpoint: Endpoint,
        thinking: str = "server_default",
    ) -> None:
        super().__init__(anthropic, client, model, endpoint)
        self._thinking = thinking

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        body = messages_body(request, decoding, self._thinking)
        answer = await self.post("/v1/messages", body)
        return read_message(self.endpoint, answer, decoding.stop)


def read_message(
    endpoint: Endpoint, body: Mapping[str, Any], stops: Sequence[str] = ()
) -> Reply:
    """Return the reply of a message that was to end at one of `stops`.

    Raises:
        Refused, ModelError: there is none.
    """
    if not isinstance(body.get("content"), (list, str)):
        raise no_reply(endpoint, body, "no content in the message")
    said = said_in(endpoint, body["content"])
    uses = [b for b in rows(body["content"]) if b.get("type") == "tool_use"]
    calls = [(use.get("id"), use.get("name"), use.get("input")) for use in uses]
    said = replace(said, blocks=tuple(kind for kind in said.blocks if kind != "tool_use"))
    model = model_name(text_of(body.get("model")))
    said = with_calls(endpoint, said, calls).ended_at(body.get("stop_sequence"), of=stops)
    return said.reply(
        endpoint, body.get("stop_reason"), model, message_usage(body.get("usage"))
    )


def messages_body(request: Request, decoding: Decoding, thinking: str) -> dict[str, Any]:
    """Return the body of a messages call, the model's name apart."""
    cap = _DEFAULT_MAX_TOKENS if decoding.max_tokens is None else decoding.max_tokens
    policy: dict[str, Any] | None = {"type": thinking}
    if thinking == "server_default":
        policy = None
    elif thinking == "enabled":
        policy = {"type": thinking, "budget_tokens": max(_MIN_THINKING_TOKENS, cap // 2)}
    schema = None if request.schema is None else anthropic_schema(request.schema)
    config = present(
        effort=decoding.effort, format=schema and {"type": "json_schema", "schema": schema}
    )
    return present(
        max_tokens=cap,
        system=_system(request.system),
        messages=_messages(request),
        stop_sequences=list(decoding.stop) if decoding.stop else None,
        tools=[_tool(tool) for tool in request.tools] if request.tools else None,
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        thinking=policy,
        output_config=config if config else None,
    )


def _system(text: str) -> list[dict[str, Any]] | None:
    block = {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
    return [block] if text else None


def _tool(tool: Any) -> dict[str, Any]:
    return {
        "name": tool["name"],
        "description": tool.get("description", ""),
        "input_schema": tool["parameters"],
    }


def _messages(request: Request) -> list[dict[str, Any]]:
    """Return the conversation; neighbouring tool results join into one user turn."""
    if request.prompt is not None:
        return [{"role": "user", "content": request.prompt}]
    turns: list[dict[str, Any]] = []
    for message in request.messages:
        role = "user" if message.role == "tool" else message.role
        blocks = _blocks(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: Message) -> list[dict[str, Any]]:
    blocks = [_block(part) for part in message.parts if part.image is not None or part.text]
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": blocks}]
    blocks.extend(
        {
            "type": "tool_use",
            "id": call["id"],
            "name": call["name"],
            "input": dict(call["arguments"]),
        }
        for call in message.tool_calls
    )
    return blocks


def _block(part: Part) -> dict[str, Any]:
    if part.image is None:
        return {"type": "text", "text": part.text}
    source = {"type": "base64", "media_type": part.image_type, "data": image_base64(part)}
    return {"type": "image", "source": source}

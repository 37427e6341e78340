"""The Messages API by the official `anthropic` SDK.

The system text carries a cache mark, so that the skill is read once and then from the cache.
Source: https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

from typing import Any

import anthropic

from skilltrail.models.backends import sdk
from skilltrail.models.client.backend import image_base64, model_name, without_reasoning
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.protocol import Decoding, Message, Part, Reply, Request

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool",
    "refusal": "refusal",
}
# The API wants a cap; this one stands where neither params nor environment set any.
_DEFAULT_MAX_TOKENS = 4096
# Smallest thinking budget that the API takes.
_MIN_THINKING_TOKENS = 1024


class AnthropicMessages:
    """One call to `/v1/messages`."""

    def __init__(
        self,
        client: anthropic.AsyncAnthropic,
        model: str,
        endpoint: Endpoint,
        thinking: str = "server_default",
        cache: bool = True,
    ) -> None:
        self._client, self._model, self._endpoint = client, model, endpoint
        self._thinking, self._cache = thinking, cache

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        body = messages_body(request, decoding, self._thinking, self._cache)
        message = await sdk.call(
            anthropic,
            self._endpoint,
            lambda: self._client.messages.create(model=self._model, **body),
        )
        return self._reply(message)

    async def close(self) -> None:
        await self._client.close()

    def _reply(self, message: Any) -> Reply:
        content = getattr(message, "content", None)
        if not isinstance(content, list):
            raise sdk.malformed(self._endpoint, "no content in the message")
        finish = _FINISH.get(str(message.stop_reason))
        if finish is None:
            raise sdk.malformed(self._endpoint, f"stop reason {message.stop_reason!r}")
        text = "".join(block.text for block in content if block.type == "text")
        calls = tuple(
            {"id": block.id, "name": block.name, "arguments": dict(block.input)}
            for block in content
            if block.type == "tool_use"
        )
        return Reply(
            text=without_reasoning(text),
            finish=finish,
            tool_calls=calls,
            model=model_name(message.model),
            usage=usage_of(message.usage),
        )


def messages_body(
    request: Request, decoding: Decoding, thinking: str, cache: bool
) -> dict[str, Any]:
    """Return the body of a messages call, the model's name apart."""
    cap = _DEFAULT_MAX_TOKENS if decoding.max_tokens is None else decoding.max_tokens
    body = sdk.present(
        max_tokens=cap,
        system=_system(request.system, cache),
        messages=_messages(request),
        stop_sequences=list(decoding.stop) if decoding.stop else None,
        tools=[_tool(tool) for tool in request.tools] if request.tools else None,
    )
    extra = sdk.present(temperature=decoding.temperature, top_p=decoding.top_p)
    if thinking == "enabled":
        body["thinking"] = {
            "type": "enabled",
            "budget_tokens": max(_MIN_THINKING_TOKENS, cap // 2),
        }
    elif thinking == "disabled":
        body["thinking"] = {"type": "disabled"}
    config: dict[str, Any] = {}
    if decoding.effort is not None:
        config["effort"] = decoding.effort
    if request.schema is not None:
        config["format"] = {"type": "json_schema", "schema": dict(request.schema)}
    if config:
        body["output_config"] = config
    if extra:
        body["extra_body"] = extra  # the SDK's newer signatures no longer name these
    return body


def _system(text: str, cache: bool) -> list[dict[str, Any]] | None:
    if not text:
        return None
    block: dict[str, Any] = {"type": "text", "text": text}
    if cache:
        block["cache_control"] = {"type": "ephemeral"}
    return [block]


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


def usage_of(usage: Any) -> dict[str, int]:
    """Return token counts; tokens read from and written to a cache are part of the input here,
    unlike in the API."""
    if usage is None:
        return {}
    read = sdk.count(usage, "cache_read_input_tokens")
    written = sdk.count(usage, "cache_creation_input_tokens")
    return {
        "input": sdk.count(usage, "input_tokens") + read + written,
        "output": sdk.count(usage, "output_tokens"),
        "cached": read,
        "written": written,
        "reasoning": 0,
    }

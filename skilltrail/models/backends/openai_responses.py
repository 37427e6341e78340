"""The responses API by the official `openai` SDK.

Nothing is stored at the provider (`store=False`): a request carries its whole conversation.
Source: https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from typing import Any

import openai

from skilltrail.models.backends import sdk
from skilltrail.models.backends.openai_wire import OpenAIWire, named_schema, usage_of
from skilltrail.models.client.backend import (
    cut_at_stop,
    image_url,
    model_name,
    without_reasoning,
)
from skilltrail.models.protocol import Decoding, Message, Reply, Request


class OpenAIResponses(OpenAIWire):
    """One call to `/responses`."""

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        body = responses_body(request, decoding)
        response = await sdk.call(
            openai,
            self.endpoint,
            lambda: self.client.responses.create(model=self.model, store=False, **body),
        )
        return self._reply(response, decoding)

    def _reply(self, response: Any, decoding: Decoding) -> Reply:
        output = getattr(response, "output", None)
        if not isinstance(output, list):
            raise sdk.malformed(self.endpoint, "no output in the response")
        if response.status == "failed":
            raise sdk.malformed(self.endpoint, f"the response failed: {response.error}")
        usage = usage_of(response.usage, "input", "output")
        texts, refused = _texts(output)
        calls = tuple(
            {"id": item.call_id, "name": item.name, "arguments": sdk.arguments(item.arguments)}
            for item in output
            if item.type == "function_call"
        )
        finish = "tool" if calls else "stop"
        reason = getattr(response.incomplete_details, "reason", None)
        full = decoding.max_tokens is not None and usage.get("output", 0) >= decoding.max_tokens
        if reason == "max_output_tokens" or (full and not calls):
            finish = "length"  # some servers say `completed` for a reply that was cut
        if refused or reason == "content_filter":
            finish = "refusal"
        return Reply(
            text=cut_at_stop(without_reasoning("".join(texts)), decoding.stop),
            finish=finish,
            tool_calls=calls,
            model=model_name(response.model),
            usage=usage,
        )


def responses_body(request: Request, decoding: Decoding) -> dict[str, Any]:
    """Return the body of a responses call, the model's name apart.

    The API has no stop strings: the reply is cut at the first one instead.
    """
    body = sdk.present(
        instructions=request.system if request.system else None,
        input=_input(request),
        max_output_tokens=decoding.max_tokens,
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        reasoning=None if decoding.effort is None else {"effort": decoding.effort},
    )
    if request.tools:
        body["tools"] = [
            {"type": "function", "strict": False, **tool} for tool in request.tools
        ]
    if request.schema is not None:
        body["text"] = {"format": {"type": "json_schema", **named_schema(request.schema)}}
    return body


def _input(request: Request) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if request.prompt is not None:
        items.append({"role": "user", "content": request.prompt})
    for message in request.messages:
        items.extend(_items(message))
    return items


def _items(message: Message) -> list[dict[str, Any]]:
    text = "".join(part.text for part in message.parts if part.image is None)
    if message.role == "tool":
        return [
            {"type": "function_call_output", "call_id": message.tool_call_id, "output": text}
        ]
    items: list[dict[str, Any]] = []
    if any(part.image is not None for part in message.parts):
        content: list[dict[str, Any]] = [
            {"type": "input_text", "text": part.text}
            if part.image is None
            else {
                "type": "input_image",
                "image_url": image_url(part),
                "detail": part.image_detail,
            }
            for part in message.parts
        ]
        items.append({"role": message.role, "content": content})
    elif text or not message.tool_calls:
        items.append({"role": message.role, "content": text})
    items.extend(
        {
            "type": "function_call",
            "call_id": call["id"],
            "name": call["name"],
            "arguments": sdk.arguments_text(call["arguments"]),
        }
        for call in message.tool_calls
    )
    return items


def _texts(output: list[Any]) -> tuple[list[str], bool]:
    """Return the message texts of a response and whether it is a refusal."""
    parts = [part for item in output if item.type == "message" for part in item.content]
    refused = any(part.type == "refusal" for part in parts)
    return [part.text for part in parts if part.type == "output_text"], refused

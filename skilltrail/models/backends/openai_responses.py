"""The responses API by the official `openai` SDK.

Nothing is stored at the provider (`store=False`): a request carries its whole conversation.
Source: https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skilltrail.models.backends.sdk import HttpBackend, arguments_text, present
from skilltrail.models.backends.strict import openai_schema
from skilltrail.models.client.backend import content_of, image_url, model_name
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.client.foreign import (
    Said,
    ended,
    mapping,
    no_reply,
    openai_usage,
    rows,
    said_in,
    text_of,
    with_calls,
)
from skilltrail.models.protocol import Decoding, Message, Part, Reply, Request


class OpenAIResponses(HttpBackend):
    """One call to `/responses`."""

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        body = await self.post("/responses", responses_body(request, decoding))
        return read_response(self.endpoint, body, decoding.max_tokens)


def read_response(endpoint: Endpoint, body: Mapping[str, Any], cap: int | None) -> Reply:
    """Return the reply of a response that was capped at `cap` tokens.

    Raises:
        Refused, ModelError: there is none.
    """
    if not isinstance(body.get("output"), list):
        raise no_reply(endpoint, body, "no output in the response")
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for item in rows(body["output"]):
        kind = text_of(item.get("type"))
        by_kind.setdefault(kind if kind else "an unknown item", []).append(item)
    messages = by_kind.pop("message", [])
    # What a model says on its way to the answer is none where the answer is marked.
    final = [m for m in messages if text_of(m.get("phase")).startswith("final")]
    parts = [said_in(endpoint, m.get("content")) for m in (final if final else messages)]
    uses = by_kind.pop("function_call", [])
    calls = [(use.get("call_id"), use.get("name"), use.get("arguments")) for use in uses]
    text = "".join(said.text for said in parts)
    said = Said(
        # Some servers fill only the field that the SDKs compute.
        text if text else text_of(body.get("output_text")),
        blocks=(*(kind for said in parts for kind in said.blocks), *by_kind),
        refused=any(said.refused for said in parts),
    )
    usage = openai_usage(body.get("usage"), "input", "output")
    word = mapping(body.get("incomplete_details")).get("reason")
    word = word if text_of(word) else body.get("status")
    full = cap is not None and usage.get("output", 0) >= cap
    if full and not calls and ended(word) == "stop":
        word = "length"  # some servers say `completed` for a reply that was cut
    model = model_name(text_of(body.get("model")))
    return with_calls(endpoint, said, calls).reply(endpoint, word, model, usage)


def responses_body(request: Request, decoding: Decoding) -> dict[str, Any]:
    """Return the body of a responses call, the model's name apart.

    The API has no stop strings: every reply is cut at the first one anyway.
    """
    tools = [{"type": "function", "strict": False, **tool} for tool in request.tools]
    schema = None if request.schema is None else openai_schema(request.schema)
    return present(
        store=False,
        instructions=request.system if request.system else None,
        input=_input(request),
        max_output_tokens=decoding.max_tokens,
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        reasoning=None if decoding.effort is None else {"effort": decoding.effort},
        tools=tools if tools else None,
        text=schema and {"format": {"type": "json_schema", **schema}},
    )


def _input(request: Request) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if request.prompt is not None:
        items.append({"role": "user", "content": request.prompt})
    for message in request.messages:
        items.extend(_items(message))
    return items


def _items(message: Message) -> list[dict[str, Any]]:
    content = content_of(message, "input_text", _image)
    if message.role == "tool":
        id = message.tool_call_id
        return [{"type": "function_call_output", "call_id": id, "output": content}]
    items: list[dict[str, Any]] = []
    if content or not message.tool_calls:
        items.append({"role": message.role, "content": content})
    items.extend(
        {
            "type": "function_call",
            "call_id": call["id"],
            "name": call["name"],
            "arguments": arguments_text(call["arguments"]),
        }
        for call in message.tool_calls
    )
    return items


def _image(part: Part) -> dict[str, Any]:
    return {
        "type": "input_image",
        "image_url": image_url(part),
        "detail": part.image_detail,
    }

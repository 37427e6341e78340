"""What the APIs of the official `openai` SDK have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import openai

from skilltrail.models.backends import sdk
from skilltrail.models.client.backend import is_strict_schema
from skilltrail.models.client.classify import Endpoint


@dataclass(frozen=True)
class Dialect:
    """How a compatible provider differs.

    Attributes:
        cap: the field of a chat that carries `max_tokens`.
        extra_body: fields sent with every call.
        template_opens_thinking: replies may start inside a reasoning block.
    """

    cap: str = "max_tokens"
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    template_opens_thinking: bool = False


@dataclass(frozen=True)
class OpenAIWire:
    """Base of one API: a client, the model's name, what messages call the endpoint."""

    client: openai.AsyncOpenAI
    model: str
    endpoint: Endpoint
    dialect: Dialect = Dialect()

    async def close(self) -> None:
        await self.client.close()


def named_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reply's schema as both chat and responses want it."""
    asked = dict(schema)
    return {"name": "reply", "schema": asked, "strict": is_strict_schema(asked)}


def usage_of(usage: Any, sent: str, back: str) -> dict[str, int]:
    """Return token counts; a provider that sends none gives an empty usage.

    `sent` and `back` are the API's words for the two sides, as in `prompt_tokens`.
    """
    if usage is None:
        return {}
    before = getattr(usage, f"{sent}_tokens_details", None)
    after = getattr(usage, f"{back}_tokens_details", None)
    return {
        "input": sdk.count(usage, f"{sent}_tokens"),
        "output": sdk.count(usage, f"{back}_tokens"),
        "cached": sdk.count(before, "cached_tokens"),
        "reasoning": sdk.count(after, "reasoning_tokens"),
    }

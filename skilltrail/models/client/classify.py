"""What a provider's answer means, decided once from status, headers and body.

401 402 403 404, a refused setting   the run cannot work: ModelConfigError
429, 529                             RateLimited, unless the quota is used up
400 or 413 about the context         TooLong
400 about content policy             a refusal (the reply, not an error)
408 409 425 5xx                      Transient
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any

from skilltrail.models.errors import (
    ModelConfigError,
    ModelError,
    RateLimited,
    TooLong,
    Transient,
)

_TOO_LONG = (
    "context_length_exceeded",
    "exceed_context_size",
    "context length",
    "context size",
    "context window",
    "prompt is too long",
    "too many tokens",
    "request_too_large",
    "string_above_max_length",
)
_REFUSED = ("content_filter", "content_policy_violation", "content management policy")
_NO_MONEY = ("insufficient_quota", "billing", "credit balance", "exceeded your current quota")
_CLIP_CHARS = 400


class Refused(Exception):  # noqa: N818 - a reply in the form of an error, not a failure
    """The provider refused the content: becomes a reply with finish `refusal`."""


@dataclass(frozen=True)
class Endpoint:
    """What error messages say about a role's endpoint: names, never values or URLs."""

    role: str
    provider: str
    model: str
    key_env: str | None

    @property
    def asked(self) -> str:
        return f"{self.role}: {self.model} at {self.provider}"

    @property
    def key_remedy(self) -> str:
        if self.key_env is None:
            return f"Set {self.role}.key_env to the name of the variable that holds the key"
        return f"Check the key in the environment variable {self.key_env} (or in .env)"


def classify(
    endpoint: Endpoint, status: int, body: Any, headers: Mapping[str, str]
) -> ModelError:
    """Return the error that an HTTP answer of this status (not 2xx) means.

    Raises:
        Refused: the provider declined the content.
    """
    said = _said(body)
    lowered = said.lower()
    found = f"HTTP {status}: {said[:_CLIP_CHARS]}"
    if status in (400, 413, 422):
        return _bad_request(endpoint, status, lowered, found)
    if status in (401, 403):
        return ModelConfigError(endpoint.asked, found, endpoint.key_remedy)
    if status == 402 or (status == 429 and any(word in lowered for word in _NO_MONEY)):
        return ModelConfigError(
            endpoint.asked, found, "The account has no credit or quota left"
        )
    if status == 404:
        remedy = (
            f"Check {endpoint.role}.model, {endpoint.role}.base_url and {endpoint.role}.api"
        )
        return ModelConfigError(endpoint.asked, found, remedy)
    if status in (429, 529):
        return RateLimited(endpoint.asked, found, retry_after_s(headers))
    if status in (408, 409, 425) or status >= 500:
        return Transient(endpoint.asked, found)
    return ModelConfigError(endpoint.asked, found, f"Check {endpoint.role}.base_url")


def _bad_request(endpoint: Endpoint, status: int, lowered: str, found: str) -> ModelError:
    if any(word in lowered for word in _REFUSED):
        raise Refused
    if status == 413 or any(word in lowered for word in _TOO_LONG):
        return TooLong(endpoint.asked, found)
    return ModelConfigError(
        endpoint.asked,
        found,
        f"The provider does not take this request: change the setting it names in "
        f"{endpoint.role}, or list it under {endpoint.role}.omit",
    )


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds a provider asks to wait, from `retry-after-ms` or `retry-after`
    (seconds or an HTTP date, RFC 9110 section 10.2.3); None when it does not say."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after")
    seconds = _number(said)
    if seconds is not None or said is None:
        return seconds
    try:
        until = parsedate_to_datetime(said)
    except (TypeError, ValueError):
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=timezone.utc)
    wait = until - (datetime.now(timezone.utc) if now is None else now)
    return max(0.0, wait.total_seconds())


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _said(body: Any) -> str:
    """Return the provider's own words, on one line."""
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        text = inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)
    else:
        text = "" if body is None else str(body)
    return " ".join(text.split())

"""What a provider's failure means, decided once from its words, its status and its headers.

The words count first, whatever the status: the same failure comes as 400, as 500, or as a 200
with an error in its body, and then the body's own code is the status.

the content is refused               a refusal (the reply, not an error)
the request exceeds the context      TooLong
no credit or quota is left, 402      the run cannot work: ModelConfigError
a wrong or missing key, 401 403      ModelConfigError
too many requests, 429 529           RateLimited
no such model or address, 404        ModelConfigError
408 409 425 5xx, and a 200           Transient
any other 4xx                        a refused setting: ModelConfigError
"""

from __future__ import annotations

import json
import math
import re
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


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_REFUSED = _words(
    "content_filter",
    "content_policy",
    "content management policy",
    "content filtering policy",
    "ResponsibleAIPolicy",
    "data_inspection_failed",
    "inappropriate content",
    r"(?:input|prompt|content|request|output) (?:was |has been )?flagged",
)
_TOO_LONG = _words(
    r"context[_ ](?:length|size|window|limit)",
    "exceed_context_size",
    r"(?:prompt|input)(?: is| token length)? too long",
    r"(?:maximum|max)[_ ](?:prompt|context|model|input)[_ ]?(?:len|length|tokens|size)",
    r"exceed(?:s|ed)? (?:the )?(?:max(?:imum)? (?:number of (?:input )?tokens|length)"
    "|model token limit)",
    r"longer than the (?:maximum )?(?:model|context)",
    r"too many tokens(?!.{0,20}(?:wait|minute|second|day|per))",
    r"reduce the length of (?:the|your) (?:messages|prompt|input)",
    r"range of input length should be",
    r"max_new_tokens`? must be <=|inputs`? must have less than",
    "request body too large|request_too_large|tokens_limit_reached|string_above_max_length",
)
_NO_MONEY = _words(
    r"insufficient[_ ](?:quota|credits?|balance|funds)",
    "credit balance",
    "exceeded your current quota",
    "payment required",
    r"(?:out of|no|not enough) credits?\b",
    "usage limit reached|billing_hard_limit|billing_not_active",
)
_BAD_KEY = _words(
    r"(?:invalid|incorrect|wrong|missing|expired|no|bad)[_ ](?:x-)?(?:api[_ -]?key|auth)",
    r"api[_ -]?key (?:is |was )?(?:not valid|invalid|missing|expired|required|not found)",
    r"\bunauthori[sz]ed\b|authentication[_ ](?:error|failed|fails|required)|login fail",
)
_TOO_MANY = _words(
    r"rate[_ -]?limit", "too many requests", "throttl", "overloaded", "resource_exhausted"
)
_NO_MODEL = _words(
    r"model_not_found|no such model|no endpoints found",
    r"model\b.{0,80}(?:not found|does not exist|not exist)",
)
_CODES = ("code", "status", "status_code", "statusCode", "http_status")
_CLIP_CHARS = 400


class Refused(Exception):  # noqa: N818 - a reply in the form of an error, not a failure
    """The provider refused the content: becomes a reply with finish `refusal`."""


@dataclass(frozen=True)
class Endpoint:
    """What error messages say about a role's endpoint; `url` stands in remedies alone, which
    are never recorded."""

    role: str
    provider: str
    model: str
    key_env: str | None
    url: str = ""

    @property
    def asked(self) -> str:
        return f"{self.role}: {self.model} at {self.provider}"

    @property
    def key_remedy(self) -> str:
        if self.key_env is None:
            return f"Set {self.role}.key_env to the name of the variable that holds the key"
        return f"Check the key in the environment variable {self.key_env} (or in .env)"

    @property
    def address_remedy(self) -> str:
        at = f", asked at {self.url}" if self.url else ""
        return f"Check {self.role}.base_url{at} (often /v1 is missing, or is there twice)"


def classify(
    endpoint: Endpoint,
    status: int,
    body: Any,
    headers: Mapping[str, str] | None = None,
) -> ModelError:
    """Return the error that an answer means: any but a 2xx, or a 200 that holds no reply.

    Args:
        status: of the answer; 200 where none is known.
        body: JSON, or text.

    Raises:
        Refused: the provider declined the content.
    """
    said = _said(body)
    if status < 300 or status >= 500:
        status = own_status(body, status)
    found = f"{'unusable answer' if status < 300 else f'HTTP {status}'}: {said[:_CLIP_CHARS]}"
    meaning = _meaning(status, said)
    if meaning == "refused":
        raise Refused
    if meaning == "too_long":
        return TooLong(endpoint.asked, found)
    if meaning == "too_many":
        return RateLimited(endpoint.asked, found, retry_after_s(headers))
    if meaning == "transient":
        return Transient(endpoint.asked, found, billed=status < 300)
    remedy = {
        "no_money": "The account has no credit or quota left",
        "bad_key": endpoint.key_remedy,
        "no_model": f"{endpoint.address_remedy}, {endpoint.role}.model and {endpoint.role}.api",
        "setting": f"The provider does not take this request: change the setting it names in "
        f"{endpoint.role}, or list it under {endpoint.role}.omit",
        "address": endpoint.address_remedy,
    }[meaning]
    return ModelConfigError(endpoint.asked, found, remedy)


def _meaning(status: int, said: str) -> str:
    """Return what a failure is, in a word of `classify`; the first that fits."""
    busy = status in (429, 529)
    for fits, meaning in (
        (not busy and _REFUSED.search(said), "refused"),
        (status == 402 or _NO_MONEY.search(said), "no_money"),
        (busy and "billing" in said.lower(), "no_money"),
        (busy, "too_many"),
        (status in (401, 403), "bad_key"),
        (status == 413 or _TOO_LONG.search(said), "too_long"),
        (_BAD_KEY.search(said), "bad_key"),
        (status < 500 and _TOO_MANY.search(said), "too_many"),
        (status == 404 or _NO_MODEL.search(said), "no_model"),
        (status < 300 or status in (408, 409, 425) or status >= 500, "transient"),
        (status in (400, 422), "setting"),
    ):
        if fits:
            return meaning
    return "address"


def malformed(endpoint: Endpoint, what: str) -> Transient:
    """Return the error for a 200 whose body is not what the protocol says."""
    return Transient(endpoint.asked, f"unusable answer: {what[:_CLIP_CHARS]}", billed=True)


def retry_after_s(
    headers: Mapping[str, str] | None, now: datetime | None = None
) -> float | None:
    """Return the seconds a provider asks to wait, from `retry-after-ms` or `retry-after`
    (seconds or an HTTP date, RFC 9110 section 10.2.3); None when it does not say."""
    if headers is None:
        return None
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


def own_status(body: Any, status: int) -> int:
    """Return the status that a body names itself (an HTTP error's), else `status`."""
    whole = body if isinstance(body, Mapping) else {}
    for holder in (whole.get("error"), whole):
        codes = holder if isinstance(holder, Mapping) else {}
        for name in _CODES:
            code = str(codes.get(name))
            if re.fullmatch(r"[45]\d\d", code):
                return int(code)
    return status


def _said(body: Any) -> str:
    """Return the provider's own words, on one line."""
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    text = inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)
    return " ".join(text.split())

"""What a provider's failure means, decided once from its words, its status and its headers.

The words count first, whatever the status: the same failure comes as 400, as 500, or as a 200
with an error in its body, and then the body's own code is the status.

the content is refused               a refusal (the reply, not an error)
the request exceeds the context      TooLong
no credit or quota is left, 402      the run cannot work: ModelConfigError
a wrong or missing key, 401 403      ModelConfigError
too many requests, 429 529           RateLimited; so is a quota that the provider says how
                                     long to wait for
no such model or address, 404        ModelConfigError
408 409 423 425 499 5xx, and a 200   Transient; so is what the model wrote and the server
                                     could not read
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
from importlib import resources
from typing import Any

from ruamel.yaml import YAML

from skilltrail.models.errors import (
    ModelConfigError,
    ModelError,
    RateLimited,
    TooLong,
    Transient,
)


def packaged(name: str) -> Any:
    """Return what a YAML file of this package holds."""
    text = resources.files("skilltrail.models.client").joinpath(name).read_text("utf-8")
    return YAML(typ="safe").load(text)


WORDS: Mapping[str, Any] = packaged("words.yaml")
_SAID = {
    meaning: re.compile("|".join(patterns), re.IGNORECASE)
    for meaning, patterns in WORDS["errors"].items()
}
_CODES = ("code", "status", "status_code", "statusCode", "http_status")
_CLIP_CHARS = 400
_PASSING = (408, 409, 423, 424, 425, 499)
_ADDRESS = re.compile(r"https?://\S+")
_WAIT = re.compile(
    r"""(?ix) \b(?:try\ again|retry|retry_?delay|reset)\b \W{0,4} (?:(?:in|after)\b)? \W{0,4}
    ((?: [0-9]+(?:\.[0-9]+)? \s? (?:ms|milliseconds?|h|hours?|m|min|minutes?|s|sec|seconds?)
        (?![a-z]) [\s,]{0,2} )+)"""
)
_STEP = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s?(ms|mil|[hms])")
_SECONDS = {"ms": 0.001, "mil": 0.001, "h": 3600.0, "m": 60.0, "s": 1.0}


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
        told = retry_after_s(headers)
        return RateLimited(endpoint.asked, found, said_wait_s(said) if told is None else told)
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
    busy, said = status in (429, 529), _ADDRESS.sub("", said)  # links say nothing
    says = {meaning for meaning, words in _SAID.items() if words.search(said)}
    passes = busy and said_wait_s(said) is not None and "insufficient" not in said.lower()
    for fits, meaning in (
        (not busy and "refused" in says, "refused"),
        (passes, "too_many"),
        (status == 402 or "no_money" in says, "no_money"),
        (busy and "billing" in said.lower(), "no_money"),
        (busy, "too_many"),
        (status in (401, 403), "bad_key"),
        (status == 413 or "too_long" in says, "too_long"),
        ("bad_key" in says, "bad_key"),
        (status < 500 and "too_many" in says, "too_many"),
        ("spoiled" in says, "transient"),
        (status == 404 or "no_model" in says, "no_model"),
        (status < 300 or status in _PASSING or status >= 500, "transient"),
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


def said_wait_s(said: str) -> float | None:
    """Return the seconds that a provider's words ask to wait, as in `try again in 1m30s`."""
    found = _WAIT.search(said)
    if found is None:
        return None
    steps = _STEP.findall(found[1].lower())
    return sum(float(number) * _SECONDS[unit] for number, unit in steps)


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
    error = body.get("error") if isinstance(body, Mapping) else None
    inner = error if error and isinstance(error, (str, Mapping, list)) else body
    text = inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)
    return " ".join(text.split())

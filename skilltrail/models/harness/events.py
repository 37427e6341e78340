"""Reading a program's output line by line: one odd event never spoils the others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from skilltrail.core.canon import value_of
from skilltrail.models.client.classify import Endpoint, classify
from skilltrail.models.errors import ModelConfigError, ModelError, Transient

_STATUS = re.compile(r"(?i)\b(?:status|error|http|api)\b[^0-9\n]{0,24}\b([45]\d\d)\b")
_LOGIN = re.compile(r"(?i)not logged in|/login|log in|invalid api key|missing environment")
_TAIL_CHARS = 600
_MOST_TOKENS = 10**12


@dataclass
class Skipped:
    """How many lines could not be used."""

    count: int = 0


def objects(output: str, skipped: Skipped) -> Iterator[Mapping[str, Any]]:
    """Yield each line's JSON object; a line that is none is counted and passed over."""
    for line in output.split("\n"):
        if not line.strip():
            continue
        try:
            value = value_of(line)
        except ValueError:
            skipped.count += 1
            continue
        if isinstance(value, dict):
            yield value
        else:
            skipped.count += 1


def last_text(output: str, dotted: str) -> tuple[str | None, int]:
    """Return the text at `dotted` of the last event that has it, and how many were skipped.

    An event without that field says something else and is fine; one where the path runs into
    a value of another shape is skipped and counted.
    """
    skipped = Skipped()
    found: str | None = None
    for event in objects(output, skipped):
        value: Any = event
        for name in dotted.split("."):
            if not isinstance(value, Mapping):
                skipped.count += 1
                value = None
                break
            value = value.get(name)
            if value is None:
                break
        if isinstance(value, str):
            found = value
        elif value is not None:
            skipped.count += 1
    return found, skipped.count


def mapping(value: Any) -> Mapping[str, Any]:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def count(usage: Mapping[str, Any], name: str) -> int:
    """Return a token count of an event, 0 where it has none that could be one."""
    value = usage.get(name)
    return value if isinstance(value, int) and 0 <= value <= _MOST_TOKENS else 0


def failure(endpoint: Endpoint, code: int, said: str, status: int | None = None) -> ModelError:
    """Return what a failed program's last words mean.

    Raises:
        Refused: the provider declined the content.
    """
    words = said.strip()[-_TAIL_CHARS:]
    found = f"exit code {code}: {words}" if words else f"exit code {code} and no message"
    if status is None:
        named = _STATUS.search(words)
        status = None if named is None else int(named[1])
    if status is not None:
        return classify(endpoint, status, words, {})
    if _LOGIN.search(words):
        return ModelConfigError(endpoint.asked, found, "Log in to the program, or set its key")
    if code in (2, 126, 127):
        return ModelConfigError(endpoint.asked, found, f"Check {endpoint.role}.exec")
    return Transient(endpoint.asked, found, billed=True)

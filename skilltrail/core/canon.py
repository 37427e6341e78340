"""One canonical text for any JSON value, and tagged digests of it.

Canonical form: sorted keys, no blanks, UTF-8 as it is, no NaN. A tag names the kind and
version of the thing digested, so that two kinds never share a key.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, NoReturn

_MAX_DEPTH = 100
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


class Word(str, Enum):
    """An enum whose members are the words that are recorded and printed (`enum.StrEnum`, which
    Python 3.10 has not)."""

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(str(self.value), spec)


def clean(text: str) -> str:
    """Return `text` with lone surrogates replaced by U+FFFD, so that it encodes as UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def cleaned(value: Any) -> Any:
    """Return a JSON value with `clean` applied to every string and mapping key in it."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): cleaned(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [cleaned(item) for item in value]
    return value


def canonical(value: Any) -> str:
    """Return the canonical JSON text of `value`.

    Raises:
        ValueError: `value` holds NaN or an infinity.
        TypeError: `value` holds something that is not JSON.
    """
    return _ENCODER.encode(value)


def canonical_clean(value: Any) -> str:
    """Return the canonical JSON text of `cleaned(value)`.

    Raises:
        ValueError: `value` holds NaN or an infinity, or is nested too deeply.
        TypeError: `value` holds something that is not JSON.
    """
    try:
        text = canonical(value)
        if text.isascii():
            return text
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = canonical(cleaned(value))
    except RecursionError as error:
        raise ValueError("the value is nested too deeply") from error
    return text


def loaded(data: str | bytes) -> Any:
    """Return the JSON value of a recorded text.

    Raises:
        ValueError: not UTF-8, not JSON, or nested too deeply.
    """
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("the value is nested too deeply") from error


def value_of(text: str) -> Any:
    """Return the JSON value that a model or another program wrote; it has a canonical form.

    Line ends and the like may stand in strings as they are.

    Raises:
        ValueError: not JSON, a number that is not finite or too long, a key twice in one
            object, or nested too deeply.
    """
    try:
        value = json.loads(
            text,
            strict=False,
            parse_constant=refuse_constant,
            parse_float=finite,
            object_pairs_hook=unique_keys,
        )
    except RecursionError as error:
        raise ValueError("the value is nested too deeply") from error
    return shallow(value)


def shallow(value: Any) -> Any:
    """Return a JSON value.

    Raises:
        ValueError: it is nested too deeply.
    """
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return value
    raise ValueError("the value is nested too deeply")


def finite(text: str) -> float:
    """Return the number that `text` spells.

    Raises:
        ValueError: it is too large for a float.
    """
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text:.40} is too large for a number")
    return value


def refuse_constant(name: str) -> NoReturn:
    """Refuse what Python would read as NaN or an infinity."""
    raise ValueError(f"{name} is not a JSON number")


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of `pairs`.

    Raises:
        ValueError: a key stands twice in it.
    """
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} stands twice in one object")
    return value


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in a JSON value, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key in sorted(value):
            yield from texts_in(value[key])
    elif isinstance(value, Sequence):
        for part in value:
            yield from texts_in(part)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def digest(tag: str, value: Any) -> str:
    """Return the SHA-256 (64 hex digits) of `tag` and the canonical form of `value`."""
    return hashlib.sha256(f"{tag}\n{canonical_clean(value)}".encode()).hexdigest()


@lru_cache(maxsize=16)  # of one document at each of many rollouts
def text_digest(text: str) -> str:
    """Return the SHA-256 (64 hex digits) of `text` in UTF-8: what `sha256sum` prints."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()

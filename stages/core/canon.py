"""One canonical text for any JSON value, and tagged digests of it.

Canonical form: sorted keys, no blanks, UTF-8 as it is, no NaN. A tag names the kind and
version of the thing digested, so that two kinds never share a key.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any


def clean(text: str) -> str:
    """Return `text` with lone surrogates replaced by U+FFFD, so that it encodes as UTF-8."""
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
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def digest(tag: str, value: Any) -> str:
    """Return the SHA-256 (64 hex digits) of `tag` and the canonical form of `value`."""
    return hashlib.sha256(f"{tag}\n{canonical(cleaned(value))}".encode()).hexdigest()


def text_digest(text: str) -> str:
    """Return the SHA-256 (64 hex digits) of `text` in UTF-8: what `sha256sum` prints."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()

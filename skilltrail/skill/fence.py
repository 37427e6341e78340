"""Fences around material that must not speak for itself, and its clipping.

A fence's tag is a digest of all that it will hold, so nothing inside can close it: a text that
held the tag would have another digest. That the tag stands nowhere inside is checked as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skilltrail.core.canon import clean, digest

_TAG_CHARS = 12


@dataclass(frozen=True)
class Fence:
    """Wraps texts between BEGIN and END lines that carry `tag`."""

    tag: str

    def wrap(self, name: str, text: str) -> str:
        """Return `text` between its two lines; an empty one says so."""
        inner = clean(text).rstrip("\n")
        shown = inner if inner.strip() else "(nothing)"
        return f"==== BEGIN {name} {self.tag} ====\n{shown}\n==== END {name} {self.tag} ===="


def fence_for(texts: Mapping[str, str]) -> Fence:
    """Return a fence that none of `texts` can close."""
    turn = 0
    while True:
        tag = digest("fence/1", [turn, dict(texts)])[:_TAG_CHARS]
        if not any(tag in text for text in texts.values()):
            return Fence(tag)
        turn += 1


def fenced(texts: Mapping[str, str]) -> dict[str, str]:
    """Return each text in the fence of them all, by name."""
    fence = fence_for(texts)
    return {name: fence.wrap(name, text) for name, text in texts.items()}


def clip(text: str, limit: int) -> tuple[str, int]:
    """Return at most about `limit` characters of `text`, head and tail, and how many were cut.

    The cut is marked where it is made; it never adds to a text that fits.
    """
    if len(text) <= limit:
        return text, 0
    head, tail = limit - limit // 2, limit // 2
    cut = len(text) - head - tail
    end = text[len(text) - tail :] if tail else ""
    return f"{text[:head]}\n[… {cut} characters cut here …]\n{end}", cut

"""Texts made short for a skill document: on one line, cut around an answer."""

from __future__ import annotations


def fold(text: str) -> str:
    """Return `text` on one line."""
    return " ".join(text.split())


def around(context: str, answer: str, chars: int) -> str | None:
    """Return at most about `chars` characters of `context`, whole words with `answer` in them.

    None when a longer context does not hold the answer word for word.
    """
    if len(context) <= chars:
        return context
    at = context.find(answer)
    if at < 0 or len(answer) > chars:
        return None
    spare = (chars - len(answer)) // 2
    start = max(0, min(at - spare, len(context) - chars))
    end = min(len(context), start + chars)
    if start > 0:
        start = min(context.find(" ", start) + 1, at) if context.find(" ", start) >= 0 else at
    if end < len(context):
        end = max(context.rfind(" ", 0, end), at + len(answer))
    return context[start:end]

"""The words of the field for what logs, which keep their bytes, call otherwise."""

from __future__ import annotations

TERMS = {
    "no_patch": "no edit proposed",
    "no_change": "document unchanged",
    "nobody proposed an edit": "no edit proposed",
    "cannot win any more": "cannot reach the current score",
    "one half of what lost": "retry: half of the rejected edits",
}


def in_terms(recorded: str) -> str:
    """Return a recorded word or reason as people are told it."""
    word = next((word for word in TERMS if recorded.startswith(word)), "")
    return TERMS[word] + recorded[len(word) :] if word else recorded

"""The answer inside a reply.

Source: the reading rule that SkillOpt's question environments share. The text of the last
closed `<answer>` pair counts (any letter case, it may span lines); without a closed pair the
last line that is not blank; else "". An empty pair is an empty answer, not a missing one.
"""

from __future__ import annotations

import re

_TAG = re.compile(r"<(/?)(\w+)>")


def extract_answer(text: str, tag: str = "answer") -> str:
    """Return the answer that `text` gives, without blanks around it."""
    found = tagged(text, tag)
    return last_line(text) if found is None else found


def tagged(text: str, tag: str) -> str | None:
    """Return the text of the last closed pair of `tag`, or None when there is none.

    Pairs are read from the left and never overlap, so a pair opened twice starts at the first.
    One pass over the text, however many tags it holds.
    """
    wanted = tag.lower()
    start: int | None = None
    answer: str | None = None
    for mark in _TAG.finditer(text):
        if mark[2].lower() != wanted:
            continue
        if not mark[1]:
            start = mark.end() if start is None else start
        elif start is not None:
            answer, start = text[start : mark.start()].strip(), None
    return answer


def last_line(text: str) -> str:
    """Return the last line that is not blank, without blanks around it, or ""."""
    # As Python tells lines: at a bare CR, a form feed and U+2028 too.
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""

"""The code in a reply: what stands between the first pair of fences, else the whole reply."""

from __future__ import annotations

import re

_FENCED = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)


def code_in(text: str) -> str:
    """Return the code of a reply, "" when there is none.

    A block that was cut off before its closing fence counts up to its end. Source: the reading
    rule of SpreadsheetBench's inference scripts (first fenced block, else everything).
    """
    match = _FENCED.search(text)
    return (match[1] if match is not None else text).strip("\n").rstrip()

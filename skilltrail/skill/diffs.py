"""Unified diffs of skill documents, in the form that `git apply` reads."""

from __future__ import annotations

import difflib

from skilltrail.skill.document import raw_lines

_NO_LINE_END = "\n\\ No newline at end of file\n"


def unified_diff(before: str, after: str, name: str = "skill.md", context: int = 3) -> str:
    """Return the unified diff from `before` to `after`; "" when they are equal."""
    lines = difflib.unified_diff(
        raw_lines(before), raw_lines(after), f"a/{name}", f"b/{name}", n=context
    )
    return "".join(line if line.endswith("\n") else line + _NO_LINE_END for line in lines)

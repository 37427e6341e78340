"""Apply a unified diff exactly: the way back from a recorded diff to the document.

A recorded diff stays readable whatever becomes of the rules by which edits apply, so a version
is rebuilt from diffs, and `verify` shows that the edits give the same text. There is no fuzz: a
context line that differs is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from skilltrail.core.errors import FaultError
from skilltrail.skill.document import raw_lines

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE = "\\"  # starts the line "\ No newline at end of file"


def patched(before: str, diff: str) -> str:
    """Return the text that `diff` makes of `before`; an empty diff changes nothing.

    Raises:
        FaultError: the diff is malformed or does not fit `before`.
    """
    old = raw_lines(before)
    new: list[str] = []
    at = 0
    for start, removed, added in _hunks(diff):
        if old[start : start + len(removed)] != removed or start < at:
            raise FaultError(f"recorded diff at line {start + 1}", "does not fit the document")
        new += old[at:start] + added
        at = start + len(removed)
    return "".join(new + old[at:])


def _hunks(diff: str) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield (0-based start, old lines, new lines) of each hunk."""
    lines = raw_lines(diff)
    at = next((n for n, line in enumerate(lines) if line.startswith("@@")), len(lines))
    if lines and at == len(lines):
        raise FaultError("recorded diff", "has no hunk")
    while at < len(lines):
        head = _HUNK.match(lines[at])
        if head is None:
            raise FaultError(f"recorded diff, line {at + 1}", "is not a hunk header")
        end = at + 1
        while end < len(lines) and not lines[end].startswith("@@"):
            end += 1
        old, new = _sides(lines[at + 1 : end])
        counts = (_count(head[2]), _count(head[4]))
        if counts != (len(old), len(new)):
            raise FaultError(f"recorded diff, line {at + 1}", "the hunk's length is wrong")
        # A hunk without old lines names the line it comes after.
        yield int(head[1]) - (1 if old else 0), old, new
        at = end


def _sides(body: list[str]) -> tuple[list[str], list[str]]:
    old: list[str] = []
    new: list[str] = []
    last: tuple[list[str], ...] = ()
    for line in body:
        mark, text = line[0], line[1:]
        if mark == _NO_NEWLINE:
            for side in last:
                side[-1] = side[-1].removesuffix("\n")
            continue
        sides = {" ": (old, new), "-": (old,), "+": (new,)}.get(mark)
        if sides is None:
            raise FaultError("recorded diff", f"a line starts with {mark!r}")
        for side in sides:
            side.append(text)
        last = sides
    return old, new


def _count(text: str | None) -> int:
    return 1 if text is None else int(text)

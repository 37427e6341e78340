"""Where the target of an edit stands in its parent document: exactly one place, or a reason.

A target is whole lines. It may differ from the document in blanks at line ends (then the match
says `trailing_space`); anything looser is refused, and the nearest real line is named.
Protected regions take no part, except that a target which reaches into one is `protected`.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

from skilltrail.skill.document import Document
from skilltrail.skill.edit import EditStatus, text_lines
from skilltrail.skill.markdown import is_blank

# A place in a document: (0-based line, 0-based column).
Place = tuple[int, int]

_SHOWN_CHARS = 160
_WORD = re.compile(r"[^ \t!-/:-@\[-`{-~]+")


class EditRefused(Exception):
    """An edit that will not be applied. `lines` are 1-based; `detail` is "code: sentence".

    `holds`: it is refused for the sake of a frozen frontmatter alone.
    """

    def __init__(
        self,
        status: EditStatus,
        detail: str,
        lines: Iterable[int] = (),
        *,
        holds: bool = False,
    ) -> None:
        self.status, self.detail, self.lines = status, detail, tuple(lines)
        self.holds = holds
        super().__init__(detail)


@dataclass(frozen=True)
class Match:
    """The matched text: from `start` up to `end`. Whole lines begin and end at column 0."""

    start: Place
    end: Place
    matched_by: str = "exact"

    @property
    def lines(self) -> tuple[int, ...]:
        """1-based numbers of the lines it touches."""
        last = self.end[0] if self.end[1] == 0 else self.end[0] + 1
        return tuple(range(self.start[0] + 1, last + 1))


def bare(lines: Sequence[str]) -> list[str]:
    """Return `lines` without blanks at their ends and without blank lines at the end."""
    stripped = [line.rstrip(" \t") for line in lines]
    while len(stripped) > 1 and not stripped[-1]:
        stripped.pop()
    return stripped


def match_lines(document: Document, target: str, first: int, last: int) -> Match:
    """Return the one place among lines `first` up to `last` where the lines of `target` stand.

    Raises:
        Refused: not_found, ambiguous (all 1-based lines) or protected.
    """
    wanted = text_lines(target)
    reaching: list[int] = []
    for matched_by in ("exact", "trailing_space"):
        lines: Sequence[str] = document.lines
        if matched_by == "trailing_space":
            wanted = bare(wanted)
            lines = [line.rstrip(" \t") for line in lines]
        starts = _windows(lines, wanted, first, last)
        free = [at for at in starts if not document.touches_region(at, at + len(wanted))]
        if len(free) == 1:
            return Match((free[0], 0), (free[0] + len(wanted), 0), matched_by)
        if free:
            raise _ambiguous(at + 1 for at in free)
        reaching = reaching or starts
    if reaching:
        raise _protected(reaching[0] + 1)
    raise _partly(document, target, first, last)


def match_inline(document: Document, target: str, first: int, last: int) -> Match:
    """Return the one place inside a line where `target` stands.

    Raises:
        Refused: invalid when `target` spans lines, else as `match_lines`.
    """
    wanted = text_lines(target)
    if len(wanted) != 1:
        raise EditRefused(
            EditStatus.INVALID, "inline_target: an inline target lies in one line"
        )
    free, reaching = _occurrences(document, wanted[0], first, last)
    if len(free) == 1:
        (number, column), _ = free[0]
        return Match((number, column), (number, column + len(wanted[0])))
    if free:
        raise _ambiguous(start[0] + 1 for start, _ in free)
    if reaching:
        raise _protected(reaching[0][0][0] + 1)
    raise _not_found(document, wanted, first, last)


def nearest(document: Document, wanted: Sequence[str], first: int, last: int) -> str:
    """Return a sentence with the line that shares most words with `wanted`, or ""."""
    probe = max(wanted, key=len)[:_SHOWN_CHARS]
    words = set(_WORD.findall(probe))
    scored = []
    for number in range(first, last):
        line = document.lines[number]
        if document.touches_region(number, number + 1) or is_blank(line):
            continue
        shared = len(words & set(_WORD.findall(line[: 4 * _SHOWN_CHARS])))
        scored.append((-shared, number))
    close = [
        (-SequenceMatcher(None, probe, document.lines[n][:_SHOWN_CHARS]).ratio(), n)
        for _, n in sorted(scored)[:8]
    ]
    if not close:
        return ""
    number = min(close)[1]
    return f"; nearest is line {number + 1}: {clipped(document.lines[number])}"


def clipped(text: str, chars: int = _SHOWN_CHARS) -> str:
    """Return `text` in quotes, at most so many characters of it."""
    shown = text if len(text) <= chars else text[:chars] + "…"
    # Not repr: what it escapes differs between Python versions, and details are recorded.
    return json.dumps(shown, ensure_ascii=False)


def _windows(lines: Sequence[str], wanted: Sequence[str], first: int, last: int) -> list[int]:
    size = len(wanted)
    return [
        at
        for at in range(first, last - size + 1)
        if lines[at] == wanted[0] and list(lines[at : at + size]) == list(wanted)
    ]


def _occurrences(
    document: Document, text: str, first: int, last: int
) -> tuple[list[tuple[Place, int]], list[tuple[Place, int]]]:
    """Return where `text` stands as characters, ((line, column), last line): free, reaching.

    Overlapping occurrences count. `reaching` ones overlap a protected region.
    """
    lines = document.lines[first:last]
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    joined = "\n".join(lines)
    free: list[tuple[Place, int]] = []
    reaching: list[tuple[Place, int]] = []
    at = joined.find(text)
    while at >= 0:
        number = bisect_right(starts, at) - 1
        end = first + number + text.count("\n")
        place = (first + number, at - starts[number])
        touches = document.touches_region(place[0], end + 1)
        (reaching if touches else free).append((place, end))
        at = joined.find(text, at + 1)
    return free, reaching


def _partly(document: Document, target: str, first: int, last: int) -> EditRefused:
    """Return why a target that no whole lines match is refused."""
    wanted = text_lines(target)
    text = "\n".join(wanted).strip("\n")
    free, reaching = _occurrences(document, text, first, last)
    if len(free) > 1:
        return _ambiguous(start[0] + 1 for start, _ in free)
    if free:
        (number, _), end = free[0]
        return EditRefused(
            EditStatus.NOT_FOUND,
            "mid_line: the target is only part of its lines; name whole lines"
            f" for text within one; line {number + 1} is {clipped(document.lines[number])}",
            range(number + 1, end + 2),
        )
    if reaching:
        return _protected(reaching[0][0][0] + 1)
    return _not_found(document, wanted, first, last)


def _ambiguous(lines: Iterable[int]) -> EditRefused:
    matches = list(lines)
    numbers = sorted(set(matches))
    shown = ", ".join(str(number) for number in numbers[:20])
    more = "" if len(numbers) <= 20 else ", …"
    detail = f"matches={len(matches)}: the target stands on lines {shown}{more}"
    return EditRefused(EditStatus.AMBIGUOUS, detail, numbers)


def _protected(line: int) -> EditRefused:
    detail = f"region: the target reaches into a protected region (line {line})"
    return EditRefused(EditStatus.PROTECTED, detail, (line,))


def _not_found(document: Document, wanted: Sequence[str], first: int, last: int) -> EditRefused:
    detail = f"absent: no line of the parent document is {clipped(max(wanted, key=len))}"
    return EditRefused(EditStatus.NOT_FOUND, detail + nearest(document, wanted, first, last))

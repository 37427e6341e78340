"""Lines that a person should look at before a skill goes live, and why, line by line.

No list of words reads meaning, so nothing is refused here: a line is shown with its risks and
asked about. The markers of protected regions are no comments.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files

from ruamel.yaml import YAML

from skilltrail.core.hidden import UNSEEN, unseen_codes
from skilltrail.core.redact import Redactor
from skilltrail.skill.document import BOM, marker, split_lines
from skilltrail.skill.risk_patterns import COMMAND, LINK, PATH


class Risk(str, Enum):
    """Why a line should be looked at."""

    HIDDEN = "hidden"  # signs nobody sees, look-alike letters, encoded text
    COMMENT = "comments"  # what a page shows to nobody
    PATH = "paths"
    CREDENTIAL = "credentials"
    SENDING = "sending"
    TOOL = "tools"
    LINK = "links"
    ORDER = "orders"  # about other instructions, reviews and limits


@dataclass(frozen=True)
class RiskyLine:
    """A line of a document (1-based) with its risks."""

    line: int
    text: str
    risks: tuple[Risk, ...]


_PIECE = 1024
_SPELLED = tuple(
    (re.compile(pattern, re.IGNORECASE), sign)
    for pattern, sign in (
        (r"\bhxxp", "http"),
        (r"[ \t]?[\[({][ \t]?(?:dot|\.)[ \t]?[\])}][ \t]?", "."),
        (r"[ \t]?[\[({][ \t]?(?:at|@)[ \t]?[\])}][ \t]?", "@"),
        (r"\[:\]", ":"),
    )
)
_REDACT = Redactor()
_MORE = {Risk.PATH: (PATH,), Risk.TOOL: (COMMAND,), Risk.LINK: (LINK,)}


def risks_of(line: str) -> tuple[Risk, ...]:
    """Return why this line should be looked at, () = it need not be."""
    if marker(line):
        return ()
    shown = plain(line)
    found = [
        risk for risk, patterns in _patterns().items() if any(p.search(shown) for p in patterns)
    ]
    if unseen_codes(line) and Risk.HIDDEN not in found:
        found.insert(0, Risk.HIDDEN)
    if Risk.CREDENTIAL not in found and Redactor().text(line) != line:
        found.append(Risk.CREDENTIAL)
    return tuple(found)


def risky_lines(text: str, before: str = "") -> tuple[RiskyLine, ...]:
    """Return the lines of `text` that `before` has not and that carry a risk, in order.

    A line that stands in `before` n times is new from the n-th more on. What lies within a
    comment of several lines is a comment.
    """
    old = Counter(split_lines(before.removeprefix(BOM)))
    found = []
    for number, (line, commented) in enumerate(_lines(text.removeprefix(BOM)), start=1):
        if old[line] > 0:
            old[line] -= 1
            continue
        risks = risks_of(line)
        if commented and line.strip() and Risk.COMMENT not in risks:
            risks = (*risks, Risk.COMMENT)
        if risks:
            found.append(RiskyLine(number, line, risks))
    return tuple(found)


def risks_told(lines: Iterable[RiskyLine]) -> str:
    """Return how many lines carry each risk, in words; "none" for no line."""
    counts = Counter(risk for line in lines for risk in line.risks)
    told = [f"{risk.value} {counts[risk]}" for risk in Risk if counts[risk]]
    return ", ".join(told) if told else "none"


def plain(text: str) -> str:
    """Return `text` with look-alike and invisible signs made plain."""
    # Piece by piece: putting many accents of one letter in order takes the square of them.
    pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
    folded = "".join(unicodedata.normalize("NFKC", piece) for piece in pieces)
    shown = UNSEEN.sub("", folded)
    for pattern, sign in _SPELLED:
        shown = pattern.sub(sign, shown)
    return shown


@cache
def _patterns() -> Mapping[Risk, tuple[re.Pattern[str], ...]]:
    text = files("skilltrail.skill").joinpath("risks.yaml").read_text(encoding="utf-8")
    words = YAML(typ="safe", pure=True).load(text)
    flags = re.IGNORECASE | re.VERBOSE
    return {r: (re.compile(words[r.value], flags), *_MORE.get(r, ())) for r in Risk}


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it lies in a comment that an earlier line opened."""
    inside = False
    for line in split_lines(text):
        yield line, inside
        inside = "-->" not in line if inside else line.rfind("<!--") > line.rfind("-->")

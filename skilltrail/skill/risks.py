"""Lines that a person should look at before a skill goes live, and why, line by line.

No list of words reads meaning, so nothing is refused here: a line is shown with its risks and
asked about. The markers of protected regions are no comments. A sentence that is wrapped counts
as one; a script that the skill had no letter of is a risk by itself, as few would read it.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from html import unescape
from importlib.resources import files
from itertools import pairwise

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
# A word in which a digit stands between letters or before some.
_MIXED = re.compile(
    r"\b(?=\w{0,40}[a-z][0134570$@]|[0134570]\w{0,3}[a-z]{2})[a-z0-9$@]{4,40}\b", re.IGNORECASE
)
_MORE = {Risk.PATH: (PATH,), Risk.TOOL: (COMMAND,), Risk.LINK: (LINK,)}
_LETTERS = str.maketrans("013457$@", "oieastsa")
_ESCAPED = re.compile(
    r"\\u\{?([0-9a-f]{4})\}?|\\x([0-9a-f]{2})|%([2-7][0-9a-f])(?![\d.%])", re.IGNORECASE
)
_WORD = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{12,2000}(?![\w+/-])")
_BLOCK = re.compile(r"\s*(?:[-+*>|#]|\d{1,9}[.)]|```|~~~)(?:\s|\w|$)")
# What skills in any language have: signs of units and formulas, not words.
_SYMBOLS = {
    "GREEK", "MICRO", "FEMININE", "MASCULINE", "DOUBLE-STRUCK", "MATHEMATICAL", "SCRIPT",
    "SUPERSCRIPT", "SUBSCRIPT", "MODIFIER", "ANGSTROM", "KELVIN", "OHM", "BLACK-LETTER", "",
    "FULLWIDTH", "HALFWIDTH", "ALEF", "BET", "PLANCK",
}  # fmt: skip


@lru_cache(maxsize=512)  # a line is asked about with each of its neighbours
def risks_of(line: str) -> tuple[Risk, ...]:
    """Return why this line should be looked at, () = it need not be."""
    if marker(line):
        return ()
    shown = plain(line)
    # What entities spell is read, and that they spell letters is seen.
    texts = {shown, _spelled(shown), _unescaped(shown), line if "&" in line else shown}
    found = [
        risk
        for risk, patterns in _patterns().items()
        if any(p.search(text) for p in patterns for text in texts)
    ]
    if Risk.HIDDEN not in found and (unseen_codes(line) or _holds_encoded(shown)):
        found.insert(0, Risk.HIDDEN)
    if Risk.ORDER not in found and any(p.search(shown[::-1]) for p in _patterns()[Risk.ORDER]):
        found.append(Risk.ORDER)
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
    known, lines = scripts_of(before), [*_lines(text.removeprefix(BOM))]
    for number, (line, commented) in enumerate(lines, start=1):
        if old[line] > 0:
            old[line] -= 1
            continue
        risks = risks_of(line)
        around = [one for one, _ in lines[max(0, number - 2) : number + 1]]
        across = [risk for pair in pairwise(around) for risk in _across(*pair)]
        risks += tuple(risk for risk in dict.fromkeys(across) if risk not in risks)
        if known and scripts_of(line) - known and Risk.HIDDEN not in risks:
            risks = (Risk.HIDDEN, *risks)
        if commented and line.strip() and Risk.COMMENT not in risks:
            risks = (*risks, Risk.COMMENT)
        if risks:
            found.append(RiskyLine(number, line, risks))
    return tuple(found)


def scripts_of(text: str) -> frozenset[str]:
    """Return the scripts that letters of a text are of, as Unicode calls them (`LATIN`)."""
    letters = {char for char in text if char.isalpha()}
    return frozenset(unicodedata.name(char, "").split(" ")[0] for char in letters) - _SYMBOLS


def _across(line: str, after: str) -> tuple[Risk, ...]:
    """Return the risks of a sentence that goes on in the next line, which neither has alone."""
    begun = line.rstrip(" \t\\")
    whole = not begun or begun[-1] in ".!?:;|`" or not after.strip() or _BLOCK.match(after)
    if whole or marker(line) or marker(after):
        return ()
    joined = begun[:-1] + after.lstrip() if begun.endswith("-") else f"{begun} {after.lstrip()}"
    alone = {*risks_of(line), *risks_of(after)}
    return tuple(risk for risk in risks_of(joined) if risk not in alone)


def _spelled(text: str) -> str:
    """Return `text` with digits that stand for letters inside words as these letters."""
    return _MIXED.sub(lambda found: found[0].translate(_LETTERS), text)


def _unescaped(text: str) -> str:
    """Return `text` with the letters that escapes of programs and addresses stand for."""
    letters = _ESCAPED.sub(lambda found: chr(int(found[1] or found[2] or found[3], 16)), text)
    return re.sub(r"\\[tnr](?=[a-z])", " ", letters)


def _holds_encoded(text: str) -> bool:
    """Return whether a word is base64 of a readable text."""
    for found in _WORD.finditer(text):
        word = found[0].replace("-", "+").replace("_", "/")
        try:
            said = b64decode(word + "=" * (-len(word) % 4), validate=True).decode("ascii")
        except ValueError:
            continue
        if " " in said.strip() and said.isprintable():
            return True
    return False


def risks_text(lines: Iterable[RiskyLine]) -> str:
    """Return how many lines carry each risk, in words; "none" for no line."""
    counts = Counter(risk for line in lines for risk in line.risks)
    told = [f"{risk.value} {counts[risk]}" for risk in Risk if counts[risk]]
    return ", ".join(told) if told else "none"


def plain(text: str) -> str:
    """Return `text` with look-alike and invisible signs made plain."""
    # Piece by piece: putting many accents of one letter in order takes the square of them.
    pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
    folded = "".join(unicodedata.normalize("NFKC", unescape(piece)) for piece in pieces)
    shown = UNSEEN.sub("", folded)
    for pattern, sign in _SPELLED:
        shown = pattern.sub(sign, shown)
    return shown


@cache
def _patterns() -> Mapping[Risk, tuple[re.Pattern[str], ...]]:
    flags = re.IGNORECASE | re.VERBOSE
    found: dict[Risk, tuple[re.Pattern[str], ...]] = {}
    for name in ("risks.yaml", "risks_spoken.yaml"):
        text = files("skilltrail.skill").joinpath(name).read_text(encoding="utf-8")
        words = YAML(typ="safe", pure=True).load(text)
        for risk in Risk:
            found[risk] = (*found.get(risk, ()), re.compile(words[risk.value], flags))
    return {risk: (*patterns, *_MORE.get(risk, ())) for risk, patterns in found.items()}


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it lies in a comment that an earlier line opened."""
    inside = False
    for line in split_lines(text):
        yield line, inside
        inside = "-->" not in line if inside else line.rfind("<!--") > line.rfind("-->")

"""Numbers in short answers, read as OfficeQA's official scorer reads them.

Thousands commas and currency signs are dropped; a number in brackets is negative unless it is a
bare year; `%` is dropped and nothing is scaled; a unit word within 20 characters belongs to the
number and is never multiplied in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CURRENCY = "$€£¥₹¢₩₽"
_IN_BRACKETS = re.compile(
    rf"\(\s*([{_CURRENCY}])?\s*(\d{{1,3}}(?:,\d{{3}})*(?:\.\d+)?|\d+(?:\.\d+)?)\s*\)"
)
_THOUSANDS = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)")
_NUMBER = re.compile(r"-?\d+\.?\d*%?")
_ENTRY = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?%?")
_UNIT_CHARS = 20
_UNITS = {
    "trillion": re.compile(r"\btrillions?\b"),
    "billion": re.compile(r"\b(?:billions?|b)\b"),
    "million": re.compile(r"\b(?:millions?|m)\b"),
    "thousand": re.compile(r"\b(?:thousands?|k)\b"),
}
_COUNTING_WORDS = re.compile(
    r"\b(?:trillions?|billions?|millions?|thousands?|hundreds?|percent|percentage|%)\b"
)


@dataclass(frozen=True)
class Number:
    """A number as written, with its unit word or None."""

    value: float
    unit: str | None = None


def numbers_in(text: str) -> list[Number]:
    """Return the numbers of `text` in order."""
    plain = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), _plain(text))
    return [
        Number(float(match[0].rstrip("%")), _unit_near(plain, match.start(), match.end()))
        for match in _NUMBER.finditer(plain)
    ]


def entry_value(text: str) -> float | None:
    """Return the number that an entry of a list is, or None: `(5,062)`, `$1,234.5`, `12%`."""
    text = _plain(text)
    if re.search(r"\s,|,\s", text) or _ENTRY.fullmatch(text) is None:
        return None
    return float(text.rstrip("%").replace(",", ""))


def words_in(text: str) -> str:
    """Return what `text` says besides numbers, units and signs; "" below two characters."""
    bare = _NUMBER.sub("", spaced(text).lower()).replace(",", "")
    bare = re.sub(r"[^\w\s]", " ", _COUNTING_WORDS.sub("", bare))
    words = " ".join(bare.split())
    return words if len(words) >= 2 else ""


def is_year(value: float) -> bool:
    """Return whether a number may be a year: whole, from 1900 to 2100."""
    return 1900 <= value <= 2100 and value == int(value)


def agrees(gold: Number, said: Number, tolerance: float) -> bool:
    """Return whether a number is within `tolerance` (a share of the gold) and its unit fits.

    Units fit when they are equal or one of them is absent. A gold of 0 wants exactly 0.
    """
    if gold.unit is not None and said.unit is not None and gold.unit != said.unit:
        return False
    if gold.value == 0:
        return said.value == 0
    return abs(gold.value - said.value) / abs(gold.value) <= tolerance


def spaced(text: str) -> str:
    """Return `text` with white space folded and the typographic minus as a hyphen."""
    return " ".join(text.replace("\u2212", "-").split())


def _plain(text: str) -> str:
    return re.sub(f"[{_CURRENCY}]", "", _IN_BRACKETS.sub(_negative, spaced(text)))


def _negative(match: re.Match[str]) -> str:
    bare_year = match[1] is None and is_year(float(match[2].replace(",", "")))
    return match[0] if bare_year else f"-{match[2]}"


def _unit_near(text: str, start: int, end: int) -> str | None:
    near = text[max(0, start - _UNIT_CHARS) : end + _UNIT_CHARS].lower()
    return next((unit for unit, words in _UNITS.items() if words.search(near)), None)

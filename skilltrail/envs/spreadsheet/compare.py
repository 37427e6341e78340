"""Comparing cells as SpreadsheetBench's `evaluation.py` does, oddities included.

Numbers (also booleans, and texts that `float()` accepts) are rounded to two places; a date with
time becomes whole days since 1899-12-30, half to even; a time of day loses its seconds. Then
empty text equals nothing, values of different types differ, and the rest is `==`.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

_FIRST_DAY = datetime.datetime(1899, 12, 30)
_SECONDS_A_DAY = 86_400


def transform(value: Any) -> Any:
    """Return the form of a cell's value that is compared."""
    if isinstance(value, (int, float)):
        return _rounded(value)
    if isinstance(value, datetime.time):
        return str(value)[:-3]
    if isinstance(value, datetime.datetime):
        since = value - _FIRST_DAY
        return round(since.days + since.seconds / _SECONDS_A_DAY, 0)
    if isinstance(value, str):
        try:
            return _rounded(value)
        except ValueError:
            return value
    return value


def _rounded(value: float | str) -> float:
    """Return a number rounded to two places; one too large for a float equals nothing."""
    try:
        return round(float(value), 2)
    except OverflowError:
        return float("nan")


def same(gold: Any, output: Any) -> bool:
    """Return whether two cells count as equal."""
    wanted, found = transform(gold), transform(output)
    if wanted in (None, "") and found in (None, ""):
        return True
    return type(wanted) is type(found) and bool(wanted == found)


def from_json(value: Any) -> Any:
    """Return the value that `reader.to_json` wrote."""
    if not isinstance(value, Mapping):
        return value
    ((kind, text),) = value.items()
    if kind == "float":
        return float(text)
    if kind == "timedelta":
        return datetime.timedelta(seconds=text)
    kinds: Mapping[str, Any] = {
        "datetime": datetime.datetime,
        "date": datetime.date,
        "time": datetime.time,
    }
    return kinds[kind].fromisoformat(text) if kind in kinds else (kind, text)


def wrong_cells(gold: Sequence[Any], output: Sequence[Any]) -> list[int]:
    """Return the places where two lists of JSON cell values, equally long, differ."""
    return [
        place
        for place, (wanted, found) in enumerate(zip(gold, output, strict=True))
        if not same(from_json(wanted), from_json(found))
    ]

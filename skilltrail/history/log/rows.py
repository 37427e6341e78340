"""Rows of scored rollouts, grouped by item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Rows = Mapping[str, Sequence[Row]]  # item id -> its rows, one per repeat


def by_item(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of each item, in order of first mention."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["item"], []).append(row)
    return found

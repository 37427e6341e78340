"""Which row of a sheet is its heading, and the rows below it as records.

People put a title above the heading and merge cells over it, leave cells out at the end of a
row, and total the columns below. The heading is the first row that is fuller than every row
above it and names a question and an answer; where none does, the first with two cells.
What is passed over or filled in is told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from skilltrail.core.canon import clean
from skilltrail.core.errors import DataError
from skilltrail.data.intake.columns import find_columns
from skilltrail.envs.protocol import Where

Cells = Sequence[Any]
_LOOKED_AT = 10  # rows that a heading is sought in
_SHOWN = 5
# What stands in front of the sums below a table.
_SUMS = re.compile(
    r"(?:grand |sub)?totals?|sums?|count|average|mean|summe|gesamt|anzahl|mittelwert"
    r"|합계|총계|소계|평균"
)


def headed(
    lines: Sequence[tuple[Where, Cells]], *, surplus: bool = False
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows below the heading by its names, and notes for a person.

    Args:
        lines: rows with at least one cell that is not blank, in file order.
        surplus: cells beyond the heading are a column without a name, as in a workbook; in
            text they are a comma that should have been quoted.

    Raises:
        DataError: a name stands twice, or a row has more cells than the heading.
    """
    if not lines:
        return [], []
    at = _heading([row for _, row in lines[:_LOOKED_AT]])
    where, row = lines[at]
    names = [clean(_text(cell)) for cell in row]
    while names and not names[-1]:
        names.pop()
    if surplus:
        names += [""] * (max(len(row) for _, row in lines) - len(names))
    twice = sorted({name for name in names if names.count(name) > 1} - {""})
    if twice:
        remedy = "Give every column of the heading its own name"
        raise DataError(str(where), f"column {twice[0]!r} twice", remedy)
    body = list(lines[at + 1 :])
    notes = [_above(lines[:at], where)] if at else []
    while body and _is_sum(body[-1][1]):
        where, row = body.pop()
        said = " ".join(filter(None, map(_text, row)))
        notes.append(f"line {where.line} sums up the table and is left out: {said[:80]!r}")
    notes += _nameless(names, body)
    rows, short = [], []
    for where, row in body:
        if any(_text(cell) for cell in row[len(names) :]):
            found = f"{len(row)} cells under {len(names)} columns"
            remedy = "Give the row one cell per column; quote cells that hold commas"
            raise DataError(str(where), found, remedy)
        if len(row) < len(names):
            short.append(where.line)
        cells = [*row, *[""] * (len(names) - len(row))]
        rows.append({name: cell for name, cell in zip(names, cells, strict=False) if name})
    if short:
        rows_have = "1 row has" if len(short) == 1 else f"{len(short)} rows have"
        notes.append(
            f"{rows_have} fewer cells than the heading ({_lines(short)}); missing ones count "
            "as empty"
        )
    return rows, notes


def _is_sum(row: Cells) -> bool:
    """True for a row that says "total" and otherwise holds numbers alone."""
    first, *rest = [text for text in map(_text, row) if text] or [""]
    word = _SUMS.fullmatch(first.rstrip(": ").casefold())
    return word is not None and all(map(_is_number, rest))


def _is_number(text: str) -> bool:
    try:
        float(text.rstrip("%").replace(" ", "").replace(",", "."))
    except ValueError:
        return False
    return True


def _heading(rows: Sequence[Cells]) -> int:
    fullest = 0
    for at, row in enumerate(rows):
        texts = [_text(cell) for cell in row if _text(cell)]
        if len(texts) > fullest:
            found = find_columns(texts)
            if {"question", "answer"} <= found.of.keys() and not found.guessed:
                return at
            fullest = len(texts)
    return next((at for at, row in enumerate(rows) if sum(map(bool, map(_text, row))) > 1), 0)


def _above(lines: Sequence[tuple[Where, Cells]], heading: Where) -> str:
    said = " / ".join(text for _, row in lines for text in map(_text, row) if text)
    return (
        f"the heading is line {heading.line}; above it stands {said[:80]!r}, which is left out"
    )


def _nameless(names: Sequence[str], body: Sequence[tuple[Where, Cells]]) -> list[str]:
    """Name the columns without a name that hold something but the number of the row."""
    found = []
    for at, name in enumerate(names):
        cells = [_text(row[at]) if at < len(row) else "" for _, row in body]
        numbers = at == 0 and cells == [str(number) for number in range(len(cells))]
        if not name and any(cells) and not numbers:
            found.append(str(at + 1))
    if not found:
        return []
    columns = (
        "column {} has no name and is" if len(found) == 1 else "columns {} have no name and are"
    )
    return [f"{columns.format(', '.join(found))} left out"]


def _lines(numbers: Sequence[int | None]) -> str:
    more = ", …" if len(numbers) > _SHOWN else ""
    return f"line {', '.join(map(str, numbers[:_SHOWN]))}{more}"


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def flattened(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows whose question or answer lies in an object with its fields as columns.

    `{"input": {"question": …}}` has a column `input.question`. Objects that are one value to us
    (choices by label, answers with `text`) stay, and so does a table that needs none of this.
    """
    first = dict(rows[0]) if rows else {}
    found = find_columns(list(first)).of
    plain = [role for role in ("question", "answer")
             if role in found and not _is_record(found[role], first[found[role]])]  # fmt: skip
    if len(plain) == 2 or not any(_is_record(name, value) for name, value in first.items()):
        return [dict(row) for row in rows]
    return [_flat(row, "") for row in rows]


def _flat(row: Mapping[str, Any], before: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if _is_record(name, value):
            flat |= _flat(value, f"{before}{name}.")
        else:
            flat[f"{before}{name}"] = value
    return flat


def _is_record(name: str, value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and not {"text", "aliases"} & value.keys()
        and find_columns([name]).get("choices") is None
    )

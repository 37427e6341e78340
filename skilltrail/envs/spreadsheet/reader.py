"""Reading workbooks: the cells that an answer position names, and a preview.

This file stands alone (openpyxl and the standard library), because workbooks that model-written
code made are read by it *inside the sandbox*: `python reader.py request.json`.

How an answer position is read follows SpreadsheetBench's `evaluation.py`, quirks included:
parts are split at every comma, a part at `!`; single quotes are stripped at both ends of either
half; a range is taken apart letter by letter. What the official code cannot read it counts as a
failed case; here it is a `BadRange`.
"""

from __future__ import annotations

import datetime
import json
import math
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import openpyxl

MOST_UNPACKED = 100 * 2**20  # bytes of a workbook's parts together
MOST_PARTS = 5_000
MOST_CELLS = 500_000  # of one answer position, over all sheets
_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]+)")
_LAST_COLUMN = 18_278  # ZZZ


class BadRange(ValueError):
    """A part of an answer position that the official evaluator cannot read."""


class BadWorkbook(ValueError):
    """A file that is no workbook, or one that is too large when unpacked."""


def parts_of(position: str) -> list[tuple[str | None, str]]:
    """Return (sheet, range) of each part; sheet None = the gold's first sheet.

    Raises:
        BadRange: a part holds more than one `!`.
    """
    found: list[tuple[str | None, str]] = []
    for part in position.split(","):
        halves = part.split("!")
        if len(halves) > 2:
            raise BadRange(part)
        sheet = halves[0].strip("'") if len(halves) == 2 else None
        found.append((sheet, halves[-1].strip("'")))
    return found


def cells_of(area: str) -> list[tuple[int, int]]:
    """Return (row, column) of each cell of a range, column by column, counted from 1.

    Raises:
        BadRange: whole rows or columns, or no range at all.
    """
    if ":" not in area:
        return [_cell(area)]
    ends = area.split(":")
    if len(ends) != 2:
        raise BadRange(area)
    (first_column, first_row), (last_column, last_row) = (_corner(end) for end in ends)
    columns = range(first_column, last_column + 1)
    rows = range(first_row, last_row + 1)
    if len(columns) * len(rows) > MOST_CELLS:
        raise BadRange(f"{area}: more than {MOST_CELLS} cells")
    if len(columns) * len(rows) and (
        columns[0] < 1 or columns[-1] > _LAST_COLUMN or rows[0] < 1
    ):
        raise BadRange(area)
    return [(row, column) for column in columns for row in rows]


def _cell(name: str) -> tuple[int, int]:
    match = _CELL.fullmatch(name)
    if match is None or int(match[2]) < 1:
        raise BadRange(name)
    return int(match[2]), _column(match[1].upper())


def _corner(text: str) -> tuple[int, int]:
    """Return (column, row): letters and digits are gathered wherever they stand."""
    digits = "".join(char for char in text if char.isdigit())
    if not digits:
        raise BadRange(text)
    return _column("".join(char for char in text if not char.isdigit())), int(digits)


def _column(letters: str) -> int:
    """Return a column's number; small letters give the official's odd, higher numbers."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def check_size(path: Path) -> None:
    """Refuse what is no workbook or would unpack to too much.

    Raises:
        BadWorkbook: says which.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise BadWorkbook(f"no workbook: {error}") from error
    if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > MOST_UNPACKED:
        raise BadWorkbook("too large when unpacked")


def answer_cells(path: Path, position: str, *, count_formulas: bool = False) -> dict[str, Any]:
    """Return what stands in the cells of an answer position, as JSON values.

    {"sheets": names in order, "parts": [{sheet: [value, …]} or {"": error}], "formulas": how
    many of the cells hold a formula without a value}. A part without a sheet is read on every
    sheet: which one counts is the gold's to say.

    Raises:
        BadWorkbook: it cannot be read safely.
    """
    check_size(path)
    book = openpyxl.load_workbook(path, data_only=True, keep_links=False)
    parts: list[dict[str, Any]] = []
    unread: dict[str, set[tuple[int, int]]] = {}
    left = MOST_CELLS
    for sheet, area in _parts_or_error(position):
        try:
            cells = cells_of(area)
        except BadRange as error:
            parts.append({"": f"unreadable range {error}"})
            continue
        values: dict[str, list[Any]] = {}
        for name in book.sheetnames if sheet is None else [sheet]:
            if name in book.sheetnames and hasattr(book[name], "_cells") and left > 0:
                left -= len(cells)
                values[name] = list(_values(book[name], cells))
                nothing = {at for at, v in zip(cells, values[name], strict=True) if v is None}
                unread.setdefault(name, set()).update(nothing)
        parts.append(values)
    formulas = _without_value(path, unread) if count_formulas else 0
    return {"sheets": list(book.sheetnames), "parts": parts, "formulas": formulas}


def _parts_or_error(position: str) -> list[tuple[str | None, str]]:
    try:
        return parts_of(position)
    except BadRange as error:
        return [(None, f"!{error}")]


def _values(sheet: Any, cells: Sequence[tuple[int, int]]) -> Iterator[Any]:
    """Yield the values of cells; absent ones are not created, as `sheet.cell` would do."""
    stored = sheet._cells
    for place in cells:
        cell = stored.get(place)
        yield None if cell is None else to_json(cell.value)


def _without_value(path: Path, unread: dict[str, set[tuple[int, int]]]) -> int:
    """Return how many of the cells that read as nothing hold a formula."""
    if not unread or not _has_formulas(path):
        return 0
    book = openpyxl.load_workbook(path, keep_links=False)
    return sum(
        1
        for name, places in unread.items()
        for place in places
        if (cell := book[name]._cells.get(place)) is not None and cell.data_type == "f"
    )


def _has_formulas(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return any(
            re.search(rb"<f[ >/]", archive.read(name)) is not None
            for name in archive.namelist()
            if name.startswith("xl/worksheets/")
        )


def to_json(value: Any) -> Any:
    """Return a cell's value as JSON; a type that JSON lacks becomes {type: text}."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, datetime.timedelta):
        return {"timedelta": value.total_seconds()}
    for kind in (datetime.datetime, datetime.date, datetime.time):
        if type(value) is kind:
            return {kind.__name__: value.isoformat()}
    return {"other": type(value).__name__}


def preview(path: Path, rows: int, columns: int, text_chars: int = 40) -> str:
    """Return the first rows of every sheet as text, formulas as they stand.

    Raises:
        BadWorkbook: it cannot be read safely.
    """
    check_size(path)
    book = openpyxl.load_workbook(path, keep_links=False)
    lines: list[str] = []
    for sheet in book.worksheets:
        lines.append(f"Sheet {sheet.title!r}, cells {sheet.dimensions}")
        last_row = min(sheet.max_row, rows)
        for row in sheet.iter_rows(max_row=last_row, max_col=min(sheet.max_column, columns)):
            cells = [_shown(cell, text_chars) for cell in row if cell.value is not None]
            if cells:
                lines.append(" | ".join(cells))
        if sheet.max_row > rows:
            lines.append(f"({sheet.max_row - rows} more rows)")
    book.close()
    return "\n".join(lines)


def _shown(cell: Any, chars: int) -> str:
    value = cell.value
    text = getattr(value, "text", None) or str(value)
    text = " ".join(text.split())
    return f"{cell.coordinate} {text if len(text) <= chars else text[: chars - 1] + '…'}"


def main(request: str) -> None:
    """Answer the request file: a line of JSON for each workbook, as soon as it is read.

    A workbook that cannot be read ends this process; the caller sees which by the lines.
    """
    asked = json.loads(Path(request).read_text(encoding="utf-8"))
    with open("answer.jsonl", "w", encoding="utf-8", newline="\n") as file:
        for name in asked["files"]:
            found = answer_cells(Path(name), asked["position"], count_formulas=True)
            file.write(json.dumps(found, ensure_ascii=False, allow_nan=False) + "\n")
            file.flush()


if __name__ == "__main__":
    main(sys.argv[1])

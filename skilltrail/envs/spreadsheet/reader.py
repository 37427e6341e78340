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
import io
import json
import math
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import openpyxl
from openpyxl.reader.excel import ExcelReader
from openpyxl.utils import get_column_letter

MOST_UNPACKED = 100 * 2**20  # bytes of a workbook's parts together
MOST_PARTS = 5_000
MOST_CELLS = 500_000  # of one answer position, over all sheets
_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]+)")
_LAST_COLUMN, _LAST_ROW = 18_278, 1_048_576  # ZZZ, and what openpyxl takes at most
_STYLES = "xl/styles.xml"
_EMPTY_FILL = re.compile(rb"<((?:\w+:)?)fill\s*(?:/>|>\s*</\1fill\s*>)")


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
    n_columns, n_rows = last_column - first_column + 1, last_row - first_row + 1
    if n_columns < 1 or n_rows < 1:
        return []
    inside = first_column >= 1 and last_column <= _LAST_COLUMN
    if not inside or first_row < 1 or last_row > _LAST_ROW:
        raise BadRange(area)
    if n_columns * n_rows > MOST_CELLS:
        raise BadRange(f"{area}: more than {MOST_CELLS} cells")
    rows = range(first_row, last_row + 1)
    return [(row, column) for column in range(first_column, last_column + 1) for row in rows]


def _cell(name: str) -> tuple[int, int]:
    match = _CELL.fullmatch(name)
    if match is None or not 1 <= _number(match[2]) <= _LAST_ROW:
        raise BadRange(name)
    return _number(match[2]), _column(match[1].upper())


def _corner(text: str) -> tuple[int, int]:
    """Return (column, row): letters and digits are gathered wherever they stand."""
    digits = "".join(char for char in text if char.isdigit())
    return _column("".join(char for char in text if not char.isdigit())), _number(digits)


def _number(digits: str) -> int:
    try:
        return int(digits)
    except ValueError as error:  # none, superscripts, or more than Python reads
        raise BadRange(digits[:20]) from error


def _column(letters: str) -> int:
    """Return a column's number; small letters give the official's odd, higher numbers."""
    number = 0
    for letter in letters[:10]:  # far beyond any column
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def check_size(file: Path | io.BytesIO) -> None:
    """Refuse what is no workbook or would unpack to too much.

    Raises:
        BadWorkbook: says which.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise BadWorkbook(f"no workbook: {error}") from error
    if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > MOST_UNPACKED:
        raise BadWorkbook("too large when unpacked")


def sound(data: bytes) -> bytes:
    """Return a workbook as openpyxl can read it: other programs write fills without a pattern.

    Raises:
        BadWorkbook: it cannot be read safely.
    """
    check_size(io.BytesIO(data))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        styles = archive.read(_STYLES) if _STYLES in archive.namelist() else b""
        mended = _EMPTY_FILL.sub(rb"<\1fill><\1patternFill/></\1fill>", styles)
        if mended == styles:
            return data
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as copy:
            for part in archive.infolist():
                # A copy of a part's own header: its date must not change.
                copy.writestr(part, mended if part.filename == _STYLES else archive.read(part))
    return whole.getvalue()


def answer_cells(path: Path, position: str) -> dict[str, Any]:
    """Return what stands in the cells of an answer position, as JSON values.

    {"sheets": names in order, "parts": [{sheet: [value, …]} or {"": error}], "formulas": how
    many of the cells hold a formula without a value}. A part without a sheet is read on every
    sheet: which one counts is the gold's to say.

    Raises:
        BadWorkbook: it cannot be read safely.
    """
    data = sound(path.read_bytes())
    reader = ExcelReader(io.BytesIO(data), data_only=True, keep_links=False)
    reader.read()
    book = reader.wb
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
    formulas = _without_value(data, reader.parser.find_sheets(), unread)
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


def _without_value(
    data: bytes, sheets: Iterable[Any], unread: dict[str, set[tuple[int, int]]]
) -> int:
    """Return how many of the cells that read as nothing hold a formula not yet computed.

    A formula whose value is the empty text has been: its cell is marked as text.
    """
    found = 0
    archive = zipfile.ZipFile(io.BytesIO(data))
    for sheet, relation in sheets:
        names = {f"{get_column_letter(c)}{r}" for r, c in unread.get(sheet.name, ())}
        part = archive.read(relation.target) if names else b""
        if re.search(rb"<(?:\w+:)?f[ >/]", part) is None:
            continue
        for _, cell in ElementTree.iterparse(io.BytesIO(part)):
            if cell.tag.endswith("}c"):
                inside = {child.tag.rpartition("}")[2]: child.text for child in cell}
                unmade = "f" in inside and not inside.get("v") and cell.get("t") != "str"
                found += unmade and cell.get("r") in names
                cell.clear()
    return found


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
    book = openpyxl.load_workbook(io.BytesIO(sound(path.read_bytes())), keep_links=False)
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
            found = answer_cells(Path(name), asked["position"])
            file.write(json.dumps(found, ensure_ascii=False, allow_nan=False) + "\n")
            file.flush()


if __name__ == "__main__":
    main(sys.argv[1])

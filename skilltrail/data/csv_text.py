"""Records of CSV text: a header row, then one record per row, every value a string.

RFC 4180: commas, cells in double quotes may hold commas, line ends and doubled quotes. Read as
well: rows that end in a bare CR, a first line `sep=;` that names the separator (both Excel's),
columns without a name and without a value (Excel's too), and a first column without a name that
numbers the rows (pandas').
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator

from skilltrail.core.canon import clean
from skilltrail.core.errors import DataError
from skilltrail.data.record import Record, record_of
from skilltrail.envs.protocol import Where

_SEPARATOR = re.compile(r'"?sep=([,;\t|])"?[,;]*(?:\r\n|\r|\n|\Z)', re.IGNORECASE)


def csv_records(text: str, name: str) -> Iterator[Record]:
    """Yield the records of a file with a heading and one cell for each column in every row."""
    separator = separator_of(text)
    header: list[str] | None = None
    n_rows = 0
    for where, row in csv_rows(text, name):
        if header is None:
            header = _header(row, where, separator)
        else:
            yield _row(header, row, where, n_rows)
            n_rows += 1


def separator_of(text: str) -> str:
    """Return the sign between columns: what a first line `sep=;` says, else a comma."""
    named = _SEPARATOR.match(text)
    return "," if named is None else named[1]


def csv_rows(text: str, name: str) -> Iterator[tuple[Where, list[str]]]:
    """Yield the cells of every row that is not blank, and where it begins.

    Raises:
        DataError: the text is no CSV.
    """
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    named = _SEPARATOR.match(text)
    before = 0 if named is None else 1
    # The lines of a StringIO end at LF, CRLF and CR; U+2028 and its like are text.
    lines = io.StringIO(text[0 if named is None else named.end() :], newline="")
    rows = csv.reader(lines, delimiter=separator_of(text), strict=True)
    while True:
        where = Where(name, rows.line_num + 1 + before)
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(
                str(where),
                f"not valid CSV: {error}",
                "Quote cells that hold commas, quotes or line ends, and double inner quotes",
            ) from error
        if any(cell.strip() for cell in row):
            yield where, row


def _header(row: list[str], where: Where, separator: str) -> list[str]:
    header = [clean(cell.strip()) for cell in row]
    while header and not header[-1]:
        header.pop()
    empty = [index for index, cell in enumerate(header, start=1) if not cell and index > 1]
    twice = sorted({cell for cell in header if header.count(cell) > 1} - {""})
    if empty or twice or not any(header):
        found = f"column {empty[0]} has no name" if empty else f"column {twice[0]!r} twice"
        raise DataError(str(where), found, "Give every column of the first row its own name")
    marks = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
    other = next((mark for mark in marks if mark in header[0]), None)
    if len(header) == 1 and other is not None:
        remedy = f"Separate the columns with commas, or begin the file with a line sep={other}"
        found = f"one column only: the row has {marks[other]}, and {marks[separator]} are due"
        raise DataError(str(where), found, remedy)
    return header


def _row(header: list[str], row: list[str], where: Where, number: int) -> Record:
    cells, surplus = row[: len(header)], row[len(header) :]
    if len(row) < len(header) or any(cell.strip() for cell in surplus):
        raise DataError(
            str(where),
            f"{len(row)} cells under {len(header)} columns",
            "Give the row one cell per column; quote cells that hold commas",
        )
    if not header[0]:
        if cells[0].strip() != str(number):
            remedy = "Give every column of the first row its own name"
            raise DataError(str(where), "column 1 has no name, and numbers no rows", remedy)
        header, cells = header[1:], cells[1:]
    return record_of(dict(zip(header, cells, strict=True)), where)

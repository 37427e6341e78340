"""Records of CSV text: a header row, then one record per row, every value a string.

RFC 4180: commas, cells in double quotes may hold commas, line ends and doubled quotes.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator

from skilltrail.core.canon import clean
from skilltrail.core.errors import DataError
from skilltrail.data.record import Record, record_of
from skilltrail.envs.protocol import Where


def csv_records(text: str, name: str) -> Iterator[Record]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    lines = (line + "\n" for line in text.split("\n"))
    rows = csv.reader(lines, strict=True)
    header: list[str] | None = None
    while True:
        line = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(
                f"{name}, line {line}",
                f"not valid CSV: {error}",
                "Quote cells that hold commas, quotes or line ends, and double inner quotes",
            ) from error
        if not any(cell.strip() for cell in row):
            continue
        if header is None:
            header = _header(row, name, line)
        else:
            yield _row(header, row, Where(name, line))


def _header(row: list[str], name: str, line: int) -> list[str]:
    header = [clean(cell.strip()) for cell in row]
    empty = [index for index, cell in enumerate(header, start=1) if not cell]
    twice = sorted({cell for cell in header if header.count(cell) > 1})
    if empty or twice:
        found = f"column {empty[0]} has no name" if empty else f"column {twice[0]!r} twice"
        raise DataError(
            f"{name}, line {line}", found, "Give every column of the first row its own name"
        )
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise DataError(
            f"{name}, line {line}", "one column only", "Separate the columns with commas"
        )
    return header


def _row(header: list[str], row: list[str], where: Where) -> Record:
    if len(row) != len(header):
        raise DataError(
            f"{where.file}, line {where.line}",
            f"{len(row)} cells under {len(header)} columns",
            "Give the row one cell per column; quote cells that hold commas",
        )
    return record_of(dict(zip(header, row, strict=True)), where)

"""Records from files: a JSON array, JSON lines, or CSV, as the suffix says.

The suffix decides and nothing is guessed, so a JSONL file of one line is one record. Text is
UTF-8, with or without a byte order mark. Lines of JSONL end at "\\n" alone: U+2028 and its like
are characters of a string. A JSON file may also be an object whose `data` is the array (DocVQA,
SQuAD).
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from pathlib import Path

from skilltrail.core.errors import DataError
from skilltrail.data.csv_text import csv_records
from skilltrail.data.json_text import json_records, jsonl_records
from skilltrail.data.record import Record

SUFFIXES = (".json", ".jsonl", ".csv")
_PAGE = ("a web page", "Download the file itself (of a repository: the raw file)")
_PACKED = "Unpack it, and name the file inside"
# What stands in the place of a set of items, by its first bytes.
_OTHERS = {
    b"version https://git-lfs": ("a pointer of Git LFS", "Fetch the file itself: git lfs pull"),
    b"PK\x03\x04": ("a workbook or a zip archive", "Save the sheet as CSV, or unpack the file"),
    b"\xd0\xcf\x11\xe0": ("an old workbook", "Save the sheet as CSV UTF-8"),
    b"\x1f\x8b": ("packed by gzip", _PACKED),
    b"(\xb5/\xfd": ("packed by zstd", _PACKED),
    b"PAR1": ("a Parquet file", "Import it with `skilltrail init --data`, or write JSON lines"),
    b"SQLite format 3": ("a database", "Write its rows as JSON lines or CSV"),
    b"<!DOCTYPE": _PAGE, b"<!doctype": _PAGE, b"<html": _PAGE, b"<HTML": _PAGE,
    b"%PDF-": ("a PDF", "Write its records as JSON lines or CSV"),
}  # fmt: skip
_AS_UTF8 = "Save the file as UTF-8 (in Excel: CSV UTF-8)"


def read_records(path: Path, name: str | None = None) -> list[Record]:
    """Return the records of one file, in file order.

    Args:
        path: the file; its suffix is one of `SUFFIXES`.
        name: what messages call it; the path itself by default.

    Raises:
        DataError: no such file, not UTF-8, no records, or text that does not follow its
            format; names the file and the line.
    """
    name = str(path) if name is None else name
    readers: dict[str, Callable[[str, str], Iterator[Record]]] = {
        ".json": json_records,
        ".jsonl": jsonl_records,
        ".csv": csv_records,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError(
            f"{name} cannot be read as items",
            f"suffix {path.suffix!r}",
            f"Give the file one of the suffixes {', '.join(SUFFIXES)}",
        )
    text = _text(path, name)
    if not text.strip():
        raise DataError(name, "the file is empty", "Put at least one record in it")
    records = list(reader(text, name))
    if not records:
        raise DataError(name, "the file holds no records", "Put at least one record in it")
    return records


def _text(path: Path, name: str) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{name} cannot be read", error.strerror or str(error), "Check the path"
        ) from error
    other = next((what for mark, what in _OTHERS.items() if raw.startswith(mark)), None)
    if other is not None:
        what, remedy = other
        raise DataError(f"{name}, line 1", f"the file is {what}", remedy)
    wide = _wide_encoding(raw)
    if wide is not None:
        raise DataError(f"{name}, line 1", f"the text is {wide}", _AS_UTF8)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
        raise DataError(f"{name}, line {line}", found, _AS_UTF8) from error


def _wide_encoding(raw: bytes) -> str | None:
    """Return the encoding of a text that has zeros among its bytes, or None.

    The first character of an items file is ASCII: without a byte order mark it tells, too.
    """
    n_zeros = raw[:4].count(0)
    if raw[:4] in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE) or n_zeros == 3:
        return "UTF-32"
    is_marked = raw[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return "UTF-16" if is_marked or n_zeros == 2 else None

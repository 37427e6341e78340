"""The rows of one file or folder, in its own columns.

CSV may be separated by semicolons or tabs, and Korean Excel's CP949 is read too: both are told,
never guessed where the text says otherwise. A saved `datasets` folder needs the extra
`datasets` (pyarrow).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skilltrail.core.canon import cleaned
from skilltrail.core.errors import DataError
from skilltrail.data.csv_text import csv_rows
from skilltrail.data.intake.formats import FILES, unpacked
from skilltrail.data.intake.heading import flattened, headed
from skilltrail.data.read import read_records
from skilltrail.data.split_field import SPLIT_OF
from skilltrail.envs.protocol import Where

Row = dict[str, Any]
SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".xlsx", ".yaml", ".yml", ".eval")
_ARROW = (".arrow", ".parquet")
_ABOUT = ("dataset_info.json", "state.json", "dataset_dict.json")  # of a saved data set
_HANGUL = ("\uac00", "\ud7a3")


@dataclass
class Table:
    """Rows in file order, their format, and what a person should know of the reading."""

    rows: list[Row] = field(default_factory=list)
    kind: str = ""
    notes: list[str] = field(default_factory=list)


def read_table(path: Path) -> Table:
    """Return the rows of a file, or of a folder of one file per split.

    Raises:
        DataError: there is no such file, it cannot be read, or it holds no rows.
    """
    table = _folder(path) if path.is_dir() else _file(path)
    table.rows = [cleaned(row) for row in table.rows]
    if not table.rows:
        raise DataError(f"{path}", "no rows in it", "Put at least six in it, one per question")
    return table


def _file(path: Path) -> Table:
    suffix = path.suffix.lower()
    if not path.is_file():
        raise DataError(f"{path}", "no such file or folder", "Check the path")
    if suffix in (".csv", ".tsv"):
        return _csv(path, "\t" if suffix == ".tsv" else ",")
    if suffix == ".xlsx":
        return Table(kind="XLSX", **_xlsx(path))
    if suffix in _ARROW:
        return Table(_arrow(path), suffix[1:])
    if suffix in FILES:
        return _unpacked(path, FILES[suffix](path))
    if suffix in (".json", ".jsonl"):
        return _json(path)
    raise DataError(
        f"{path}", f"suffix {suffix!r}", f"Give a file of {', '.join(SUFFIXES)}, or a folder"
    )


def _json(path: Path) -> Table:
    """Read JSON lines, a list of objects, or a file that another tool wrote."""
    if path.suffix.lower() == ".json":
        value = _loaded(path)
        if isinstance(value, Mapping) and not isinstance(value.get("data"), list):
            return _unpacked(path, value)
    return _unpacked(path, [dict(one.data) for one in read_records(path)])


def _loaded(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}", f"not valid JSON ({error})", "Correct the file") from error


def _unpacked(path: Path, value: Any) -> Table:
    kind, rows, notes = unpacked(value, path)
    return Table(flattened(rows), kind, notes)


def _csv(path: Path, separator: str) -> Table:
    text, notes = _text(path)
    # A title above the heading has no separators.
    lines = [one for one in text.split("\n", 10)[:10] if re.search(r"[,;\t|]", one)]
    first = text.lstrip().split("\n", 1)[0] if not lines else lines[0]
    if separator == "," and not first.lower().startswith(("sep=", '"sep=')):
        counts = {mark: len(next(csv.reader([first], delimiter=mark), [])) for mark in ",;\t|"}
        separator = max(counts, key=lambda mark: counts[mark])
        if separator != ",":
            notes.append(f"read with {separator!r} between columns")
    marked = text if separator == "," else f"sep={separator}\n{text}"
    rows, told = headed(list(csv_rows(marked, str(path))))
    kind, found, more = unpacked(rows, path)
    return Table(list(found), "CSV" if kind == "JSON" else kind, notes + told + more)


def _text(path: Path) -> tuple[str, list[str]]:
    """Return a text file's text: UTF-8, UTF-16 that says so, or CP949 with Hangul in it."""
    raw = path.read_bytes()
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16", errors="replace"), ["read as UTF-16"]
    try:
        return raw.decode("utf-8-sig"), []
    except UnicodeDecodeError as error:
        try:
            text = raw.decode("cp949")
        except UnicodeDecodeError:
            text = ""
        if any(_HANGUL[0] <= sign <= _HANGUL[1] for sign in text):
            return text, ["read as CP949 (Korean Windows)"]
        line = raw.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        raise DataError(f"{path}, line {line}", found, "Save it as UTF-8") from error


def _xlsx(path: Path) -> dict[str, Any]:
    """Return rows and notes of a workbook's first sheet; the values of formulas, not their
    texts."""
    import zipfile

    import openpyxl

    try:
        book = openpyxl.load_workbook(io.BytesIO(path.read_bytes()), read_only=True,
                                      data_only=True)  # fmt: skip
        lines = [list(line) for line in book.worksheets[0].iter_rows(values_only=True)]
    except (OSError, ValueError, KeyError, IndexError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{path}", f"no workbook ({error})", "Save it again as .xlsx"
        ) from error
    filled = [
        (Where(str(path), number), [_cell(cell) for cell in line])
        for number, line in enumerate(lines, 1)
        if any(cell not in (None, "") for cell in line)
    ]
    rows, notes = headed(filled, surplus=True)
    return {"rows": rows, "notes": notes}


def _cell(value: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    return format(value, ".15g") if isinstance(value, (int, float)) else str(value)


def _folder(path: Path) -> Table:
    """Read a folder of one file or sub-folder per split; `datasets` saves such folders."""
    inner = sorted(one for one in path.iterdir() if not one.name.startswith("."))
    known = [one for one in inner if one.suffix.lower() in (*SUFFIXES, *_ARROW)]
    files = [one for one in known if one.name not in _ABOUT]
    parts = [one for one in inner if one.is_dir() and _split_named(one.name)]
    if parts:
        table = Table(kind="folder of splits")
        for part in parts:
            _add(table, _folder(part), _split_named(part.name))
        return table
    if len(files) == 1:
        return _file(files[0])
    named = [(one, _split_named(one.stem)) for one in files]
    if files and all(split for _, split in named):
        table = Table(kind="folder of splits")
        for one, split in named:
            _add(table, _file(one), split)
        return table
    if files and all(one.suffix in _ARROW for one in files):  # shards of one data set
        return Table([row for one in files for row in _arrow(one)], "datasets folder")
    found = ", ".join(one.name for one in inner[:8]) or "nothing"
    remedy = "Name one file, or a folder with one file per split (train, validation, test)"
    raise DataError(f"{path}", f"the folder holds {found}", remedy)


def _split_named(name: str) -> str:
    """Return the split that a file's name begins with: `validation-00000-of-00001`."""
    return SPLIT_OF.get(name.casefold(), SPLIT_OF.get(name.casefold().split("-")[0], ""))


def _add(table: Table, part: Table, split: str) -> None:
    table.rows += [{**row, "split": split} for row in part.rows]
    table.notes += [note for note in part.notes if note not in table.notes]


def _arrow(path: Path) -> list[Row]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError as error:
        remedy = 'Install it: `pip install "skilltrail[datasets]"`, or save the set as JSONL'
        raise DataError(f"{path} is an Arrow file", "pyarrow is missing", remedy) from error
    try:
        if path.suffix == ".parquet":
            table = parquet.read_table(path)
        else:
            with pa.memory_map(str(path)) as source:
                table = pa.ipc.open_stream(source).read_all()
        rows = list(table.to_pylist())
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path}", f"no Arrow file ({error})", "Save the set again") from error
    return _named(rows, (table.schema.metadata or {}).get(b"huggingface", b"{}"))


def _named(rows: list[Row], about: bytes) -> list[Row]:
    """Put the names of labels in place of their numbers, which `datasets` keeps beside."""
    try:
        features = json.loads(about)["info"]["features"]
        names = {
            column: list(one["names"])
            for column, one in features.items()
            if one.get("_type") == "ClassLabel"
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return rows
    for row in rows:
        for column, known in names.items():
            at = row.get(column)
            if isinstance(at, int) and 0 <= at < len(known):
                row[column] = str(known[at])
    return rows

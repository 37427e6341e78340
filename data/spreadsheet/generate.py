"""Make the project's own workbook tasks, in SpreadsheetBench's v0.1 layout.

    python data/spreadsheet/generate.py        writes {train,selection,test}.jsonl, spreadsheet/

Each task has three cases with other values and other numbers of rows, and a `solution`, which
makes the answer workbooks. Same seed, same tasks; files carry no clock time.
"""

from __future__ import annotations

import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import openpyxl

HERE = Path(__file__).resolve().parent
SEED = 20
SPLITS = {"train": 9, "selection": 6, "test": 9}
_FIXED = datetime(2024, 1, 1)

THINGS = ("Bolts", "Lamps", "Ropes", "Tiles", "Hinges", "Crates", "Valves", "Brushes", "Pumps",
          "Cables", "Filters", "Ladders")  # fmt: skip
PLACES = ("Aldby", "Corrie", "Fenwick", "Hollin", "Marsk", "Orton", "Selby")
HEAD = "import openpyxl\nbook = openpyxl.load_workbook('input.xlsx')\nsheet = book['{sheet}']\n"
TAIL = "book.save('output.xlsx')\n"

Rows = list[list[Any]]
Family = Callable[[random.Random], dict[str, Any]]


def _stock(chance: random.Random, count: int) -> Rows:
    names = chance.sample(THINGS, count)
    return [[name, chance.randint(2, 90), chance.randint(10, 900) / 10] for name in names]


def total(chance: random.Random) -> dict[str, Any]:
    column, head = chance.choice([("B", "Quantity"), ("C", "Price")])
    cell = chance.choice(["E1", "E2", "F3"])
    loop = (
        "total = 0\n"
        "for row in range(2, sheet.max_row + 1):\n"
        f"    total += sheet['{column}' + str(row)].value or 0\n"
        f"sheet['{cell}'] = total\n"
    )
    text = f"Write the sum of the column {head} ({column}) into cell {cell}."
    return _task("Stock", text, cell, loop, _stock, ["Item", "Quantity", "Price"])


def largest(chance: random.Random) -> dict[str, Any]:
    column, head = chance.choice([("B", "Quantity"), ("C", "Price")])
    cell = chance.choice(["E1", "E2", "F3"])
    loop = (
        "values = []\n"
        "for row in range(2, sheet.max_row + 1):\n"
        f"    values.append(sheet['{column}' + str(row)].value)\n"
        f"sheet['{cell}'] = max(values)\n"
    )
    text = f"Write the largest value of the column {head} ({column}) into cell {cell}."
    return _task("Stock", text, cell, loop, _stock, ["Item", "Quantity", "Price"])


def value(chance: random.Random) -> dict[str, Any]:
    head = chance.choice(["Value", "Amount", "Worth"])
    loop = (
        f"sheet['D1'] = '{head}'\n"
        "for row in range(2, sheet.max_row + 1):\n"
        "    count = sheet['B' + str(row)].value\n"
        "    sheet['D' + str(row)] = count * sheet['C' + str(row)].value\n"
    )
    text = f"Fill column D, headed {head}, with quantity times price of every row."
    return _task("Stock", text, "D1:D12", loop, _stock, ["Item", "Quantity", "Price"])


def mark(chance: random.Random) -> dict[str, Any]:
    least = chance.choice([20, 30, 40])
    loop = (
        "for row in range(2, sheet.max_row + 1):\n"
        f"    low = sheet['B' + str(row)].value < {least}\n"
        "    sheet['D' + str(row)] = 'order' if low else 'enough'\n"
    )
    text = f"In column D write order where the quantity is below {least}, else enough."
    return _task("Stock", text, "D2:D12", loop, _stock, ["Item", "Quantity", "Price"])


def count(chance: random.Random) -> dict[str, Any]:
    place = chance.choice(PLACES[:3])
    cell = chance.choice(["E1", "E2"])
    loop = (
        "count = 0\n"
        "for row in range(2, sheet.max_row + 1):\n"
        f"    if sheet['A' + str(row)].value == '{place}':\n"
        "        count += 1\n"
        f"sheet['{cell}'] = count\n"
    )
    text = f"Count the trips that start in {place} (column A) and write the number into {cell}."
    return _task("Trips", text, cell, loop, _trips, ["From", "Date", "Hours"])


def due(chance: random.Random) -> dict[str, Any]:
    days = chance.choice([7, 14, 30])
    loop = (
        "from datetime import timedelta\n"
        "for row in range(2, sheet.max_row + 1):\n"
        f"    sheet['D' + str(row)] = sheet['B' + str(row)].value + timedelta(days={days})\n"
    )
    text = f"In column D write the date that lies {days} days after the date in column B."
    return _task("Trips", text, "'Trips'!D2:D12", loop, _trips, ["From", "Date", "Hours"])


def _trips(chance: random.Random, count: int) -> Rows:
    start = datetime(2024, 3, 1)
    return [
        [chance.choice(PLACES[:4]), start + timedelta(days=chance.randint(0, 90)),
         chance.randint(1, 40) / 2]
        for _ in range(count)
    ]  # fmt: skip


def _task(
    sheet: str, text: str, position: str, body: str, rows: Any, heads: list[str]
) -> dict[str, Any]:
    kind = "Sheet-Level Manipulation" if ":" in position else "Cell-Level Manipulation"
    return {
        "instruction": text,
        "instruction_type": kind,
        "answer_position": position,
        "solution": HEAD.format(sheet=sheet) + body + TAIL,
        "make": (sheet, heads, rows),
    }


FAMILIES: tuple[Family, ...] = (total, largest, value, mark, count, due)


def main() -> None:
    """Write the items and their workbooks."""
    chance = random.Random(SEED)
    number = 0
    seen: set[str] = set()
    for split, size in SPLITS.items():
        lines = []
        for index in range(size):
            task = _fresh(FAMILIES[index % len(FAMILIES)], chance, seen)
            number += 1
            lines.append(_written(f"own-{number:02d}", task, chance))
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (HERE / f"{split}.jsonl").write_text(text, encoding="utf-8", newline="\n")


def _fresh(family: Family, chance: random.Random, seen: set[str]) -> dict[str, Any]:
    """Return a task whose text is new, as long as there are new ones."""
    task = family(chance)
    for _ in range(20):
        if task["instruction"] not in seen:
            break
        task = family(chance)
    seen.add(task["instruction"])
    return task


def _written(id: str, task: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    sheet, heads, make = task.pop("make")
    folder = HERE / "spreadsheet" / id
    folder.mkdir(parents=True, exist_ok=True)
    for case in (1, 2, 3):
        book = openpyxl.Workbook()
        book.active.title = sheet
        for row in [heads, *make(chance, chance.randint(4, 9))]:
            book.active.append(row)
        source = _bytes(book)
        (folder / f"{case}_{id}_input.xlsx").write_bytes(source)
        answer = _solved(source, task["solution"])
        (folder / f"{case}_{id}_answer.xlsx").write_bytes(answer)
    return {"id": id, **task, "spreadsheet_path": f"spreadsheet/{id}"}


def _solved(source: bytes, code: str) -> bytes:
    """Return what this file's own solution makes of a workbook."""
    body = code.removeprefix(code[: code.index("sheet =")]).removesuffix(TAIL)
    book = openpyxl.load_workbook(io.BytesIO(source))
    exec(body, {"book": book})
    return _bytes(book)


def _bytes(book: Any) -> bytes:
    """Return a workbook's bytes without any clock time in them."""
    book.properties.created = _FIXED
    raw = io.BytesIO()
    book.save(raw)
    fixed = io.BytesIO()
    with zipfile.ZipFile(raw) as old, zipfile.ZipFile(fixed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            data = re.sub(
                rb"(<dcterms:modified[^>]*>)[^<]*",
                rb"\g<1>2024-01-01T00:00:00Z",
                old.read(name),
            )
            entry = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, data)
    return fixed.getvalue()


if __name__ == "__main__":
    main()

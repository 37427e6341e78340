"""The cases of an item: which files a record names, and what its golds say.

Layouts, told by the names of the files in the record's folder:

    <n>_<id>_input.xlsx  <n>_<id>_answer.xlsx    v0.1, n = 1..3
    <n>_<id>_init.xlsx   <n>_<id>_golden.xlsx    Verified-400
    initial.xlsx         golden.xlsx             Verified-400, bare
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from openpyxl.utils.exceptions import InvalidFileException

from skilltrail.envs.kit.fields import shown
from skilltrail.envs.kit.files import file_digest
from skilltrail.envs.protocol import Where
from skilltrail.envs.spreadsheet.reader import BadWorkbook, answer_cells

_INPUT = re.compile(r"(\d+)_(.+)_(input|init)\.xlsx")
_ANSWER_OF = {"input": "answer", "init": "golden"}
# What openpyxl raises for files that are zips but no sound workbooks.
UNREADABLE = (
    BadWorkbook, BadZipFile, InvalidFileException, KeyError, ValueError, TypeError,
    AttributeError, IndexError, OSError, SyntaxError, EOFError,
)  # fmt: skip


@dataclass(frozen=True)
class CaseFiles:
    """The two workbooks of one case. `name` is the input's, from the data folder on."""

    number: int
    name: str
    input: Path
    answer: Path


def find_cases(record_path: Any, folders: Sequence[Path], where: Where) -> list[CaseFiles]:
    """Return the cases in the folder that a record's `spreadsheet_path` names, by number.

    Raises:
        DataError: no such folder below the data folders, or no case in it.
    """
    folder, data = _folder(record_path, folders, where)
    found = []
    for path in sorted(folder.glob("*.xlsx")):
        match = _INPUT.fullmatch(path.name)
        if match is not None:
            beside = f"{match[1]}_{match[2]}_{_ANSWER_OF[match[3]]}.xlsx"
            found.append((int(match[1]), path, folder / beside))
        elif path.name == "initial.xlsx":
            found.append((1, path, folder / "golden.xlsx"))
    if not found:
        raise where.error(
            "spreadsheet_path",
            f"no input workbook in {record_path}",
            "Expected <n>_<id>_input.xlsx, <n>_<id>_init.xlsx or initial.xlsx",
        )
    cases = []
    for number, path, answer in sorted(found, key=lambda case: case[0]):
        if not (_is_inside(path, data) and _is_inside(answer, data) and answer.is_file()):
            raise where.error(
                "spreadsheet_path",
                f"{path.name} without {answer.name} beside it",
                "Each input needs its answer beside it; neither may be a link that leads out",
            )
        cases.append(CaseFiles(number, path.relative_to(data).as_posix(), path, answer))
    return cases


def inputs_of(cases: Sequence[CaseFiles]) -> list[dict[str, Any]]:
    """Return what an item's input says of its cases: name and digest, no path."""
    return [{"case": case.number, "sha256": file_digest(case.input)} for case in cases]


def cells_in(path: Path, position: str, where: Where) -> dict[str, Any]:
    """Return the cells that a workbook holds at the answer position.

    Raises:
        BrokenItem: it cannot be read.
    """
    try:
        return answer_cells(path, position)
    except UNREADABLE as error:
        raise where.broken(
            "spreadsheet_path",
            f"{path.name} cannot be read: {shown(str(error))}",
            "Download the file again; it must be an .xlsx workbook",
        ) from error


def _folder(value: Any, folders: Sequence[Path], where: Where) -> tuple[Path, Path]:
    """Return the record's folder and the data folder that it lies in."""
    if not isinstance(value, str) or not value.strip():
        raise where.error(
            "spreadsheet_path", shown(value), "Name the folder of the item's workbooks"
        )
    parts = Path(value.replace("\\", "/")).parts
    tails = [parts[start:] for start in range(len(parts))] if ".." not in parts else []
    for tail in tails:
        for data in folders:
            folder = data.joinpath(*tail)
            if _is_inside(folder, data) and _is_folder(folder):
                return folder, data
    places = ", ".join(folder.as_posix() for folder in folders) or "no folder"
    raise where.error(
        "spreadsheet_path",
        f"no folder {shown(value)} below {places}",
        "Put the workbooks there, or name their folder in envs.spreadsheet.data_dirs",
    )


def _is_inside(path: Path, folder: Path) -> bool:
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except OSError:  # a name that no file can have
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that no folder can have
        return False

"""A skill folder as one text: `SKILL.md`, then each further file behind a line that names it.

    # The skill …
    (blank)
    <!-- SKILL FILE: references/units.md -->
    the text of references/units.md …

The text is cut exactly at these lines, so each file comes back byte for byte; a text without
any is a skill of one file. Sorted by path. Of a folder on disk, `SKILL.md`, `references/` and
`scripts/` are the skill (https://agentskills.io/specification); the rest is left alone.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from skilltrail.core.errors import SkillError
from skilltrail.core.files import write_atomic
from skilltrail.skill.document import unified_diff

MAIN = "SKILL.md"
PLACES = ("references", "scripts")
_MOST_FILES = 200
_MOST_BYTES = 1 << 20
_MARK = re.compile(r"\n<!-- SKILL FILE: ([^\n]+?) -->\n")
_LINE = re.compile(r"<!-- SKILL FILE: .* -->")
_ODD = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|\ud800-\udfff]')


@dataclass(frozen=True)
class FolderFile:
    """One file of a skill: `text` begins on line `start` (0-based) of the whole."""

    path: str
    start: int
    text: str


@lru_cache(maxsize=32)
def parts_of(text: str) -> tuple[FolderFile, ...]:
    """Return the files of a skill in order; a skill of one file is its `SKILL.md`."""
    marks = list(_MARK.finditer(text))
    starts = [0, *(mark.end() for mark in marks)]
    ends = [*(mark.start() for mark in marks), len(text)]
    paths = [MAIN, *(mark[1] for mark in marks)]
    return tuple(
        FolderFile(path, text.count("\n", 0, start), text[start:end])
        for path, start, end in zip(paths, starts, ends, strict=True)
    )


def is_folder(text: str) -> bool:
    """Return whether a skill has more than its `SKILL.md`."""
    return len(parts_of(text)) > 1


def files_of(text: str) -> dict[str, str]:
    """Return path -> text of a skill's files, `SKILL.md` first."""
    return {part.path: part.text for part in parts_of(text)}


def main_text(text: str) -> str:
    """Return the text of `SKILL.md`."""
    return parts_of(text)[0].text


def folder_text(files: Mapping[str, str]) -> str:
    """Return the one text of a folder's files."""
    rest = sorted(path for path in files if path != MAIN)
    return files[MAIN] + "".join(f"\n{mark_line(path)}\n{files[path]}" for path in rest)


def mark_line(path: str) -> str:
    """Return the line behind which the text of `path` stands."""
    return f"<!-- SKILL FILE: {path} -->"


def is_mark(line: str) -> bool:
    """Return whether a line looks like one that begins a file."""
    return _LINE.fullmatch(line.strip()) is not None


def place_of(text: str, line: int) -> tuple[str, int]:
    """Return (path, line within it) of a line of the whole, both 1-based.

    The lines between two files belong to the one they name, as its line 0.
    """
    for before, after in zip(parts_of(text), (*parts_of(text)[1:], None), strict=True):
        if after is None or line <= after.start - gap(before.text):
            return before.path, max(line - before.start, 0)
        if line <= after.start:
            return after.path, 0
    raise ValueError(f"line {line}")


def gap(before: str) -> int:
    """Return how many lines stand between a file of text `before` and the next one."""
    return 2 if not before or before.endswith("\n") else 1


def named_in(told: str, text: str) -> list[str]:
    """Return the files of a folder, `SKILL.md` apart, that the words of some calls name."""
    return [part.path for part in parts_of(text)[1:] if part.path in told]


def is_script(path: str) -> bool:
    return path.startswith("scripts/")


def is_reference(path: str) -> bool:
    return path.startswith("references/")


def is_markdown(path: str) -> bool:
    return path.endswith((".md", ".markdown"))


def is_test(path: str) -> bool:
    """Return whether a script is a test: `scripts/test_*`, or below `scripts/tests/`."""
    parts = PurePosixPath(path).parts
    return is_script(path) and (parts[-1].startswith("test_") or parts[1] == "tests")


def test_of(path: str) -> str:
    """Return where the test of a script lies: beside it."""
    at = PurePosixPath(path)
    return at.with_name(f"test_{at.name}").as_posix()


def script_fault(path: str, text: str) -> str | None:
    """Return what is wrong with the syntax of a Python script, None for other files."""
    if not path.endswith(".py"):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return f"line {error.lineno or 1} is not valid Python"
    except (ValueError, RecursionError, MemoryError):
        return "it is not valid Python"
    return None


def path_faults(text: str) -> list[str]:
    """Return what is wrong with the names and the order of a skill's files."""
    paths = [part.path for part in parts_of(text)]
    if len(paths) == 1:
        return []
    faults = [f"{path!r} cannot be a file of a skill" for path in paths[1:] if not _fits(path)]
    if paths[1:] != sorted(paths[1:]) or len({p.casefold() for p in paths}) != len(paths):
        faults.append("its files are not sorted by path, each once")
    return faults


def _fits(path: str) -> bool:
    names = path.split("/")
    return (
        len(names) > 1
        and names[0] in PLACES
        and _ODD.search(path) is None
        and path == path.strip()
        and all(name.strip(". ") and not name.startswith(".") for name in names)
        and len(path.encode()) <= 200
    )


def new_file_fault(path: str, known: Iterable[str]) -> str | None:
    """Return why no edit may add `path` to a folder of the files `known`; None = it may."""
    names = {one.casefold() for one in known}
    if not (is_reference(path) and is_markdown(path) and _fits(path)):
        return "new_file: a new file is called references/NAME.md"
    if path.casefold() in names:
        return "new_file: a file of that name in other case is there"
    return f"new_file: over {_MOST_FILES} files" if len(names) >= _MOST_FILES else None


def read_folder(folder: Path) -> str:
    """Return the one text of a folder on disk.

    Raises:
        SkillError: no `SKILL.md`, or a file that is no text, too large, a link, or badly named.
    """
    if not (folder / MAIN).is_file():
        raise SkillError(f"The skill folder {folder}", f"no {MAIN} in it", "Write one")
    found = sorted(p for place in PLACES for p in (folder / place).rglob("*"))
    paths = [folder / MAIN, *(p for p in found if p.is_symlink() or not p.is_dir())]
    files = {}
    for path in paths:
        name = path.relative_to(folder).as_posix()
        if any(part.startswith((".", "__pycache__")) for part in Path(name).parts):
            continue
        files[name] = _read(path, f"The skill folder {folder.name}", name)
        if len(files) > _MOST_FILES:
            raise SkillError(
                f"The skill folder {folder.name}",
                f"over {_MOST_FILES} files",
                "Train a smaller one",
            )
    text = folder_text(files)
    faults = path_faults(text)
    held = [path for path, one in files.items() if any(map(is_mark, one.split("\n")))]
    faults += [f"{path} holds a line that begins a file" for path in held]
    if faults:
        raise SkillError(f"The skill folder {folder.name}", "; ".join(faults), "Rename or fix")
    return text


def write_folder(folder: Path, text: str) -> list[Path]:
    """Write a skill's files into a folder and return their paths; others there stay."""
    written = []
    for path, one in files_of(text).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / path, one)
        written.append(folder / path)
    return written


def _read(path: Path, asked: str, name: str) -> str:
    remedy = "Put text files there only; others may lie beside, e.g. in assets/"
    if path.is_symlink() or not path.is_file():
        raise SkillError(asked, f"{name} is no plain file", remedy)
    data = path.read_bytes()
    if len(data) > _MOST_BYTES:
        raise SkillError(asked, f"{name} has over {_MOST_BYTES} bytes", remedy)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SkillError(asked, f"{name} is not UTF-8 ({error.reason})", remedy) from error


def files_diff(before: str, after: str) -> str:
    """Return the unified diff of two skills, file by file where one of them is a folder."""
    if not (is_folder(before) or is_folder(after)):
        return unified_diff(before, after)
    old, new = files_of(before), files_of(after)
    return "".join(
        unified_diff(old.get(path, ""), new.get(path, ""), path) for path in {**old, **new}
    )

"""Which code can change a run's result, as one list and one digest.

The list is told here alone: `dvc.yaml` depends on these rooms and `.dvcignore` passes over the
same files (a test holds them equal), so that an edit to a page, a command or a README makes
nothing run again and keeps a run's folder. A workspace's own environments count as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from skilltrail.envs.registry import own_folder

PACKAGE = Path(__file__).resolve().parents[1]
# `verify`, `report`, `cli` and `ui` read what a run left; they decide nothing in it.
ROOMS = (
    "core",
    "data",
    "envs",
    "history",
    "method",
    "methods",
    "models",
    "optimizers",
    "params",
    "runtime",
    "sandbox",
    "skill",
    "store",
)
COUNTED = {".py", ".md", ".yaml"}
NOT_COUNTED = {"README.md"}


@cache
def code_digest(package: Path = PACKAGE) -> str:
    """Return the SHA-256 over every code, prompt and rule file that can change a result."""
    return _digest(package, counted_files(package))


def counted_files(package: Path = PACKAGE) -> list[Path]:
    """Return the files behind `code_digest`, sorted."""
    return sorted(path for room in ROOMS for path in _counted(package / room))


def own_code() -> dict[str, str]:
    """Return `{"envs": digest}` of this workspace's own environments; {} where it has none."""
    folder = own_folder()
    files = [] if folder is None else sorted(_counted(folder))
    return {folder.name: _digest(folder, files)} if folder is not None and files else {}


def _counted(folder: Path) -> list[Path]:
    return [
        path
        for path in folder.rglob("*")
        if path.suffix in COUNTED
        and path.name not in NOT_COUNTED
        and "__pycache__" not in path.parts
    ]


def _digest(base: Path, files: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in files:
        total.update(path.relative_to(base).as_posix().encode() + b"\0")
        total.update(path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return total.hexdigest()

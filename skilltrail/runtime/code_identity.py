"""Which code can change a run's result, as one list and one digest.

The list is told here alone: `dvc.yaml` depends on these rooms and `.dvcignore` passes over the
same files (a test holds them equal), so that an edit to a page, a command or a README makes
nothing run again and keeps a run's folder.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
# `verify`, `report`, `cli` and `ui` read what a run left; they decide nothing in it.
ROOMS = (
    "core",
    "data",
    "envs",
    "history",
    "method",
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
    total = hashlib.sha256()
    for path in counted_files(package):
        total.update(path.relative_to(package).as_posix().encode() + b"\0")
        total.update(path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return total.hexdigest()


def counted_files(package: Path = PACKAGE) -> list[Path]:
    """Return the files behind `code_digest`, sorted."""
    return sorted(
        path
        for room in ROOMS
        for path in (package / room).rglob("*")
        if path.suffix in COUNTED
        and path.name not in NOT_COUNTED
        and "__pycache__" not in path.parts
    )

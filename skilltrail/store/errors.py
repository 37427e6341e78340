"""What can go wrong with the store, said once and with the way out."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from skilltrail.core.errors import FaultError, SkilltrailError

_KEPT = "Every call recorded before this is kept"
_ASIDE = (
    "Move the file and its -wal and -shm companions aside and run again: exported calls are "
    "read in from data/rollouts, the rest is made anew"
)
# (part of SQLite's message, what to do); https://www.sqlite.org/rescode.html
_REMEDIES = (
    ("full", f"{_KEPT}. Free some disk space and run again"),
    ("disk i/o error", f"{_KEPT}. Check free space and health of the disk, then run again"),
    ("locked", f"{_KEPT}. End the program that holds the database open, then run again"),
    ("readonly", f"{_KEPT}. Make the file and its folder writable, then run again"),
    ("unable to open", "Make the folder writable and the path a plain file, then run again"),
)
_DAMAGED = ("malformed", "not a database", "corrupt", "no such table", "no such column")


def explain(error: sqlite3.Error | OSError, path: Path) -> SkilltrailError:
    """Return the one message for a person about a database error; chain it with `from`."""
    found = str(error)
    lowered = found.lower()
    if any(part in lowered for part in _DAMAGED):
        return FaultError(f"The store {path} is damaged", found, _ASIDE)
    for part, remedy in _REMEDIES:
        if part in lowered:
            return SkilltrailError(f"The store {path} cannot be used", found, remedy)
    return SkilltrailError(f"The store {path} cannot be used", found, _KEPT)


def damaged_value(key: str, path: Path, found: str) -> FaultError:
    return FaultError(f"Recorded call {key} in {path} is damaged", found, _ASIDE)


def not_ours(path: Path, locked: Sequence[Path]) -> SkilltrailError:
    """Return the message about files of a store that are read-only."""
    names = " ".join(shlex.quote(str(file)) for file in locked)
    return SkilltrailError(
        f"The store {path} cannot be written",
        f"read-only: {', '.join(file.name for file in locked)}",
        f"If it is yours to write: chmod u+w {names}",
    )

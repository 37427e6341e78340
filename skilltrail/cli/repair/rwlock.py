"""DVC's two `rwlock` files: who reads and writes what just now, in JSON.

`.dvc/tmp/rwlock` guards outputs, that of `exps` the workspace of an experiment.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RWLOCKS = (".dvc/tmp/rwlock", ".dvc/tmp/exps/rwlock")
STASHING = "workspace"  # what DVC locks while it puts uncommitted changes aside


def begun_to_stash(root: Path) -> float | None:
    """Return when a DVC that is gone locked the workspace to put changes aside, else None."""
    path = root / RWLOCKS[1]
    lock = read_lock(path)
    writers = lock.get("write") if isinstance(lock, dict) else None
    if not isinstance(writers, dict) or STASHING not in {Path(name).name for name in writers}:
        return None
    return path.stat().st_mtime


def read_lock(path: Path) -> Any:
    """Return the JSON of a file; None where there is none, "" where it is torn."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError, OSError):
        return ""

"""Folders and files of the live state, with the one message when the system refuses."""

from __future__ import annotations

import os
from pathlib import Path

from skilltrail.store.errors import unwritable


def make_folder(path: Path) -> None:
    """Create `path` and its parents.

    Raises:
        SkilltrailError: the system refused.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


def write_synced(path: Path, data: bytes) -> None:
    """Write `data` to `path` and wait until the disk has it.

    Raises:
        SkilltrailError: the system refused; a part may be left under `path`.
    """
    try:
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise unwritable(path, error) from error


def replace_file(path: Path, data: bytes) -> None:
    """Put `data` in place of the file at `path` in one rename, without waiting for the disk.

    For figures that are written often: a killed process leaves whole ones, a power cut may
    leave older ones. `skilltrail.core.files.write_atomic` waits.

    Raises:
        SkilltrailError: the system refused; the old file stands.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            draft.write_bytes(data)
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error

"""Whole files, written so that a reader sees the old bytes or the new ones, never a part."""

from __future__ import annotations

import os
from pathlib import Path

from stages.core.errors import SkilltrailError
from stages.store.errors import unwritable


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
    """Put `data` in place of the file at `path` in one rename.

    The old name is replaced, not written through, so a link into a cache stays whole.

    Raises:
        SkilltrailError: the system refused; the old file stands.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write_synced(draft, data)
        os.replace(draft, path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise unwritable(path, error) from error
    except SkilltrailError:
        draft.unlink(missing_ok=True)
        raise

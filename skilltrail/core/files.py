"""Whole files, written so that a crash leaves the old text or the new one, never a part."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from skilltrail.core.errors import SkilltrailError


def write_atomic(path: Path, text: str) -> None:
    """Write `text` to `path` as UTF-8 with LF, by a temporary file beside it and a rename.

    A link at `path` is replaced and never written through, so a cached original stays whole.

    Raises:
        SkilltrailError: the file cannot be written (folder, permissions, space); what stood
            at `path` before is unchanged.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError as error:
        raise SkilltrailError(
            f"{path.name} cannot be written",
            error.strerror or str(error),
            "Check the folder, its permissions and the free space, then run again",
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make a rename in `folder` last through a power cut, where the platform can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

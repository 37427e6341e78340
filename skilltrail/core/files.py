"""Whole files, written so that a crash leaves the old text or the new one, never a part.

What the system refuses to write is one message, here and wherever `writing` is used.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from skilltrail.core.errors import SkilltrailError
from skilltrail.core.held import clear_left, hold


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make a refusal of the system in the body the one message about `path`."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> SkilltrailError:
    """Return the message about a file or folder that the system refused to write."""
    reason = error.strerror if error.strerror is not None else str(error)
    return SkilltrailError(
        f"Cannot write {path}",
        reason,
        "Check that the folder exists, is writable and has free space, then run again",
    )


def refused(error: OSError) -> SkilltrailError:
    """Return the message about what the system refused where nobody said more about it."""
    named = "The system" if error.filename is None else str(error.filename)
    reason = error.strerror if error.strerror is not None else str(error)
    return SkilltrailError(named, reason, "Nothing kept is lost: see to it, then run again")


def write_atomic(path: Path, text: str | bytes, *, synced: bool = True) -> None:
    """Write `text` to `path` as UTF-8 with LF, by a temporary file beside it and a rename.

    A link at `path` is replaced and never written through, so a cached original stays whole.
    What killed writers of `path` left beside it goes. Not `synced`: a power cut may leave the
    older text, for figures that are written often. A device or a pipe (`/dev/null`) is written
    to: put in its place, a file would take it from the whole machine.

    Raises:
        SkilltrailError: the file cannot be written (folder, permissions, space); what stood
            at `path` before is unchanged.
    """
    if _is_stream(path):
        with writing(path), path.open("ab") as stream:
            stream.write(text.encode("utf-8") if isinstance(text, str) else text)
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        clear_left(path.parent.glob(f".{escape(path.name)}.*.tmp"))
        with os.fdopen(hold(temporary), "wb") as file:
            try:
                file.write(text.encode("utf-8") if isinstance(text, str) else text)
                file.flush()
                if synced:
                    os.fsync(file.fileno())
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
        if synced:
            _sync_folder(path.parent)


def _is_stream(path: Path) -> bool:
    """True for what is no file, and for names of open ones (`/dev/stdout`)."""
    return path.is_char_device() or path.is_fifo() or path.absolute().parts[1:2] == ("dev",)


def _sync_folder(folder: Path) -> None:
    """Make a rename in `folder` last through a power cut, where the platform can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

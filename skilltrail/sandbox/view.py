"""A view of a folder of Python packages that does not tell where it lies.

Compiled modules name the file that they were made of. A view has the same files as hard links,
and compiled modules as copies that name the place inside a sandbox; files that tell nothing but
the place on this machine are left out. It stands in this environment (`sys.prefix`), is made
once for what is installed, and costs a second or so and next to no room.
"""

from __future__ import annotations

import marshal
import os
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import CodeType

TELLING = ("*.pth", "*.egg-link", "__editable__*", "*.dist-info/direct_url.json")
_NAME = ".skilltrail-view-"
_HEAD_BYTES = 16  # of a compiled module: its version, and what source it was made of
_KEPT_S = 24 * 3600


def view_of(folder: Path, place: str, *, emptied: Path | None = None) -> Path:
    """Return the view of `folder` as `place` inside; `folder` itself where none can be made:
    on another file system than this environment, or not ours to write. `emptied` is a folder
    in it that is shown empty."""
    made = Path(sys.prefix, f"{_NAME}{_digest(folder, place)}")
    if made.is_dir():
        return made
    try:
        with tempfile.TemporaryDirectory(prefix=f"{_NAME}new-", dir=sys.prefix) as name:
            _fill(folder, Path(name, "view"), place, emptied)
            with suppress(FileExistsError):
                os.rename(Path(name, "view"), made)
    except OSError:
        return made if made.is_dir() else folder
    for old in made.parent.glob(f"{_NAME}*"):
        if old != made and time.time() - old.stat().st_atime > _KEPT_S:
            shutil.rmtree(old, ignore_errors=True)
    return made


def _digest(folder: Path, place: str) -> str:
    """Return what changes when something is installed, or this Python is another one."""
    found = sha256(repr((str(folder), place, sys.version)).encode())
    for path in sorted(folder.glob("*.dist-info/RECORD")):
        found.update(repr((path.parent.name, path.stat().st_mtime_ns)).encode())
    return found.hexdigest()[:16]


def _fill(folder: Path, into: Path, place: str, emptied: Path | None) -> None:
    telling = {path for pattern in TELLING for path in folder.glob(pattern)}
    for top, folders, files in os.walk(folder):
        here = Path(top)
        there = into / here.relative_to(folder)
        there.mkdir(mode=0o755, parents=True)
        if here == emptied:
            folders.clear()
            continue
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = [one for one in folders if one not in links and here / one not in telling]
        for name in (*files, *links):
            if name.endswith(".pyc"):
                _compiled(here / name, there / name, str(folder), place)
            elif here / name not in telling:
                os.link(here / name, there / name, follow_symlinks=False)


def _compiled(path: Path, into: Path, folder: str, place: str) -> None:
    """Write a compiled module as one of `place`; one of another Python is left out."""
    data = path.read_bytes()
    with suppress(ValueError, EOFError, TypeError):
        code = marshal.loads(data[_HEAD_BYTES:])
        moved = marshal.dumps(_moved(code, folder, place))
        into.write_bytes(data[:_HEAD_BYTES] + moved)
        into.chmod(0o644)


def _moved(code: CodeType, folder: str, place: str) -> CodeType:
    inner = tuple(
        _moved(one, folder, place) if isinstance(one, CodeType) else one
        for one in code.co_consts
    )
    name = code.co_filename
    inside = place + name[len(folder) :] if name.startswith(folder) else Path(name).name
    return code.replace(co_consts=inner, co_filename=inside)

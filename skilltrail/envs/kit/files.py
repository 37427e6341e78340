"""Files that items name: found by their name, known by their digest.

An item's input holds the SHA-256 of a file and never a path, so keys do not depend on where the
file lies. A name is looked for below the folders of the environment's param `data_dirs`, or
without them below `data/<env>` and its like (`data/<env>-imported`). Names come from data
files: one that leads out of the folder it is looked for in is never opened.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath

from skilltrail.core.errors import DataError
from skilltrail.envs.protocol import Environment, Where
from skilltrail.store.place import project_above


class NamesFiles(Environment):
    """Base of an environment whose items name files; its params have `data_dirs`."""

    @cached_property
    def folders(self) -> list[Path]:
        """The folders in which its files are looked for, in order."""
        return data_folders(self.name, self.params.data_dirs)


def data_folders(env: str, data_dirs: Sequence[str]) -> list[Path]:
    """Return the folders in which files of `env` are looked for, in order."""
    root = _project()
    if data_dirs:
        return [root / folder for folder in data_dirs]
    return sorted(path for path in (root / "data").glob(f"{env}*") if path.is_dir())


def _project() -> Path:
    found = project_above(Path.cwd())
    return Path.cwd() if found is None else found


def find_named(name: str, folders: Sequence[Path], field: str, where: Where) -> Path:
    """Return the file called `name` in the first folder that holds it.

    Leading folders of the name may be missing (`documents/a_1.png` is found as `a_1.png`); last
    of all the file may lie in any folder below.

    Raises:
        DataError: no folder holds it.
    """
    found = next(_candidates(name, folders), None)
    if found is None:
        places = ", ".join(shown(path) for path in folders) or "no folder"
        raise where.error(
            field,
            f"no file {name!r} below {places}",
            "Put the file there, or name its folder in the environment's param data_dirs",
        )
    return found


def is_there(name: str, folders: Sequence[Path]) -> bool:
    """Return whether a folder holds the file called `name`."""
    return next(_candidates(name, folders), None) is not None


def find_known(name: str, sha256: str, folders: Sequence[Path]) -> Path:
    """Return the file called `name` whose bytes have this digest.

    Raises:
        DataError: it is not there any more, or it has changed.
    """
    seen = False
    for path in _candidates(name, folders):
        seen = True
        if file_digest(path) == sha256:
            return path
    raise DataError(
        f"The file {name!r} of an item",
        "it has changed since the splits were made" if seen else "it is not there any more",
        "Restore it, or make the splits again: `dvc repro --force split`",
    )


def shown(path: Path) -> str:
    """Return a path as messages name it: from the project's root where it lies inside."""
    root = _project()
    inside = path.relative_to(root) if path.is_relative_to(root) else path
    return inside.as_posix()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes (64 hex digits); read again only when it changed."""
    state = path.stat()
    return _digest(str(path.resolve()), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4096)
def _digest(path: str, mtime_ns: int, size: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _candidates(name: str, folders: Sequence[Path]) -> Iterator[Path]:
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or "\0" in name or ".." in parts:
        return
    tails = [parts[start:] for start in range(len(parts)) if parts[start] != "/"]
    for tail in tails:
        for folder in folders:
            path = folder.joinpath(*tail)
            if _is_inside(path, folder):
                yield path
    for folder in folders:
        for place, _, names in sorted(os.walk(folder)):
            if parts[-1] in names and _is_inside(Path(place, parts[-1]), folder):
                yield Path(place, parts[-1])


def _is_inside(path: Path, folder: Path) -> bool:
    """Return whether a file lies in the folder, links followed; DVC may link to its cache."""
    try:
        if not path.is_file():
            return False
        real, cache = path.resolve(), _project() / ".dvc" / "cache"
    except OSError:  # a name that no file can have, such as one of 300 characters
        return False
    return real.is_relative_to(folder.resolve()) or real.is_relative_to(cache.resolve())

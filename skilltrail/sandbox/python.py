"""The interpreter and the packages that a sandboxed program is given, all read-only.

They are mounted at `/py` and `/site`, so no path of the host shows in a traceback; packages and
the standard library as views (`view`), so none shows in a compiled module.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from pathlib import Path

from skilltrail.sandbox.view import TELLING, view_of

HOME, SITE = "/py", "/site"
_LIBRARY = f"lib/python{sys.version_info.major}.{sys.version_info.minor}"

# One thread in numerical libraries: more would count against the process limit. Hash seed and
# time zone are fixed, so that the same code does the same twice.
SETTINGS = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONNOUSERSITE": "1",
    "PYTHONUTF8": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def interpreter() -> str:
    """Return the path of this Python inside a sandbox."""
    real = Path(os.path.realpath(sys.executable))
    base = Path(sys.base_prefix).resolve()
    inside = real.relative_to(base) if real.is_relative_to(base) else Path("bin", real.name)
    return f"{HOME}/{inside.as_posix()}"


def mounts() -> list[tuple[Path, str]]:
    """Return (folder here, place there) of all that the interpreter needs.

    Only `bin` and `lib*` of its prefix: a prefix such as /usr/local may hold other things.
    """
    base = Path(sys.base_prefix).resolve()
    found = [
        (folder.resolve(), f"{HOME}/{name}")
        for name in ("bin", "lib", "lib64")
        if (folder := base / name).is_dir() and not folder.is_symlink()
    ]
    return [*found, *_views()]


def telling() -> list[str]:
    """Return the files among `mounts` that say where packages lie on this machine."""
    return sorted(
        f"{place}/{path.relative_to(folder).as_posix()}"
        for folder, place in _views()
        for pattern in TELLING
        for path in folder.glob(pattern)
    )


@cache
def _views() -> list[tuple[Path, str]]:
    """Return (view, place there) of the standard library and of each folder of packages.

    What the system installed below /usr tells nothing of this machine's users.
    """
    library = Path(sys.base_prefix, _LIBRARY).resolve()
    folders = {library: f"{HOME}/{_LIBRARY}"} if library.is_dir() else {}
    return [
        (folder, place)
        if folder.is_relative_to("/usr")
        else (view_of(folder, place, emptied=library / "site-packages"), place)
        for folder, place in (folders | _packages()).items()
    ]


def sources() -> list[Path]:
    """Return the folders here that `mounts` shows, as they are or in a view."""
    return [path for path, _ in mounts()] + list(_packages())


def foreign() -> list[str]:
    """Return the folders inside a job that it has no use for: the packages that a virtual
    environment leaves aside, and scripts as compiled, which name their place."""
    base = Path(sys.base_prefix).resolve()
    named = (f"{_LIBRARY}/site-packages", "bin/__pycache__")
    return [
        f"{HOME}/{name}"
        for name in named
        if (base / name).is_dir() and (base / name).resolve() not in _packages()
    ]


def environment() -> dict[str, str]:
    """Return the Python-specific part of a sandbox's environment variables."""
    return SETTINGS | {"PYTHONHOME": HOME, "PYTHONPATH": ":".join(_packages().values())}


def _packages() -> dict[Path, str]:
    """Return the folders of packages that this Python imports from: here -> inside a job.

    Those of other environments count that a `.pth` file names, as one venv over another has.
    """
    named = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    named += [
        path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")
    ]
    found = dict.fromkeys(Path(path).resolve() for path in named if Path(path).is_dir())
    return {path: f"{SITE}{number or ''}" for number, path in enumerate(found)}

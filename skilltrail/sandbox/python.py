"""The interpreter and the packages that a sandboxed program is given, all read-only.

They are mounted at `/py` and `/site`, so no path of the host shows in a traceback.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

HOME, SITE = "/py", "/site"

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
    return found + [(path, place) for path, place in zip(_packages(), _places(), strict=False)]


def environment() -> dict[str, str]:
    """Return the Python-specific part of a sandbox's environment variables."""
    places = [place for _, place in zip(_packages(), _places(), strict=False)]
    return SETTINGS | {"PYTHONHOME": HOME, "PYTHONPATH": ":".join(places)}


def _packages() -> list[Path]:
    """Return the folders of installed packages, pure and platform-specific, each once."""
    named = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    found = [Path(path).resolve() for path in named]
    return [path for path in dict.fromkeys(found) if path.is_dir()]


def _places() -> list[str]:
    return [SITE, f"{SITE}64"]

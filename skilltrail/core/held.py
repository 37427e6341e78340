"""Files that a living process holds: the kernel frees its lock when the process ends.

So a file that nobody holds was left by a process that is gone, whatever clocks, host names and
process ids say, and whichever container it ran in.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path


def hold(path: Path) -> int:
    """Open the file at `path`, creating it, and hold it while the descriptor stays open.

    Raises:
        OSError: the file cannot be opened for writing.
    """
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:
            return file
        os.close(file)  # somebody took it for left behind, just before it was locked


def is_held(path: Path) -> bool:
    """Return whether a living process holds the file; of one that we may not open, True."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError as error:
        return not isinstance(error, FileNotFoundError)
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def clear_left(paths: Iterable[Path]) -> None:
    """Delete those files that no process holds; what the system refuses stays."""
    for path in paths:
        with contextlib.suppress(OSError):
            file = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(file)

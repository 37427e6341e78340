"""The SQLite file behind the store: write-ahead log, one table of facts, one of claims.

Several processes of one host share it. Readers never wait for writers; a commit is on the disk
when it returns. Source: https://www.sqlite.org/wal.html
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from skilltrail.core.errors import SkilltrailError, UsageError
from skilltrail.core.files import writing
from skilltrail.store.errors import explain, not_ours

FILE = "store.db"
VERSION = 1

# shards: digests of export files whose every fact is in `facts`.
# claims: who makes a key now, for people; whether they live is asked of the kernel's locks.
# dropped: gaps that a person asked to try again; an old export must not bring them back.
_SCHEMA = """
CREATE TABLE facts (
    key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, size INTEGER NOT NULL, value BLOB NOT NULL
);
CREATE TABLE claims (
    key TEXT PRIMARY KEY, token TEXT NOT NULL,
    host TEXT NOT NULL, pid INTEGER NOT NULL, started REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE shards (digest TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE dropped (key TEXT PRIMARY KEY) WITHOUT ROWID;
"""


def connect(path: Path, busy_s: float) -> sqlite3.Connection:
    """Return a connection to an existing store that waits up to `busy_s` for other writers."""
    connection = _connected(path, busy_s, "mode=rwc")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


@contextmanager
def reading(path: Path, busy_s: float) -> Iterator[sqlite3.Connection]:
    """Yield a connection that changes nothing, to a store that may be nobody's to write.

    SQLite reads a write-ahead log through a file of shared memory beside it. Where that is
    absent and may not be made, a store without log is read as unchanging; a log that still
    holds facts is read in a copy.
    """
    log = path.with_name(path.name + "-wal")
    if _is_writable(path):
        connection = _connected(path, busy_s, "mode=rw")
        connection.execute("PRAGMA query_only = ON")
    elif path.with_name(path.name + "-shm").exists():
        connection = _connected(path, busy_s, "mode=ro")
    elif not log.exists() or log.stat().st_size == 0:
        connection = _connected(path, busy_s, "immutable=1")
    else:
        with TemporaryDirectory(prefix="skilltrail-") as folder:
            for file in (path, log):
                shutil.copyfile(file, Path(folder, file.name))
            with reading(Path(folder, path.name), busy_s) as connection:
                yield connection
        return
    try:
        yield connection
    finally:
        connection.close()


def has_tables(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether a store's tables were made.

    Raises:
        UsageError: a newer version of this software wrote it.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise UsageError(
            f"The store {path} has format {version}",
            f"this version reads up to {VERSION}",
            "Update Skilltrail",
        )
    return bool(version > 0)


def _connected(path: Path, busy_s: float, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?{how}",
        timeout=busy_s, isolation_level=None, check_same_thread=False, uri=True,
    )  # fmt: skip
    connection.execute("PRAGMA cache_size = -16000")
    return connection


def _is_writable(path: Path) -> bool:
    """Return whether we may write the store, and are meant to: root may write anything."""
    meant = stat.S_IMODE(path.stat().st_mode) & 0o222 != 0
    return meant and not read_only(path)


def read_only(path: Path) -> list[Path]:
    """Return what the system does not let us write of a store's folder and files."""
    beside = [path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-shm")]
    files = [path.parent, *beside, path.with_suffix(".lock"), path.with_suffix(".claims")]
    return [file for file in files if file.exists() and not os.access(file, os.W_OK)]


class Turn:
    """The right to write, one process at a time, in the order they asked.

    SQLite's own waiting sleeps and tries again, which starves some of many writers for seconds;
    the kernel's queue does not, and frees the turn of a process that dies.
    """

    def __init__(self, path: Path) -> None:
        """Open the turn of the store at `path`.

        Raises:
            SkilltrailError: the system refused the lock file.
        """
        self._path = path.with_suffix(".lock")
        with writing(self._path):
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)

    def __enter__(self) -> None:
        with writing(self._path):
            fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *exc: object) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._file)


def prepare(path: Path, busy_s: float) -> None:
    """Create the store's file and tables where they are absent; check their version.

    Raises:
        SkilltrailError: the folder or file cannot be used.
        FaultError: the file is no database.
        UsageError: a newer version of this software wrote it.
    """
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    # Before SQLite gives the mode of a read-only store to a log that then outlasts it.
    locked = read_only(path)
    if locked:
        raise not_ours(path, locked)
    turn = Turn(path)
    try:
        # Two first openings at once would race for the switch to the write-ahead log.
        with turn:
            _create(path, busy_s)
    except sqlite3.Error as error:
        raise explain(error, path) from error
    finally:
        turn.close()


def _create(path: Path, busy_s: float) -> None:
    connection = connect(path, busy_s)
    try:
        if has_tables(connection, path):
            return
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise SkilltrailError(
                f"The store {path} needs a local disk",
                f"the file system only offers journal mode {mode!r}",
                "Put the clone on a local disk",
            )
        connection.executescript(
            f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;"
        )
    finally:
        connection.close()

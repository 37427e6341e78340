"""The SQLite file behind the store: write-ahead log, one table of facts, one of claims.

Several processes of one host share it. Readers never wait for writers; a commit is on the disk
when it returns. Source: https://www.sqlite.org/wal.html
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path

from skilltrail.core.errors import SkilltrailError, UsageError
from skilltrail.store.errors import explain, unwritable
from skilltrail.store.files import make_folder

FILE = "store.db"
VERSION = 1

# shards: digests of export files whose every fact is in `facts`.
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
    connection = sqlite3.connect(
        path, timeout=busy_s, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA cache_size = -16000")
    return connection


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
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise unwritable(self._path, error) from error

    def __enter__(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except OSError as error:
            raise unwritable(self._path, error) from error

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
    make_folder(path.parent)
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
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise UsageError(
                f"The fact store {path} has format {version}",
                f"this version reads up to {VERSION}",
                "Update Skilltrail",
            )
        if version == VERSION:
            return
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise SkilltrailError(
                f"The fact store {path} needs a local disk",
                f"the file system only offers journal mode {mode!r}",
                "Put the clone on a local disk",
            )
        connection.executescript(
            f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;"
        )
    finally:
        connection.close()

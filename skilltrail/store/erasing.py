"""Taking a text out of recorded facts: of the store's rows and of the lines of exports.

A fact keeps its key. The database forgets what stood in its pages and in its log before.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from skilltrail.core.files import write_atomic
from skilltrail.store.database import Turn, connect, reading
from skilltrail.store.errors import explain
from skilltrail.store.exports import line_of, read_shard, shard_files
from skilltrail.store.protocol import Fact
from skilltrail.store.rows import pack, unpack

Clean = Callable[[Fact], Fact]


def dirty_rows(path: Path, holds: Callable[[bytes], bool]) -> list[Fact]:
    """Return the facts of the store at `path` that hold the text.

    Raises:
        FaultError: a value is damaged.
    """
    if not path.exists():
        return []
    try:
        with reading(path, busy_s=60.0) as connection:
            rows = connection.execute("SELECT key, kind, value FROM facts")
            facts = (Fact(kind, key, unpack(key, value, path)) for key, kind, value in rows)
            return [fact for fact in facts if holds(fact.text.encode())]
    except sqlite3.Error as error:
        raise explain(error, path) from error


def replace_rows(path: Path, facts: list[Fact]) -> None:
    """Put `facts` in place of those of the same keys, of which no byte stays in the file.

    Raises:
        SkilltrailError: the store cannot be written.
    """
    if not path.exists():
        return
    turn = Turn(path)
    try:
        with turn:
            connection = connect(path, busy_s=60.0)
            try:
                _replace(connection, facts)
            finally:
                connection.close()
    except sqlite3.Error as error:
        raise explain(error, path) from error
    finally:
        turn.close()


def _replace(connection: sqlite3.Connection, facts: list[Fact]) -> None:
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("BEGIN IMMEDIATE")
    for fact in facts:
        data = fact.text.encode()
        connection.execute(
            "UPDATE facts SET size = ?, value = ? WHERE key = ?",
            (len(data), pack(data), fact.key),
        )
    connection.execute("COMMIT")
    # Pages that became free, and the log, hold what stood there before.
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def dirty_lines(folder: Path, holds: Callable[[bytes], bool]) -> Iterator[Fact]:
    """Yield the facts of an export that hold the text.

    Raises:
        FaultError: a line is damaged.
    """
    for path in shard_files(folder):
        data = path.read_bytes()
        if holds(data):
            yield from (f for f in read_shard(path, data) if holds(f.text.encode()))


def clean_lines(folder: Path, holds: Callable[[bytes], bool], clean: Clean) -> None:
    """Write each file of an export anew that holds the text, with `clean` facts.

    Raises:
        FaultError: a line is damaged.
    """
    for path in shard_files(folder):
        data = path.read_bytes()
        if holds(data):
            write_atomic(
                path, b"".join(line_of(clean(fact)) for fact in read_shard(path, data))
            )

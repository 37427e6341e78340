"""A fact as a row: packed by zlib, whose checksum guards it, and never replaced."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

from skilltrail.store.errors import damaged_value
from skilltrail.store.protocol import Fact
from skilltrail.store.writer import Work

_LEVEL = 1  # higher levels save a few per cent and take several times as long


def unpack(key: str, value: bytes, path: Path) -> str:
    """Return the canonical JSON text of a packed value.

    Raises:
        FaultError: the bytes are damaged.
    """
    try:
        return zlib.decompress(value).decode("utf-8")
    except (zlib.error, UnicodeDecodeError) as error:
        raise damaged_value(key, path, str(error)) from error


def pack(data: bytes) -> bytes:
    """Return a value as it stands in its row."""
    return zlib.compress(data, _LEVEL)


def insert(fact: Fact, revive: bool = True) -> Work[bytes | None]:
    """Return the job that keeps a fact; its result is the packed value that was there first.

    `revive` lets a gap come back after `store retry-missing` dropped it.
    """

    def work(connection: sqlite3.Connection) -> bytes | None:
        data = fact.text.encode("utf-8")
        packed = pack(data)  # here, off the event loop
        if fact.kind == "gap":
            if revive:
                connection.execute("DELETE FROM dropped WHERE key = ?", (fact.key,))
            elif _one(connection, "SELECT 1 FROM dropped WHERE key = ?", fact.key):
                return packed
        cursor = connection.execute(
            "INSERT OR IGNORE INTO facts VALUES (?, ?, ?, ?)",
            (fact.key, fact.kind, len(data), packed),
        )
        if cursor.rowcount == 1:
            return None
        stands = _one(connection, "SELECT value FROM facts WHERE key = ?", fact.key)
        return None if stands is None else bytes(stands)

    return work


def _one(connection: sqlite3.Connection, sql: str, key: str) -> bytes | int | None:
    """Return the first column of the first row, or None."""
    row = connection.execute(sql, (key,)).fetchone()
    return None if row is None else row[0]

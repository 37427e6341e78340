"""Reading the store: straight from SQLite, for commands that change nothing and for writers.

A reader works on a copy that nobody may write, on a read-only disk too, and leaves every byte
of it as it was.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from skilltrail.core.canon import loaded
from skilltrail.core.errors import SkilltrailError
from skilltrail.store import database
from skilltrail.store.errors import damaged_value, explain
from skilltrail.store.place import STATE
from skilltrail.store.protocol import Fact, Made, Make
from skilltrail.store.rows import unpack

T = TypeVar("T")
_KEYS_PER_QUERY = 500  # SQLite takes 999 parameters at least


class FactReader:
    """Facts of one project as they stand; keeping a new one is refused."""

    def __init__(self, path: Path, connection: sqlite3.Connection, held: ExitStack) -> None:
        self.path = path
        self._reader = connection
        self._held = held
        self._reading = threading.Lock()
        self._closed = False

    def __enter__(self) -> FactReader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the value under `key`, or None.

        Raises:
            FaultError: the database or the value is damaged.
        """
        rows = self.query("SELECT value FROM facts WHERE key = ?", (key,))
        return self._value(key, unpack(key, rows[0][0], self.path)) if rows else None

    def get_many(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        rows = self._select("key, value", keys)
        return {key: self._value(key, unpack(key, value, self.path)) for key, value in rows}

    def has_many(self, keys: Iterable[str]) -> set[str]:
        return {key for (key,) in self._select("key", keys)}

    def sizes(self, keys: Iterable[str]) -> dict[str, int]:
        return dict(self._select("key, size", keys))

    def facts(self, keys: Iterable[str]) -> Iterator[Fact]:
        for chunk in _chunks(keys, _KEYS_PER_QUERY):
            rows = {row[0]: row for row in self._select("key, kind, value", chunk)}
            for key in chunk:
                if key in rows:
                    _, kind, value = rows[key]
                    yield Fact(kind, key, unpack(key, value, self.path))

    async def put(self, kind: str, key: str, value: Mapping[str, Any]) -> dict[str, Any]:
        """Refuse.

        Raises:
            SkilltrailError: always.
        """
        raise SkilltrailError(
            f"Recording call {key} in {self.path}",
            "the store is open for reading only",
            "`dvc repro` makes what is missing",
        )

    async def get_or_make(self, kind: str, key: str, make: Make) -> Made:
        """Return the value under `key`; where absent, let `make` say why it is not made."""
        value = self.get(key)
        if value is None:
            return Made(await self.put(kind, key, await make()), reused=False)
        return Made(value, reused=True)

    def query(self, sql: str, values: Iterable[Any] = ()) -> list[Any]:
        """Return all rows of a reading query: for maintenance."""
        try:
            with self._reading:
                if self._closed:
                    raise SkilltrailError("The store is closed", str(self.path))
                return self._reader.execute(sql, tuple(values)).fetchall()
        except sqlite3.Error as error:
            raise explain(error, self.path) from error

    def close(self) -> None:
        """Close the files. Closing twice is fine."""
        with self._reading:
            self._closed = True
            self._reader.close()
            self._held.close()

    def _value(self, key: str, text: str) -> dict[str, Any]:
        try:
            value = loaded(text)
        except ValueError as error:
            raise damaged_value(key, self.path, str(error)) from error
        if not isinstance(value, dict):
            raise damaged_value(key, self.path, f"{type(value).__name__}, not an object")
        return value

    def _select(self, columns: str, keys: Iterable[str]) -> Iterator[Any]:
        for chunk in _chunks(keys, _KEYS_PER_QUERY):
            marks = ",".join("?" * len(chunk))
            yield from self.query(f"SELECT {columns} FROM facts WHERE key IN ({marks})", chunk)


@contextmanager
def open_reading(root: Path, busy_s: float = 60.0) -> Iterator[FactReader | None]:
    """Yield a reader of the store of the project at `root`; None where there is no store.

    Raises:
        SkilltrailError: the store cannot be read.
    """
    reader = _opened(root, busy_s)
    try:
        yield reader
    finally:
        if reader is not None:
            reader.close()


def _opened(root: Path, busy_s: float) -> FactReader | None:
    path = root / STATE / database.FILE
    try:
        with ExitStack() as held:
            if not path.exists():
                return None
            connection = held.enter_context(database.reading(path, busy_s))
            if database.has_tables(connection, path):
                return FactReader(path, connection, held.pop_all())
    except (sqlite3.Error, OSError) as error:
        raise explain(error, path) from error
    return None  # a first opening was killed before it made the tables


def _chunks(values: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(values)
    while chunk := list(islice(iterator, size)):
        yield chunk

"""The store of facts: SQLite, one row a fact, kept for good once `put` returns.

Values are JSON objects, compressed; zlib's checksum guards each. A fact is never replaced: the
first put of a key wins, a later one with another value is noted in the journal. What a process
makes passes `hide` first: secrets leave before a value is kept and before anybody sees it.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, TypeVar

from skilltrail.store import database
from skilltrail.store.claims import Claims
from skilltrail.store.errors import explain
from skilltrail.store.ops import Ops
from skilltrail.store.place import STATE
from skilltrail.store.protocol import Fact, Made, Make
from skilltrail.store.reader import FactReader
from skilltrail.store.rows import insert, unpack
from skilltrail.store.writer import Work, Writer

T = TypeVar("T")


class Shared(Protocol):
    """Facts of other machines; see `skilltrail.store.shared`."""

    def has(self, key: str) -> bool: ...

    def made(self, key: str) -> None: ...

    async def expect(self, keys: Iterable[str]) -> None: ...


class FactStore(FactReader):
    """Facts of one project, shared by all its processes on this host.

    Reads are direct and take microseconds; writes go through one thread (`Writer`). A store
    may be used from several event loops, one after the other or at once.
    """

    def __init__(
        self,
        path: Path,
        ops: Ops,
        busy_s: float,
        foreign_wait_s: float,
        hide: Callable[[Any], Any],
    ) -> None:
        database.prepare(path, busy_s)
        # Who waits for each fact that is being made.
        self._flights: dict[str, list[Future[dict[str, Any] | None]]] = {}
        self._boarding = threading.Lock()
        self.ops, self._hide = ops, hide
        self.shared: Shared | None = None
        try:
            super().__init__(path, database.connect(path, busy_s), ExitStack())
            self._writer = Writer(
                database.connect(path, busy_s), database.Turn(path), path, self._flights.__len__
            )
        except sqlite3.Error as error:
            raise explain(error, path) from error
        self._claims = Claims(path, self._writer, self.query, ops, foreign_wait_s)

    @staticmethod
    def open(
        root: Path,
        ops: Ops | None = None,
        busy_s: float = 60.0,
        foreign_wait_s: float = 300.0,
        hide: Callable[[Any], Any] = lambda value: value,
    ) -> FactStore:
        """Open the store of the project at `root`, creating it where absent.

        `hide` takes the secrets out of a new fact's JSON value.

        Raises:
            SkilltrailError: the folder or file cannot be used; the message says why.
        """
        state = root / STATE
        ops = Ops(state / "ops.jsonl") if ops is None else ops
        return FactStore(state / database.FILE, ops, busy_s, foreign_wait_s, hide)

    def __enter__(self) -> FactStore:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    async def put(self, kind: str, key: str, value: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a value, on the disk when this returns; return the value that stands.

        Raises:
            SkilltrailError: the disk is full, the database locked or damaged.
        """
        fact = Fact.of(kind, key, self._hide(value))
        return self._settled(fact, await self._writer.run(insert(fact)))

    async def get_or_make(self, kind: str, key: str, make: Make) -> Made:
        """Return the value under `key`; where absent, await `make()` and keep what it gives.

        Other tasks and other processes that need the key meanwhile wait and reuse the value.

        Raises:
            SkilltrailError: the store cannot be used, or another host holds the claim.
            Exception: whatever `make` raised; nothing is kept then and the claim is freed.
        """
        while True:
            value = self.get(key)
            if value is not None:
                return Made(value, reused=True)
            if self.shared is not None and self.shared.has(key):
                await self.shared.expect([key])
                if (value := self.get(key)) is not None:
                    return Made(value, reused=True)
            with self._boarding:
                waiting = self._flights.get(key)
                if waiting is None:
                    self._flights[key] = []
                else:
                    flight: Future[dict[str, Any] | None] = Future()
                    waiting.append(flight)
            if waiting is None:
                made = await self._lead(kind, key, make)
                if made is not None:
                    return made
            else:
                value = await asyncio.shield(asyncio.wrap_future(flight))
                if value is not None:
                    return Made(json.loads(json.dumps(value)), reused=True)

    def put_facts(self, facts: Iterable[Fact], shard: str | None = None) -> int:
        """Keep facts read from an export and return how many were new; waits for the disk.

        Gaps that `store retry-missing` dropped stay dropped. `shard` is remembered as read.
        """
        jobs = [(fact, self._writer.submit(insert(fact, revive=False))) for fact in facts]
        new = 0
        for fact, done in jobs:
            stands = done.result()
            new += stands is None
            self._settled(fact, stands)
        if shard is not None:
            self.remember_shards([shard])
        return new

    def knows_shard(self, digest: str) -> bool:
        """Return whether every fact of the export file of this digest is in the store."""
        return bool(self.query("SELECT 1 FROM shards WHERE digest = ?", (digest,)))

    def remember_shards(self, digests: Iterable[str]) -> None:
        """Note export files whose facts are all in the store."""
        rows = [(digest,) for digest in digests]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT OR IGNORE INTO shards VALUES (?)", rows)

        self._writer.submit(work).result()

    def do(self, work: Work[T]) -> T:
        """Run one job in the writer and wait for it: for maintenance, never in a loop."""
        return self._writer.submit(work).result()

    def close(self) -> None:
        """Finish queued writes, give back claims, close the files. Closing twice is fine."""
        if self._closed:
            return
        try:
            self._claims.give_back_all()
        finally:
            self._writer.close()
            self._claims.close()
            super().close()

    async def _lead(self, kind: str, key: str, make: Make) -> Made | None:
        """Make the fact for all who wait for it; None when another process made it."""
        outcome: dict[str, Any] | None = None
        failed: Exception | None = None
        try:
            if not await self._claims.take(key):
                return None
            outcome = await self._make(kind, key, make)
            return Made(outcome, reused=False)
        except Exception as error:
            failed = error
            raise
        finally:
            with self._boarding:
                waiting = self._flights.pop(key)
            for flight in waiting:
                # None (made elsewhere, or this task was cancelled) makes them look again.
                if failed is None:
                    flight.set_result(outcome)
                else:
                    flight.set_exception(failed)

    async def _make(self, kind: str, key: str, make: Make) -> dict[str, Any]:
        kept = False
        try:
            fact = Fact.of(kind, key, self._hide(await make()))
            freed = self._claims.freed(key)
            keep = insert(fact)

            def work(connection: sqlite3.Connection) -> bytes | None:
                stands = keep(connection)
                freed(connection)
                return stands

            stands = await self._writer.run(work)
            kept = True
            self._claims.let_go(key)
            if self.shared is not None and kind != "gap":
                self.shared.made(key)
        finally:
            if not kept and not self._closed:
                self._claims.give_back(key)
        return self._settled(fact, stands)

    def _settled(self, fact: Fact, stands: bytes | None) -> dict[str, Any]:
        """Return the value that stands after a put; note a put that lost to another value."""
        text = fact.text
        if stands is not None:
            text = unpack(fact.key, stands, self.path)
            if text != fact.text:
                self.ops.write("fact.conflict", key=fact.key, kind=fact.kind, kept="first")
        return self._value(fact.key, text)

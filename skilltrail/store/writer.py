"""One writer thread per process; jobs that come together are committed together.

A job is a function of the connection. All jobs of a batch run in one transaction; results are
given out after the commit, to each event loop at once. While one batch is on its way to the
disk the next one gathers, and where many are expected the thread waits a little for them, so
that hundreds of puts share a sync and the event loop never waits for the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from skilltrail.core.errors import SkilltrailError
from skilltrail.store.database import Turn
from skilltrail.store.errors import explain

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_MOST_PER_COMMIT = 1000
# Where many are expected a batch waits so long for each of them, and for all no longer.
_MANY, _GATHER_EACH_S, _GATHER_S = 8, 0.00025, 0.004


@dataclass
class _Job:
    """A job; `done` is of the event loop `loop`, or of whoever waits where that is None."""

    work: Work[Any]
    durable: bool
    done: Future[Any] | asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop | None = None
    result: Any = None
    error: Exception | None = None

    def settle(self) -> None:
        if self.done.done():
            return
        if self.error is not None:
            self.done.set_exception(self.error)
        else:
            self.done.set_result(self.result)


class Writer:
    """Runs jobs in order. Safe from every thread and event loop.

    `expected` says how many jobs are to come soon.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        turn: Turn,
        path: Path,
        expected: Callable[[], int],
    ) -> None:
        self._connection = connection
        self._turn = turn
        self._path = path
        self._expected = expected
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._open = True
        self._synced = True
        self._thread = threading.Thread(target=self._run, name="fact-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Work[T], durable: bool = True) -> Future[T]:
        """Queue a job; its future is done once it is committed (and synced, if `durable`).

        Raises:
            SkilltrailError: the store is closed.
        """
        done: Future[T] = Future()
        self._put(_Job(work, durable, done))
        return done

    async def run(self, work: Work[T], durable: bool = True) -> T:
        """Do a job and return its result.

        A cancelled caller still waits for the commit, some milliseconds away: what was paid
        for is on the disk before its task ends.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._put(_Job(work, durable, done, loop))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            await asyncio.wait([done])
            raise

    def close(self) -> None:
        """Finish every queued job, then end the thread and close its files."""
        with self._gate:
            if self._open:
                self._open = False
                self._jobs.put(None)
        self._thread.join()

    def _put(self, job: _Job) -> None:
        with self._gate:
            if not self._open:
                raise SkilltrailError("The store is closed", str(self._path))
            self._jobs.put(job)

    def _run(self) -> None:
        try:
            while (batch := self._next_batch()) is not None:
                self._commit(batch)
        finally:
            self._connection.close()
            self._turn.close()
            self._refuse_rest()

    def _next_batch(self) -> list[_Job] | None:
        """Wait for a job and return it with all that have gathered; None at the end."""
        first = self._jobs.get()
        if first is None:
            return None
        expected = self._expected()
        if expected >= _MANY:
            time.sleep(min(_GATHER_S, expected * _GATHER_EACH_S))
        batch = [first]
        while len(batch) < _MOST_PER_COMMIT:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                break
            if job is None:
                self._jobs.put(None)
                break
            batch.append(job)
        return batch

    def _commit(self, batch: list[_Job]) -> None:
        error: Exception | None = RuntimeError("the store's writer failed")
        try:
            with self._turn:
                self._transact(batch)
            error = None
        except sqlite3.Error as found:
            error = explain(found, self._path)
            error.__cause__ = found
        finally:
            for job in batch:
                job.error = error
            _give_out(batch)

    def _transact(self, batch: list[_Job]) -> None:
        connection = self._connection
        # Claims need no sync: they mean nothing once the machine has gone down.
        durable = any(job.durable for job in batch)
        if durable != self._synced:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._synced = durable
        connection.execute("BEGIN IMMEDIATE")
        try:
            for job in batch:
                job.result = job.work(connection)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _refuse_rest(self) -> None:
        with self._gate:
            self._open = False
        rest = []
        with contextlib.suppress(Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is not None:
                    job.error = SkilltrailError("The store is closed")
                    rest.append(job)
        _give_out(rest)


def _give_out(batch: list[_Job]) -> None:
    """Tell everybody who waits: each event loop is woken once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job]] = defaultdict(list)
    for job in batch:
        if job.loop is None:
            job.settle()
        else:
            by_loop[job.loop].append(job)
    for loop, jobs in by_loop.items():
        with contextlib.suppress(RuntimeError):  # a loop that is closed waits for nothing
            loop.call_soon_threadsafe(_settle, jobs)


def _settle(jobs: list[_Job]) -> None:
    for job in jobs:
        job.settle()

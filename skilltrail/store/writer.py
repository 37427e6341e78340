"""One writer thread per process; jobs that wait together are committed together.

A job is a function of the connection. All jobs of a batch run in one transaction; a job's
result is given out after the commit. While one batch is on its way to the disk the next one
gathers, so hundreds of puts share a sync and the event loop never waits for the disk.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
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


@dataclass(frozen=True)
class _Job:
    work: Work[Any]
    durable: bool
    done: Future[Any]


class Writer:
    """Runs jobs in order. Safe from every thread and event loop."""

    def __init__(self, connection: sqlite3.Connection, turn: Turn, path: Path) -> None:
        self._connection = connection
        self._turn = turn
        self._path = path
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
        with self._gate:
            if not self._open:
                raise SkilltrailError("The fact store is closed", str(self._path))
            self._jobs.put(_Job(work, durable, done))
        return done

    async def run(self, work: Work[T], durable: bool = True) -> T:
        """Do a job and return its result.

        A cancelled caller still waits for the commit, some milliseconds away: what was paid
        for is on the disk before its task ends.
        """
        done = asyncio.wrap_future(self.submit(work, durable))
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
        try:
            with self._turn:
                results = self._transact(batch)
        except sqlite3.Error as error:
            reason = explain(error, self._path)
            reason.__cause__ = error
            for job in batch:
                job.done.set_exception(reason)
        else:
            for job, result in zip(batch, results, strict=True):
                job.done.set_result(result)
        finally:
            for job in batch:
                if not job.done.done():
                    job.done.set_exception(RuntimeError("the store's writer failed"))

    def _transact(self, batch: list[_Job]) -> list[Any]:
        connection = self._connection
        # Claims need no sync: they mean nothing once the machine has gone down.
        durable = any(job.durable for job in batch)
        if durable != self._synced:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._synced = durable
        connection.execute("BEGIN IMMEDIATE")
        try:
            results = [job.work(connection) for job in batch]
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        return results

    def _refuse_rest(self) -> None:
        with self._gate:
            self._open = False
        while True:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return
            if job is not None:
                job.done.set_exception(SkilltrailError("The fact store is closed"))

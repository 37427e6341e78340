"""One payer per key: a claim says which store is making a fact now.

A claim is a row beside the facts. It is taken and given back in the same transactions as facts,
so there is no moment at which a key has neither. Each open store holds a file of its own in
`.skilltrail/owners`, named by its token; the kernel says whether it is still held. A claim
whose store is gone is taken over and the takeover is noted; any other claim is waited for.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sqlite3
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from skilltrail.core.canon import loaded
from skilltrail.core.errors import SkilltrailError
from skilltrail.core.files import writing
from skilltrail.core.held import clear_left, hold, is_held
from skilltrail.store.ops import Ops
from skilltrail.store.owner import Owner, this_process
from skilltrail.store.writer import Work, Writer

FOLDER = "owners"  # beside the store
_FIRST_POLL_S = 0.02
_LAST_POLL_S = 0.5
_NOTE_AFTER_S = 5.0


@dataclass(frozen=True)
class Holder:
    """Who claims a key: a store by its token, and its process as it was signed then."""

    token: str
    host: str
    pid: int

    def to_json(self) -> dict[str, str | int]:
        return {"host": self.host, "pid": self.pid}

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def holder_of(connection: sqlite3.Connection, key: str) -> Holder | None:
    row = connection.execute("SELECT token, host, pid FROM claims WHERE key = ?", (key,))
    found = row.fetchone()
    return None if found is None else Holder(*found)


class Claims:
    """The claims of one store. `foreign_wait_s` bounds the wait for another host's claim."""

    def __init__(self, writer: Writer, ops: Ops, path: Path, foreign_wait_s: float) -> None:
        """Sign as the holder of claims.

        Raises:
            SkilltrailError: the system refuses the file.
        """
        self._writer = writer
        self._ops = ops
        self._path = path
        self._foreign_wait_s = foreign_wait_s
        owner = this_process()
        self._me = Holder(uuid.uuid4().hex, owner.host, owner.pid)
        self._signed = self._file(self._me)
        with writing(self._signed):
            self._signed.parent.mkdir(exist_ok=True)
            self._held = hold(self._signed)
            os.write(self._held, f"{json.dumps(owner.to_json())}\n".encode())
        self._clear()

    async def take(self, key: str) -> bool:
        """Wait until the key is ours to make (True) or somebody has made it (False).

        Raises:
            SkilltrailError: a process of another host claims it and does not finish.
        """
        begun = time.monotonic()
        noted = False
        poll_s = _FIRST_POLL_S
        while True:
            found = await self._writer.run(self._claim(key), durable=False)
            if not isinstance(found, Holder):
                return found
            held = is_held(self._file(found))
            elsewhere = not held and self._is_elsewhere(found)
            if not held and not elsewhere:
                if await self._writer.run(self._take_over(key, found), durable=False):
                    self._ops.write("claim.stolen", key=key, holder=found.to_json())
                    return True
                continue
            waited_s = time.monotonic() - begun
            if elsewhere and waited_s >= self._foreign_wait_s:
                raise self._foreign(found)
            if not noted and waited_s >= _NOTE_AFTER_S:
                self._ops.write("claim.waiting", key=key, holder=found.to_json())
                noted = True
            await asyncio.sleep(poll_s)
            poll_s = min(2 * poll_s, _LAST_POLL_S)

    def give_back(self, key: str) -> None:
        """Free a key that was not made; does not wait."""
        self._writer.submit(self.freed(key), durable=False)

    def freed(self, key: str) -> Work[None]:
        """Return the job that ends our claim of `key`."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "DELETE FROM claims WHERE key = ? AND token = ?", (key, self._me.token)
            )

        return work

    def give_back_all(self) -> None:
        """Free every key of this store; does not wait."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM claims WHERE token = ?", (self._me.token,))

        self._writer.submit(work, durable=False)

    def close(self) -> None:
        """Sign off: from now on every claim that is left counts as of a store that is gone."""
        self._signed.unlink(missing_ok=True)
        os.close(self._held)

    def _clear(self) -> None:
        """Delete the files of stores that are gone and claim nothing; does not wait."""
        folder = self._signed.parent

        def work(connection: sqlite3.Connection) -> None:
            claiming = {token for (token,) in connection.execute("SELECT token FROM claims")}
            clear_left(file for file in folder.iterdir() if file.name not in claiming)

        self._writer.submit(work, durable=False)

    def _file(self, holder: Holder) -> Path:
        return self._path.with_name(FOLDER) / holder.token

    def _is_elsewhere(self, holder: Holder) -> bool:
        """Return whether our kernel cannot know of the holder."""
        try:
            return Owner.from_json(loaded(self._file(holder).read_bytes())).is_elsewhere
        except (OSError, ValueError, KeyError, TypeError):
            return holder.host != platform.node()

    def _claim(self, key: str) -> Work[Holder | bool]:
        def work(connection: sqlite3.Connection) -> Holder | bool:
            """Return True when the key is ours now, False when the fact is there."""
            if connection.execute("SELECT 1 FROM facts WHERE key = ?", (key,)).fetchone():
                return False
            holder = holder_of(connection, key)
            if holder is None:
                connection.execute(
                    "INSERT INTO claims VALUES (?, ?, ?, ?, ?)",
                    (key, self._me.token, self._me.host, self._me.pid, time.time()),
                )
                return True
            return True if holder == self._me else holder

        return work

    def _take_over(self, key: str, dead: Holder) -> Work[bool]:
        def work(connection: sqlite3.Connection) -> bool:
            """Return False when somebody else was faster."""
            cursor = connection.execute(
                "UPDATE claims SET token = ?, host = ?, pid = ?, started = ?"
                " WHERE key = ? AND token = ?",
                (self._me.token, self._me.host, self._me.pid, time.time(), key, dead.token),
            )
            return cursor.rowcount == 1

        return work

    def _foreign(self, holder: Holder) -> SkilltrailError:
        return SkilltrailError(
            f"A fact in {self._path} is claimed by another host",
            f"{holder}, no result in {self._foreign_wait_s:g} s",
            f"If that run is over, free its claims: skilltrail store release {holder.host}",
        )

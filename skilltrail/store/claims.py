"""One payer per key: a claim says which process is making a fact now.

A claim is a row beside the facts. It is taken and given back in the same transactions as facts,
so there is no moment at which a key has neither. The claim of a process that is provably dead
on this host is taken over and the takeover is noted; any other claim is waited for.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from skilltrail.core.errors import SkilltrailError
from skilltrail.store.ops import Ops
from skilltrail.store.owner import Owner, this_process
from skilltrail.store.writer import Work, Writer

_FIRST_POLL_S = 0.02
_LAST_POLL_S = 0.5
_NOTE_AFTER_S = 5.0


@dataclass(frozen=True)
class Holder:
    """Who claims a key. `token` tells apart two stores of one process."""

    token: str
    owner: Owner


def holder_of(connection: sqlite3.Connection, key: str) -> Holder | None:
    row = connection.execute(
        "SELECT token, host, pid, started FROM claims WHERE key = ?", (key,)
    ).fetchone()
    return None if row is None else Holder(row[0], Owner(row[1], row[2], row[3]))


class Claims:
    """The claims of one store. `foreign_wait_s` bounds the wait for another host's claim."""

    def __init__(self, writer: Writer, ops: Ops, path: Path, foreign_wait_s: float) -> None:
        self._writer = writer
        self._ops = ops
        self._path = path
        self._foreign_wait_s = foreign_wait_s
        self._me = Holder(uuid.uuid4().hex, this_process())

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
            if found.owner.is_dead:
                if await self._writer.run(self._take_over(key, found), durable=False):
                    self._ops.write("claim.stolen", key=key, holder=found.owner.to_json())
                    return True
                continue
            waited_s = time.monotonic() - begun
            if found.owner.is_foreign and waited_s >= self._foreign_wait_s:
                raise self._foreign(found.owner)
            if not noted and waited_s >= _NOTE_AFTER_S:
                self._ops.write("claim.waiting", key=key, holder=found.owner.to_json())
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

    def _claim(self, key: str) -> Work[Holder | bool]:
        def work(connection: sqlite3.Connection) -> Holder | bool:
            """Return True when the key is ours now, False when the fact is there."""
            if connection.execute("SELECT 1 FROM facts WHERE key = ?", (key,)).fetchone():
                return False
            holder = holder_of(connection, key)
            if holder is None:
                owner = self._me.owner
                connection.execute(
                    "INSERT INTO claims VALUES (?, ?, ?, ?, ?)",
                    (key, self._me.token, owner.host, owner.pid, owner.started),
                )
                return True
            return True if holder == self._me else holder

        return work

    def _take_over(self, key: str, dead: Holder) -> Work[bool]:
        def work(connection: sqlite3.Connection) -> bool:
            """Return False when somebody else was faster."""
            owner = self._me.owner
            cursor = connection.execute(
                "UPDATE claims SET token = ?, host = ?, pid = ?, started = ?"
                " WHERE key = ? AND token = ?",
                (self._me.token, owner.host, owner.pid, owner.started, key, dead.token),
            )
            return cursor.rowcount == 1

        return work

    def _foreign(self, owner: Owner) -> SkilltrailError:
        return SkilltrailError(
            f"A fact in {self._path} is claimed by another host",
            f"{owner}, no result in {self._foreign_wait_s:g} s",
            f"If that run is over, free its claims: skilltrail store release {owner.host}",
        )

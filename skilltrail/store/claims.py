"""One payer per key: whoever makes a fact holds the key's place in a lock file meanwhile.

The kernel says whether a place is held, for every process and container on this host, and frees
it when its holder dies; no clock, host name or process id has a say. A row beside the facts
tells people who it is. A row whose place is free was left by a process that is gone: its key is
taken over and that is noted; but the row of another machine, of which this kernel knows
nothing, is waited for. Source: fcntl(2), open file description locks.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import platform
import sqlite3
import struct
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from skilltrail.core.errors import SkilltrailError
from skilltrail.core.files import writing
from skilltrail.store.ops import Ops
from skilltrail.store.owner import Owner, boot
from skilltrail.store.writer import Work, Writer

_FIRST_POLL_S = 0.02
_LAST_POLL_S = 0.5
_NOTE_AFTER_S = 5.0
# What is made sooner needs no name, and a name costs a transaction.
_SIGN_AFTER_S = 0.2
# Elsewhere than on Linux two stores of one process would not keep each other out.
_LOOK = (
    "SELECT EXISTS (SELECT 1 FROM facts WHERE key = ?1), token, host, pid"
    " FROM (SELECT 1) LEFT JOIN claims ON claims.key = ?1"
)
_SET_LOCK = getattr(fcntl, "F_OFD_SETLK", fcntl.F_SETLK)


class Claims:
    """The claims of one store. `foreign_wait_s` bounds the wait for another machine's."""

    def __init__(
        self,
        path: Path,
        writer: Writer,
        query: Callable[[str, Iterable[Any]], list[Any]],
        ops: Ops,
        foreign_wait_s: float,
    ) -> None:
        """Open the lock file beside the store at `path`; `query` reads that store.

        Raises:
            SkilltrailError: the system refuses it.
        """
        self._path, self._writer, self._query, self._ops = path, writer, query, ops
        self._foreign_wait_s = foreign_wait_s
        self._token = f"{boot()}:{uuid.uuid4().hex}"  # names this store and its kernel's boot
        self._signing: dict[str, asyncio.TimerHandle] = {}
        places = path.with_suffix(".claims")
        with writing(places):
            self._file = os.open(places, os.O_RDWR | os.O_CREAT, 0o644)

    async def take(self, key: str) -> bool:
        """Wait until the key is ours to make (True) or somebody has made it (False).

        Raises:
            SkilltrailError: another machine claims it and does not finish.
        """
        begun = time.monotonic()
        noted = False
        poll_s = _FIRST_POLL_S
        while (found := self._locked(key)) is None:
            holder, waited_s = self._look(key)[1], time.monotonic() - begun
            if holder is not None and holder.is_elsewhere and waited_s >= self._foreign_wait_s:
                raise self._foreign(holder)
            if holder is not None and not noted and waited_s >= _NOTE_AFTER_S:
                self._ops.write("claim.waiting", key=key, holder=holder.to_json())
                noted = True
            await asyncio.sleep(poll_s)
            poll_s = min(2 * poll_s, _LAST_POLL_S)
        made, holder = found
        if made:  # between our last look and our lock
            self._set(key, fcntl.F_UNLCK)
            return False
        after_s = _SIGN_AFTER_S
        if holder is not None:
            self._ops.write("claim.stolen", key=key, holder=holder.to_json())
            after_s = 0.0  # over a name that means nothing any more
        loop = asyncio.get_running_loop()
        self._signing[key] = loop.call_later(after_s, self._sign, key)
        return True

    def freed(self, key: str) -> Work[None]:
        """Return the job that strikes our name for `key`, where it stands."""
        signing = self._signing.pop(key, None)
        if signing is not None:
            signing.cancel()
            return lambda connection: None

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "DELETE FROM claims WHERE key = ? AND token = ?", (key, self._token)
            )

        return work

    def let_go(self, key: str) -> None:
        """Let others have a key, once what `freed` returned is done."""
        self._set(key, fcntl.F_UNLCK)

    def give_back(self, key: str) -> None:
        """Free a key that was not made; does not wait."""
        done = self._writer.submit(self.freed(key), durable=False)
        done.add_done_callback(lambda _: self.let_go(key))

    def give_back_all(self) -> None:
        """Strike our name everywhere; does not wait."""
        for signing in self._signing.values():
            signing.cancel()

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM claims WHERE token = ?", (self._token,))

        self._writer.submit(work, durable=False)

    def close(self) -> None:
        """Let go of everything."""
        os.close(self._file)

    def _locked(self, key: str) -> tuple[bool, Owner | None] | None:
        """Hold the place of a key and return what `_look` finds then; None where somebody else
        holds it, or signed for it elsewhere."""
        if not self._set(key, fcntl.F_WRLCK):
            return None
        made, holder = self._look(key)
        if holder is None or not holder.is_elsewhere:
            return made, holder
        self._set(key, fcntl.F_UNLCK)
        return None

    def _set(self, key: str, how: int) -> bool:
        """Lock or free the place of a key; False where somebody else holds it."""
        place = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=7).digest(), "big")
        try:
            fcntl.fcntl(self._file, _SET_LOCK, struct.pack("hhqqq", how, 0, place, 1, 0))
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _look(self, key: str) -> tuple[bool, Owner | None]:
        """Return whether the fact is there, and who else has signed for it."""
        ((made, token, host, pid),) = self._query(_LOOK, (key,))
        if token in (None, self._token):
            return bool(made), None
        return bool(made), Owner(host, pid, token.partition(":")[0])

    def _sign(self, key: str) -> None:
        del self._signing[key]
        row = (key, self._token, platform.node(), os.getpid(), time.time())

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?)", row)

        self._writer.submit(work, durable=False)

    def _foreign(self, holder: Owner) -> SkilltrailError:
        return SkilltrailError(
            f"A call in {self._path} is claimed by another host",
            f"{holder}, no result in {self._foreign_wait_s:g} s",
            f"If that run is over, free its claims: skilltrail store release {holder.host}",
        )

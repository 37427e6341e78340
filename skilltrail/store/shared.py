"""A store that shares its facts with other machines: read before a phase, sent after it.

What is recorded here is durable here first; the shared place (`store.remote`) only saves
others the call. Where it cannot be reached the work goes on with what is here, and what was not
sent is sent by a later run that asks for it.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from skilltrail.core.errors import FaultError, SkilltrailError
from skilltrail.store.exports import read_shard
from skilltrail.store.facts import FactStore
from skilltrail.store.ops import Ops
from skilltrail.store.protocol import Fact
from skilltrail.store.remote import RemotePacks

_REFUSED = (PermissionError, FileNotFoundError, NotADirectoryError)


class SharedFacts:
    """The way between one store and its shared place; safe for threads."""

    def __init__(
        self,
        store: FactStore,
        remote: RemotePacks,
        ops: Ops,
        say: Callable[[str], None],
        look_every_s: float = 2.0,
    ) -> None:
        self._store, self._remote, self._ops, self._say = store, remote, ops, say
        self._unsent: set[str] = set()
        self._look_every_s, self._looked = look_every_s, -math.inf
        self._lock = threading.Lock()
        self.away = False

    def has(self, key: str) -> bool:
        """Return whether the shared place was seen to hold a fact."""
        return not self.away and key in self._remote.packs

    def made(self, key: str) -> None:
        """Note a new fact, to be sent after the phase."""
        self._unsent.add(key)

    async def expect(self, keys: Iterable[str]) -> None:
        """Bring facts that a phase asks for, as far as others have them.

        Those that only this machine has are noted, to be sent after it.

        Raises:
            SkilltrailError: the shared place refuses us.
        """
        asked = list(keys)
        if asked:
            await asyncio.to_thread(self._reached, self._expect, asked)

    async def share(self) -> None:
        """Send what is new.

        Raises:
            SkilltrailError: the shared place refuses us.
        """
        if self._unsent:
            await asyncio.to_thread(self._reached, self._share)

    def _reached(self, work: Callable[..., None], *about: object) -> None:
        """Do what needs the network; where there is none, say so once and leave it."""
        with self._lock:
            if self.away:
                return
            try:
                work(*about)
            except SkilltrailError:
                raise
            except _REFUSED as error:
                raise SkilltrailError(
                    "store.remote", str(error), "Make the bucket, or see what the keys may do"
                ) from error
            except Exception as error:  # noqa: BLE001 (each kind of place has errors of its own)
                self.away = True
                found = f"{type(error).__name__}: {error}"
                self._ops.write("remote.away", found=found)
                self._say(
                    f"warning: store.remote cannot be reached ({found}): "
                    "continuing with the calls recorded here; a later run sends what is new"
                )

    def _expect(self, keys: list[str]) -> None:
        if time.monotonic() - self._looked > self._look_every_s:
            self._remote.look()
            self._looked = time.monotonic()
        packs, here = self._remote.packs, self._store.has_many(keys)
        self._unsent |= here - packs.keys()
        new, read = 0, set[str]()
        # A damaged pack may not be the only one to hold a fact, and an index may promise what
        # its pack has not: each is read once.
        while wanted := _first_of(packs, (k for k in keys if k not in here), read):
            for name, lines in self._remote.lines(wanted):
                facts = self._sound(name, lines)
                new += 0 if facts is None else self._store.put_facts(facts, shard=name)
            read |= set(wanted)
            here |= self._store.has_many(keys)
        if read:
            self._ops.write("remote.read", packs=len(read), facts=new)

    def _sound(self, name: str, lines: bytes | None) -> list[Fact] | None:
        """Return the facts of a pack; None, and say so, where it is damaged."""
        found = "its bytes are not what its name says"
        try:
            if lines is not None:
                return read_shard(Path(name), lines)
        except FaultError as fault:
            found = fault.found
        self._ops.write("remote.damaged", pack=name, found=found)
        self._say(f"warning: store.remote: pack {name} is passed over: {found}")
        self._remote.forget(name)
        return None

    def _share(self) -> None:
        unsent = sorted(self._unsent - self._remote.packs.keys())
        number = self._remote.write(self._store.facts(unsent))
        self._unsent.clear()
        if number:
            self._ops.write("remote.sent", facts=number)


def _first_of(
    packs: Mapping[str, tuple[str, ...]], keys: Iterable[str], read: set[str]
) -> list[str]:
    """Return for each key the first pack that holds it and is not read yet, sorted."""
    unread = ([name for name in packs.get(key, ()) if name not in read] for key in keys)
    return sorted({names[0] for names in unread if names})

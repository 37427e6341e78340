"""One lock per run, held by the kernel for as long as its process lives.

The lock is `flock` on a file whose text says who holds it. The kernel frees it when the holder
dies, so a killed run never blocks the next one, in another container of this host either; text
left by a dead holder is reported to the journal as reclaimed. Text of another host is not
overruled, since the kernel here cannot know.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from skilltrail.core.canon import loaded
from skilltrail.core.errors import SkilltrailError
from skilltrail.core.files import writing
from skilltrail.store.ops import NullOps, Ops
from skilltrail.store.owner import Owner, this_process

_POLL_S = 0.1


def _say_nothing(owner: Owner | None) -> None:
    return None


@asynccontextmanager
async def run_lock(
    path: Path,
    ops: Ops | None = None,
    waiting: Callable[[Owner | None], None] = _say_nothing,
    timeout_s: float | None = None,
    foreign_wait_s: float = 5.0,
) -> AsyncIterator[None]:
    """Hold the lock at `path` for the body; wait for a live holder first.

    `waiting` is told once who holds it (None when the holder has not signed yet).

    Raises:
        SkilltrailError: still held after `timeout_s` (None = wait for ever), or signed by
            another host for `foreign_wait_s`.
    """
    ops = NullOps() if ops is None else ops
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        await _acquire(file, path, waiting, timeout_s)
        await _wait_for_foreign(file, path, foreign_wait_s)
        left = _signature(file)
        if left is not None:
            ops.write("lock.reclaimed", lock=path.name, holder=left.to_json())
        _sign(file, path, this_process())
        try:
            yield
        finally:
            _sign(file, path, None)
    finally:
        os.close(file)


async def _acquire(
    file: int, path: Path, waiting: Callable[[Owner | None], None], timeout_s: float | None
) -> None:
    give_up = None if timeout_s is None else time.monotonic() + timeout_s
    attempts = 0
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = _signature(file)
        attempts += 1
        if attempts == 2:  # once may be somebody who only asked whether it is held
            waiting(holder)
        if give_up is not None and time.monotonic() >= give_up:
            raise SkilltrailError(
                f"The same run is already on and holds {path}",
                str(holder) if holder is not None else "held by an unsigned process",
                "Wait for it to end, or end it, then run again",
            )
        await asyncio.sleep(_POLL_S)


async def _wait_for_foreign(file: int, path: Path, foreign_wait_s: float) -> None:
    give_up = time.monotonic() + foreign_wait_s
    while (holder := _signature(file)) is not None and holder.is_elsewhere:
        if time.monotonic() >= give_up:
            raise SkilltrailError(
                f"The lock {path} belongs to another host",
                str(holder),
                "If that run is over (its host may have been renamed), delete the file",
            )
        await asyncio.sleep(_POLL_S)


def _signature(file: int) -> Owner | None:
    """Return who signed the lock file; None when it is empty or half written."""
    try:
        return Owner.from_json(loaded(os.pread(file, 4096, 0)))
    except (ValueError, KeyError, TypeError):
        return None


def _sign(file: int, path: Path, owner: Owner | None) -> None:
    text = "" if owner is None else json.dumps(owner.to_json()) + "\n"
    with writing(path):
        os.ftruncate(file, 0)
        os.pwrite(file, text.encode("utf-8"), 0)

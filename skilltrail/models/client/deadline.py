"""A time limit on a block of awaits, without a task of its own for each call.

What `asyncio.timeout` does from Python 3.11 on; see async-timeout for its history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Cancel the awaits inside after `seconds`.

    Raises:
        asyncio.TimeoutError: the time is up. A cancellation from outside stays one.
    """
    task = asyncio.current_task()
    assert task is not None
    fired = False

    def ring() -> None:
        nonlocal fired
        fired = True
        task.cancel()

    alarm = asyncio.get_running_loop().call_later(seconds, ring)
    try:
        yield
    except asyncio.CancelledError:
        uncancel = getattr(task, "uncancel", None)  # Python 3.11 counts cancellations
        if fired and (uncancel is None or uncancel() == 0):
            raise asyncio.TimeoutError from None
        raise
    finally:
        alarm.cancel()

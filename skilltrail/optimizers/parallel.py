"""Calls side by side, results in the order of the work: arrival never shows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def in_parallel(
    work: Sequence[T], do: Callable[[T], Awaitable[R]], workers: int
) -> list[R]:
    """Return `do` of each piece of work, in order, at most `workers` (≥ 1) at once.

    When one fails nothing new is begun; what is under way ends first, since it is paid for.

    Raises:
        The error of the first piece, in the order of the work, that failed.
    """
    tasks: list[asyncio.Task[R]] = []
    running: set[asyncio.Task[R]] = set()
    failed = False
    try:
        while len(tasks) < len(work) or running:
            while len(tasks) < len(work) and len(running) < workers and not failed:
                task = asyncio.ensure_future(do(work[len(tasks)]))
                tasks.append(task)
                running.add(task)
            if not running:
                break
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            # Each error is looked at: one that nobody reads is reported by asyncio itself.
            errors = [task.exception() for task in done]
            failed = failed or any(error is not None for error in errors)
    except asyncio.CancelledError:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        raise
    for task in tasks:
        error = task.exception()
        if error is not None:
            raise error
    return [task.result() for task in tasks]

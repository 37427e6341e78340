"""Waiting that can be called off: when the run stops, nobody sleeps on."""

from __future__ import annotations

import asyncio


class CancellableSleep:
    """Sleeps of any number of tasks, ended together by `wake_all`."""

    def __init__(self) -> None:
        self._sleeping: set[asyncio.Future[None]] = set()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`, or earlier when `wake_all` is called."""
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        alarm = loop.call_later(seconds, _wake, woken)
        self._sleeping.add(woken)
        try:
            await woken
        finally:
            alarm.cancel()
            self._sleeping.discard(woken)

    def wake_all(self) -> None:
        for woken in self._sleeping:
            _wake(woken)


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)

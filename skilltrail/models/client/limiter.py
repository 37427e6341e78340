"""How many calls are in flight at one endpoint with one key, learnt from its answers.

Additive increase, multiplicative decrease (Chiu and Jain, 1989): a 429 halves the limit, once
for all calls that were in flight together; each round of successes raises it by one, up to the
workers asked for. While the provider asks to wait, nobody sends. Limiters of a fixed rate, as
libraries have them, learn nothing; places and queue are anyio's.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0


class CancellableSleep:
    """Sleeps of any number of tasks, ended together by `wake_all`."""

    def __init__(self) -> None:
        self._sleeping: set[anyio.CancelScope] = set()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`, or earlier when `wake_all` is called."""
        with anyio.CancelScope() as scope:
            self._sleeping.add(scope)
            try:
                await anyio.sleep(seconds)
            finally:
                self._sleeping.discard(scope)

    def wake_all(self) -> None:
        for scope in list(self._sleeping):
            scope.cancel()


class Limiter:
    """An adaptive semaphore. All times are seconds of the monotonic clock."""

    def __init__(self, most: int, sleeps: CancellableSleep | None = None) -> None:
        self.most = most
        self.limit = float(most)
        self._sleeps = CancellableSleep() if sleeps is None else sleeps
        self._places = anyio.CapacityLimiter(most)
        self._paused_until = 0.0
        self._cut_at = 0.0
        self._rounds = 0
        self._limited_since: float | None = None

    def allow(self, workers: int) -> None:
        """Raise the ceiling for a role that may have `workers` calls in flight."""
        if workers > self.most:
            self._set(self.limit + workers - self.most)
            self.most = workers

    @asynccontextmanager
    async def place(self) -> AsyncIterator[float]:
        """Hold a place once there is one and the provider asks nobody to wait; yields the time
        it was taken."""
        call = object()
        while True:
            try:
                self._places.acquire_on_behalf_of_nowait(call)
            except anyio.WouldBlock:
                await self._places.acquire_on_behalf_of(call)
            try:
                now = time.monotonic()
                if now >= self._paused_until:
                    yield now
                    return
            finally:
                self._places.release_on_behalf_of(call)
            # Spread out, so that a pause does not end in a burst.
            pause_s = self._paused_until - now
            await self._sleeps.sleep(pause_s * random.uniform(1.0, 1.1))

    def open_all(self) -> None:
        """End every wait: the caller has told the waiting that there is nothing to wait for."""
        self._paused_until = 0.0
        self._places.total_tokens = math.inf

    def succeeded(self) -> None:
        """Note a reply: the limit creeps up and waiting times start afresh."""
        self._rounds = 0
        self._limited_since = None
        if self.limit < self.most:
            self._set(min(float(self.most), self.limit + 1.0 / self.limit))

    def limited(self, started: float, retry_after_s: float | None) -> float:
        """Note a 429 of a call that began at `started`.

        Returns how long nothing but 429s has come, the pause now begun included (seconds).
        """
        now = time.monotonic()
        if self._limited_since is None:
            self._limited_since = now
        if started > self._cut_at:
            self._cut_at = now
            self._set(max(1.0, self.limit / 2))
            self._rounds += 1
        pause = retry_after_s
        if pause is None:
            doubled = _FIRST_PAUSE_S * 2.0 ** (self._rounds - 1)
            pause = min(_LONGEST_PAUSE_S, doubled) * random.uniform(0.75, 1.0)
        self._paused_until = max(self._paused_until, now + pause)
        return self._paused_until - self._limited_since

    def _set(self, limit: float) -> None:
        self.limit = limit
        self._places.total_tokens = int(limit)

"""How many calls are in flight at one endpoint with one key, learnt from its answers.

Additive increase, multiplicative decrease (Chiu and Jain, 1989): a 429 halves the limit, once
for all calls that were in flight together; each round of successes raises it by one, up to the
workers asked for. While the provider asks to wait, nobody sends.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque

from skilltrail.models.client.sleep import CancellableSleep

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0


class Limiter:
    """An adaptive semaphore. All times are seconds of the monotonic clock."""

    def __init__(self, most: int, sleeps: CancellableSleep | None = None) -> None:
        self.most = most
        self._sleeps = CancellableSleep() if sleeps is None else sleeps
        self.limit = float(most)
        self.in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._paused_until = 0.0
        self._cut_at = 0.0
        self._rounds = 0
        self._limited_since: float | None = None

    def allow(self, workers: int) -> None:
        """Raise the ceiling for a role that may have `workers` calls in flight."""
        if workers > self.most:
            self.limit += workers - self.most
            self.most = workers

    async def acquire(self) -> float:
        """Wait for a free place and return the time it was taken."""
        while True:
            now = time.monotonic()
            if now < self._paused_until:
                await self._pause(self._paused_until - now)
            elif self.in_flight < int(self.limit):
                self.in_flight += 1
                return now
            else:
                await self._turn()

    def open_all(self) -> None:
        """End every wait: the caller has told the waiting that there is nothing to wait for."""
        self._paused_until = 0.0
        self.limit = float(self.most) + len(self._waiting)
        self._wake()

    def release(self) -> None:
        self.in_flight -= 1
        self._wake()

    def succeeded(self) -> None:
        """Note a reply: the limit creeps up and waiting times start afresh."""
        self._rounds = 0
        self._limited_since = None
        if self.limit < self.most:
            self.limit = min(float(self.most), self.limit + 1.0 / self.limit)
            self._wake()

    def limited(self, started: float, retry_after_s: float | None) -> float:
        """Note a 429 of a call that began at `started`.

        Returns how long nothing but 429s has come, the pause now begun included (seconds).
        """
        now = time.monotonic()
        if self._limited_since is None:
            self._limited_since = now
        if started > self._cut_at:
            self._cut_at = now
            self.limit = max(1.0, self.limit / 2)
            self._rounds += 1
        pause = retry_after_s
        if pause is None:
            doubled = _FIRST_PAUSE_S * 2.0 ** (self._rounds - 1)
            pause = min(_LONGEST_PAUSE_S, doubled) * random.uniform(0.75, 1.0)
        self._paused_until = max(self._paused_until, now + pause)
        return self._paused_until - self._limited_since

    async def _pause(self, seconds: float) -> None:
        try:
            # Spread out, so that a pause does not end in a burst.
            await self._sleeps.sleep(seconds * random.uniform(1.0, 1.1))
        except asyncio.CancelledError:
            self._wake()  # it may have been this task's turn
            raise

    async def _turn(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._wake()  # hand the place on
            raise

    def _wake(self) -> None:
        free = int(self.limit) - self.in_flight
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1

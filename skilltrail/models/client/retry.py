"""When a failed call is made again, and when the run stops trying.

One request: bounded attempts with growing, jittered waits. The whole run: consecutive failed
*rounds* of one endpoint are counted, where calls that failed together are one round, so that a
short outage under many workers is one failure and a lasting one ends the run in seconds. One
request that fails again and again, alone, is not an endpoint that is down.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any
from weakref import WeakValueDictionary

from skilltrail.models.client.limiter import CancellableSleep, Limiter
from skilltrail.models.errors import (
    GaveUp,
    ModelConfigError,
    ModelError,
    RateLimited,
    TimedOut,
    Transient,
)
from skilltrail.params.model_options import RetryOptions

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.25, 8.0
# A call that used up its whole time says more than a quick failure.
_TIMEOUT_WEIGHT = 2


def backoff_s(failures: int) -> float:
    """Return the longest wait (seconds) after this many failures, counted from 1."""
    return min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(failures - 1, 30))


def wait_before_retry(
    policy: RetryOptions, error: ModelError, failures: int, timeouts: int
) -> float | None:
    """Return how long (seconds) one request waits before its next call; None = no more.

    `failures` and `timeouts` count this request's failed calls, this one included. A rate
    limit is waited for by the shared limiter, so the request itself adds nothing.
    """
    if isinstance(error, RateLimited):
        return 0.0 if failures < 3 * policy.attempts else None
    if not isinstance(error, Transient) or failures >= policy.attempts:
        return None
    if isinstance(error, TimedOut) and timeouts > policy.after_timeout:
        return None
    return backoff_s(failures) * random.uniform(0.5, 1.0)


class EndpointState:
    """All that calls to one endpoint with one key share."""

    def __init__(self, workers: int) -> None:
        self.sleeps = CancellableSleep()
        self.limiter = Limiter(workers, self.sleeps)
        self.broken: ModelError | None = None
        self._strikes = 0
        self._struck: asyncio.Task[Any] | None = None
        self._several = False  # whether more than one task failed since the last success
        self._next_round_at = 0.0

    def check(self) -> None:
        """Refuse to send where an earlier call found that no call can work.

        Raises:
            ModelConfigError, GaveUp: the earlier call's own error.
        """
        if self.broken is not None:
            raise self.broken

    def succeeded(self) -> None:
        self._strikes, self._struck, self._several = 0, None, False
        self.limiter.succeeded()

    def failed(self, policy: RetryOptions, error: ModelError, started: float) -> None:
        """Count the failure of this task's call that began at `started` (monotonic seconds).

        Raises:
            GaveUp: the endpoint failed too often in a row.
        """
        if isinstance(error, ModelConfigError):
            self._break(error)
        elif isinstance(error, RateLimited):
            waiting_s = self.limiter.limited(started, error.retry_after_s)
            if waiting_s > policy.max_wait_s:
                self._give_up(error, f"only refusals for {waiting_s:.0f} s, the wait included")
        elif isinstance(error, Transient):
            self._strike(policy, error, started)

    def _strike(self, policy: RetryOptions, error: Transient, started: float) -> None:
        asker = asyncio.current_task()
        self._struck = asker if self._struck is None else self._struck
        self._several = self._several or asker is not self._struck
        if started < self._next_round_at:
            return
        self._strikes += _TIMEOUT_WEIGHT if isinstance(error, TimedOut) else 1
        self._next_round_at = time.monotonic() + backoff_s(self._strikes) / 2
        if self._strikes >= policy.give_up_after and self._several:
            self._give_up(error, "every call failed, again and again")

    def _give_up(self, error: ModelError, why: str) -> None:
        then = "Nothing paid for is lost: run again when the provider answers"
        remedy = f"{error.remedy} {then}" if error.remedy else then
        given_up = GaveUp(f"{error.asked}: {why}", error.found, remedy)
        self._break(given_up)
        raise given_up from error

    def _break(self, error: ModelError) -> None:
        """Let every waiting call fail now instead of later."""
        self.broken = error
        self.limiter.open_all()
        self.sleeps.wake_all()


_STATES: WeakValueDictionary[tuple[str, str], EndpointState] = WeakValueDictionary()


def endpoint_state(endpoint: str, key_digest: str, workers: int) -> EndpointState:
    """Return the state that all roles with this endpoint and key share while any is open."""
    state = _STATES.get((endpoint, key_digest))
    if state is None or state.broken is not None:  # a new start is a new chance
        state = _STATES[endpoint, key_digest] = EndpointState(workers)
    state.limiter.allow(workers)
    return state

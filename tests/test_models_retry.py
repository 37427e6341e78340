"""One retry layer for all: what is waited for, what is counted, what stops the run."""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.models.client.budget import Account
from skilltrail.models.client.classify import retry_after_s
from skilltrail.models.client.limiter import Limiter
from skilltrail.models.client.retry import EndpointState, backoff_s, wait_before_retry
from skilltrail.models.errors import GaveUp, ModelConfigError, RateLimited, TimedOut, Transient
from skilltrail.models.protocol import Reply, Request
from skilltrail.models.registry import open_model
from skilltrail.params.model_options import BudgetOptions, RetryOptions
from tests.fault_server import Call, Fault, FaultServer
from tests.role_options import FAST, KEYS, options_at

ASK = Request(prompt="hi")


async def ask_all(
    name: str, url: str, n: int, **changes: object
) -> list[Reply | BaseException]:
    model = open_model("target", replace(options_at(name, url), **changes), environ=KEYS)
    try:
        tasks = (model.complete(ASK) for _ in range(n))
        return await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        await model.close()


def test_a_wrong_key_stops_64_workers_with_one_message_and_without_a_second_try() -> None:
    """Public case retry-01."""
    with FaultServer(lambda _: Fault(status=401)) as server:
        found = asyncio.run(ask_all("chat", server.url, 200, workers=64))
        assert {str(error) for error in found} == {str(found[0])}
        assert isinstance(found[0], ModelConfigError)
        assert len(server.calls) <= 64  # those that were in flight


def test_nothing_is_sent_once_the_key_is_known_to_be_wrong() -> None:
    with FaultServer(lambda _: Fault(status=401)) as server:

        async def twice() -> None:
            model = open_model("target", options_at("chat", server.url), environ=KEYS)
            for _ in range(3):
                with pytest.raises(ModelConfigError):
                    await model.complete(ASK)
            await model.close()

        asyncio.run(twice())
        assert len(server.calls) == 1


def test_a_dead_endpoint_ends_the_run_with_the_cause_long_before_each_call_gave_up() -> None:
    with FaultServer() as server:
        url = server.url
    policy = RetryOptions(attempts=30, give_up_after=4)

    async def ask() -> tuple[list[Reply | BaseException], int]:
        options = replace(options_at("chat", url), workers=16, retry=policy)
        # What a budget counts is what was sent.
        account = Account()
        options = replace(options, budget=BudgetOptions(calls=10**6))
        model = open_model("target", options, environ=KEYS, account=account)
        tasks = (model.complete(ASK) for _ in range(100))
        found = await asyncio.gather(*tasks, return_exceptions=True)
        await model.close()
        return found, account.spent.calls

    found, made = asyncio.run(ask())
    assert all(isinstance(error, GaveUp) for error in found)
    assert "Connect" in str(found[0])
    assert "run again" in str(found[0])
    assert made <= 100 * policy.give_up_after  # of the 3,000 that its calls might make


def test_calls_that_fail_together_are_one_failure() -> None:
    """A short outage under many workers does not end the run."""

    def spoil(call: Call) -> Fault | None:
        return Fault(status=502, together=32) if call.number <= 32 else None

    with FaultServer(spoil) as server:
        found = asyncio.run(
            ask_all("chat", server.url, 32, workers=32, retry=RetryOptions(give_up_after=3))
        )
        assert all(isinstance(reply, Reply) for reply in found)


def test_scattered_faults_never_end_the_run() -> None:
    def spoil(call: Call) -> Fault | None:
        if call.number % 20 == 0:
            return Fault(status=429, headers={"retry-after": "0"})
        if call.number % 50 == 1:
            return Fault(hang=True)
        return Fault(cut=True) if call.number % 100 == 7 else None

    # A busy machine lets other calls time out as well.
    policy = RetryOptions(after_timeout=5)
    with FaultServer(spoil) as server:
        found = asyncio.run(
            ask_all("chat", server.url, 150, workers=16, timeout_s=2.0, retry=policy)
        )
    assert [r.text for r in found if isinstance(r, Reply)] == ["ok"] * 150


def test_retry_after_is_honoured_by_all_calls_to_the_endpoint() -> None:
    times: list[float] = []

    def spoil(call: Call) -> Fault | None:
        times.append(time.monotonic())
        return Fault(status=429, headers={"retry-after": "0.6"}) if call.number == 1 else None

    with FaultServer(spoil) as server:
        found = asyncio.run(ask_all("chat", server.url, 4, workers=1))
    assert [r.text for r in found if isinstance(r, Reply)] == ["ok"] * 4
    assert times[1] - times[0] >= 0.6


def test_a_wait_longer_than_params_allow_stops_the_run_and_says_so() -> None:
    with FaultServer(lambda _: Fault(status=429, headers={"retry-after": "3600"})) as server:
        found = asyncio.run(ask_all("chat", server.url, 3, workers=1))
        assert len(server.calls) == 1
    assert all(isinstance(error, GaveUp) for error in found)
    assert "run again" in str(found[0])


def test_a_used_up_quota_is_not_waited_for() -> None:
    body = {"error": {"code": "insufficient_quota", "message": "You exceeded it"}}
    with FaultServer(lambda _: Fault(status=429, body=body)) as server:
        found = asyncio.run(ask_all("chat", server.url, 1))
    assert isinstance(found[0], ModelConfigError)


def test_a_cancelled_run_sends_nothing_more() -> None:
    """Public case retry-06: no resubmission during shutdown."""
    with FaultServer(lambda _: Fault(hang=True)) as server:

        async def stopped() -> None:
            model = open_model("target", options_at("chat", server.url), environ=KEYS)
            task = asyncio.create_task(model.complete(ASK))
            while not server.calls:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await model.close()

        asyncio.run(stopped())
        assert len(server.calls) == 1


@given(st.integers(1, 50))
def test_waits_grow_and_are_bounded(failures: int) -> None:
    policy = RetryOptions(attempts=100)
    wait = wait_before_retry(policy, Transient("x"), failures, 0)
    assert wait is not None
    assert backoff_s(failures) / 2 <= wait <= backoff_s(failures) <= 8
    assert backoff_s(failures) <= backoff_s(failures + 1)


def test_only_passing_errors_are_tried_again() -> None:
    for error in (ModelConfigError("x"), GaveUp("x")):
        assert wait_before_retry(FAST, error, 1, 0) is None
    assert wait_before_retry(FAST, TimedOut("x"), 1, FAST.after_timeout + 1) is None
    assert wait_before_retry(FAST, RateLimited("x"), 1, 0) == 0.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Fri, 01 Jan 2027 00:00:30 GMT"}, 30.0),
        ({"retry-after": "Fri, 01 Jan 2021 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_retry_after_is_read_in_each_form(
    headers: dict[str, str], seconds: float | None
) -> None:
    now = datetime(2027, 1, 1, tzinfo=timezone.utc)
    assert retry_after_s(headers, now) == seconds


def test_the_limit_halves_once_for_calls_that_were_refused_together_and_recovers() -> None:
    async def run() -> None:
        limiter = Limiter(8)
        async with AsyncExitStack() as calls:
            places = [limiter.place() for _ in range(8)]
            started = [await calls.enter_async_context(place) for place in places]
            for at in started:
                limiter.limited(at, 0.0)
            assert limiter.limit == 4
        for _ in range(100):
            limiter.succeeded()
        assert limiter.limit == 8

    asyncio.run(run())


def test_concurrency_falls_under_rate_limits_and_every_call_comes_through() -> None:
    """A server that bears four calls at once, and 16 workers."""
    server: FaultServer

    def spoil(call: Call) -> Fault:
        over = server._at_once > 4
        return (
            Fault(status=429, headers={"retry-after": "0.02"}) if over else Fault(delay_s=0.01)
        )

    with FaultServer(spoil) as server:
        found = asyncio.run(
            ask_all("chat", server.url, 60, workers=16, retry=RetryOptions(attempts=9))
        )
    assert all(isinstance(reply, Reply) for reply in found)


@pytest.mark.parametrize("others", [0, 1])
def test_who_fails_first_in_each_round_does_not_matter_but_who_fails_alone(others: int) -> None:
    """One task is first in every round; another one fails beside it, or none does."""
    policy, down = RetryOptions(give_up_after=3), Transient("call", "HTTP 500")

    async def rounds() -> None:
        state = EndpointState(2)
        for number in range(policy.give_up_after):
            state.failed(policy, down, math.inf)
            if number == 0:
                for _ in range(others):
                    await asyncio.create_task(fail_in(state))

    async def fail_in(state: EndpointState) -> None:
        state.failed(policy, down, 0.0)  # it began before the round that was counted last

    if others:
        with pytest.raises(GaveUp, match="every call failed"):
            asyncio.run(rounds())
    else:
        asyncio.run(rounds())

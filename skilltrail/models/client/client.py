"""The door itself: one `complete` for every backend.

Around a backend's single attempt (`Wire.send`) stand, in this order: abilities, decoding,
budget, limiter, time limit, retry, and the rule for replies whose budget went into hidden
reasoning (DESIGN section 3). Each is told in its own module.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from skilltrail.core.redact import Redactor
from skilltrail.models.client.backend import Wire
from skilltrail.models.client.budget import Amount, Budget
from skilltrail.models.client.classify import Endpoint, Refused
from skilltrail.models.client.deadline import deadline
from skilltrail.models.client.retry import Lane, wait_before_retry
from skilltrail.models.client.usage import Tally, added
from skilltrail.models.errors import (
    EmptyCompletion,
    ModelConfigError,
    ModelError,
    RateLimited,
    TimedOut,
    Transient,
)
from skilltrail.models.protocol import Decoding, Reply, Request
from skilltrail.params.model_options import RetryOptions

_HIGHER_CAP_FACTOR = 4
_REFUSAL = Reply("", "refusal")


@dataclass(frozen=True)
class Settings:
    """What the door needs to know about its role."""

    endpoint: Endpoint
    identity: Mapping[str, Any]
    style: str
    abilities: frozenset[str]
    workers: int
    decoding: Decoding
    omit: tuple[str, ...]
    timeout_s: float
    retry: RetryOptions
    seeded: bool


class DoorModel:
    """A `Model` over any wire."""

    def __init__(
        self,
        wire: Wire,
        settings: Settings,
        lane: Lane,
        budget: Budget,
        redactor: Redactor,
    ) -> None:
        self.settings, self.lane, self.budget = settings, lane, budget
        self.tally = Tally()
        self._wire, self._redactor = wire, redactor

    @property
    def identity(self) -> Mapping[str, Any]:
        return self.settings.identity

    @property
    def style(self) -> str:
        return self.settings.style

    @property
    def abilities(self) -> frozenset[str]:
        return self.settings.abilities

    @property
    def workers(self) -> int:
        return self.settings.workers

    async def complete(self, request: Request) -> Reply:
        """Return the reply; see `skilltrail.models.protocol.Model`."""
        self._check(request)
        decoding = self._decoding(request)
        reply = await self._persist(request, decoding)
        if not _starved(reply):
            return reply
        cap = decoding.max_tokens
        if cap is not None:
            higher = replace(decoding, max_tokens=cap * _HIGHER_CAP_FACTOR)
            again = await self._persist(request, higher)
            reply = replace(
                again,
                usage=added(reply.usage, again.usage),
                attempts=reply.attempts + again.attempts,
            )
        if _starved(reply):
            raise EmptyCompletion(
                self.settings.endpoint.asked,
                f"no text and finish reason length (cap {cap} tokens, then a higher one)",
                f"Raise {self.settings.endpoint.role}.max_tokens or turn thinking down",
                billed=True,
            )
        return reply

    async def close(self) -> None:
        await self._wire.close()

    def _check(self, request: Request) -> None:
        needs = {
            "tools": bool(request.tools),
            "files": bool(request.files or request.returns),
            "vision": any(p.image is not None for m in request.messages for p in m.parts),
        }
        for ability, needed in needs.items():
            if needed and ability not in self.settings.abilities:
                role = self.settings.endpoint.role
                raise ModelConfigError(
                    self.settings.endpoint.asked,
                    f"the request needs {ability}, which this model is not known to have",
                    f"Use another model, or set {role}.abilities if it has it",
                )

    def _decoding(self, request: Request) -> Decoding:
        """Return what is sent: params over the request's own wishes, `omit` left out."""
        asked, own = request.decoding, self.settings.decoding
        seeded = self.settings.seeded or asked.seed is not None
        if own == Decoding() and not self.settings.omit and not seeded:
            return asked
        merged: dict[str, Any] = {
            "max_tokens": asked.max_tokens if own.max_tokens is None else own.max_tokens,
            "temperature": asked.temperature if own.temperature is None else own.temperature,
            "top_p": asked.top_p if own.top_p is None else own.top_p,
            "stop": own.stop if own.stop else asked.stop,
            "effort": asked.effort if own.effort is None else own.effort,
        }
        if seeded:
            # A function of the fact's key, so that repeats differ and reruns do not.
            merged["seed"] = int(request.key(self.identity)[:8], 16) & 0x7FFFFFFF
        for name in self.settings.omit:
            merged.pop(name, None)
        return Decoding(**merged)

    async def _persist(self, request: Request, decoding: Decoding) -> Reply:
        """Return the first reply of at most `retry.attempts` calls."""
        policy = self.settings.retry
        failures = timeouts = 0
        while True:
            try:
                reply = await self._attempt(request, decoding)
            except (RateLimited, Transient) as error:
                failures += 1
                timeouts += isinstance(error, TimedOut)
                wait_s = wait_before_retry(policy, error, failures, timeouts)
                if wait_s is None:
                    raise
            else:
                return replace(reply, attempts=failures + 1) if failures else reply
            await self.lane.naps.sleep(wait_s)

    async def _attempt(self, request: Request, decoding: Decoding) -> Reply:
        """Make one call, within budget and limiter, and account for it."""
        lane = self.lane
        lane.check()
        held: Amount | None = None
        if not self.budget.unlimited:
            held = await self.budget.reserve(self.budget.worst_case(request, decoding))
        usage: Mapping[str, int] | None = {}
        try:
            started = await lane.limiter.acquire()
            try:
                lane.check()
                usage = None  # from here on the provider may count tokens
                reply = await self._send(request, decoding, started)
            finally:
                lane.limiter.release()
            lane.succeeded()
            usage = reply.usage
            self.tally.count_made(usage)
            return reply
        except Transient as error:
            usage = None if error.billed else {}
            raise
        except ModelError:
            usage = {}
            raise
        finally:
            if held is not None:
                self.budget.settle(held, usage)

    async def _send(self, request: Request, decoding: Decoding, started: float) -> Reply:
        """Send once, within the time limit, and tell the lane of a failure."""
        try:
            with deadline(self.settings.timeout_s):
                return await self._wire.send(request, decoding)
        except Refused:
            return replace(_REFUSAL, model=self.settings.endpoint.model)
        except asyncio.TimeoutError as late:
            asked, limit = self.settings.endpoint.asked, self.settings.timeout_s
            error: ModelError = TimedOut(asked, f"no reply within {limit:g} s", billed=True)
            error.__cause__ = late
        except ModelError as failed:
            error = failed
        _hide(error, self._redactor)
        self.tally.count_failed()
        self.lane.failed(self.settings.retry, error, started)
        raise error


def _starved(reply: Reply) -> bool:
    """Return whether hidden reasoning used up the cap: no text, finish `length`."""
    return reply.finish == "length" and not reply.text.strip() and not reply.tool_calls


def _hide(error: ModelError, redactor: Redactor) -> None:
    """Take secrets out of an error's message and of its causes' messages."""
    chain: BaseException | None = error
    while chain is not None:
        chain.args = tuple(redactor.text(a) if isinstance(a, str) else a for a in chain.args)
        chain = chain.__cause__ if chain.__cause__ is not None else chain.__context__
    error.asked, error.found = redactor.text(error.asked), redactor.text(error.found)

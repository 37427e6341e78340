"""The model of a role: one `complete` for every backend.

Around a backend's single attempt (`Backend.send`) stand, in this order: abilities, decoding,
budget, limiter, time limit, retry, and the rules for replies without a text (DESIGN section 3).
Each is told in its own module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio

from skilltrail.core.canon import clean
from skilltrail.core.redact import Redactor
from skilltrail.models.client.backend import Backend, cut_at_stop
from skilltrail.models.client.budget import UNUSED, Amount, Budget
from skilltrail.models.client.classify import Endpoint, Refused
from skilltrail.models.client.identity import (
    abilities_of,
    default_workers,
    identity_of,
    own_decoding,
    style_of,
)
from skilltrail.models.client.reasoning import final_answer
from skilltrail.models.client.retry import EndpointState, backoff_s, wait_before_retry
from skilltrail.models.errors import (
    EmptyCompletion,
    LostText,
    ModelConfigError,
    ModelError,
    RateLimited,
    TimedOut,
    Transient,
)
from skilltrail.models.protocol import Decoding, Reply, Request
from skilltrail.params.model_options import RoleOptions

_HIGHER_CAP_FACTOR = 4
_REFUSAL = Reply("", "refusal")
_UNSET = Decoding()


class ModelClient:
    """A `Model` over any backend."""

    def __init__(
        self,
        backend: Backend,
        endpoint: Endpoint,
        options: RoleOptions,
        state: EndpointState,
        budget: Budget,
        redactor: Redactor,
    ) -> None:
        self.endpoint, self.options, self.state, self.budget = endpoint, options, state, budget
        self.identity, self.style = identity_of(options), style_of(options)
        self.abilities, self.workers = abilities_of(options), default_workers(options)
        self._backend, self._redactor = backend, redactor
        self._own = own_decoding(options)

    async def complete(self, request: Request) -> Reply:
        """Return the reply; see `skilltrail.models.protocol.Model`."""
        self._check(request)
        decoding, made, usage = self._decoding(request), 0, None
        higher = False
        while True:
            reply = await self._persist(request, decoding)
            made += reply.attempts
            usage = reply.usage if usage is None else added(usage, reply.usage)
            lost = what_came_without_text(reply)
            if is_starved(reply):
                if higher or decoding.max_tokens is None:
                    raise self._starved(decoding)
                cap, higher = decoding.max_tokens * _HIGHER_CAP_FACTOR, True
                decoding = replace(decoding, max_tokens=cap)
            elif not lost:
                text = cut_at_stop(reply.text, decoding.stop)
                if (text, made) == (reply.text, reply.attempts):  # nearly always
                    return reply
                return replace(reply, text=text, usage=usage, attempts=made)
            elif made >= self.options.retry.attempts:
                raise lost_text(self.endpoint.asked, lost)
            else:
                await self.state.sleeps.sleep(backoff_s(made))

    async def close(self) -> None:
        await self._backend.close()

    def _starved(self, decoding: Decoding) -> EmptyCompletion:
        endpoint, cap = self.endpoint, decoding.max_tokens
        limit = "with no cap of ours" if cap is None else f"even with a cap of {cap} tokens"
        remedy = f"Raise {endpoint.role}.max_tokens or turn thinking down"
        found = f"no text and finish reason length, {limit}"
        return EmptyCompletion(endpoint.asked, found, remedy, billed=True)

    def _check(self, request: Request) -> None:
        needs = {
            "tools": bool(request.tools),
            "files": bool(request.files or request.returns or request.skills),
            "vision": any(p.image is not None for m in request.messages for p in m.parts),
        }
        for ability, needed in needs.items():
            if needed and ability not in self.abilities:
                raise ModelConfigError(
                    self.endpoint.asked,
                    f"the request needs {ability}, which this model is not known to have",
                    f"Use another model, or set {self.endpoint.role}.abilities if it has it",
                )

    def _decoding(self, request: Request) -> Decoding:
        """Return what is sent: params over the request's own wishes, `omit` left out."""
        options = self.options
        changed: dict[str, Any] = {}
        if options.backend == "vllm" or (options.seed, request.decoding.seed) != (None, None):
            # A function of the fact's key, so that repeats differ and reruns do not.
            changed["seed"] = int(request.key(self.identity)[:8], 16) & 0x7FFFFFFF
        changed |= {name: getattr(_UNSET, name) for name in options.omit}
        merged = self._own.over(request.decoding)
        return replace(merged, **changed) if changed else merged

    async def _persist(self, request: Request, decoding: Decoding) -> Reply:
        """Return the first reply of at most `retry.attempts` calls."""
        policy = self.options.retry
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
                made = failures + 1
                return reply if made == reply.attempts else replace(reply, attempts=made)
            await self.state.sleeps.sleep(wait_s)

    async def _attempt(self, request: Request, decoding: Decoding) -> Reply:
        """Make one call, within budget and limiter, and account for it."""
        state = self.state
        state.check()
        held: Amount | None = None
        if not self.budget.unlimited:
            held = await self.budget.reserve(self.budget.worst_case(request, decoding))
        usage: Mapping[str, int] | None = UNUSED
        try:
            async with state.limiter.place() as started:
                state.check()
                usage = None  # from here on the provider may count tokens
                reply = await self._send(request, decoding, started)
            state.succeeded()
            usage = reply.usage
            return reply
        except Transient as error:
            usage = None if error.billed else UNUSED
            raise
        except ModelError:
            usage = UNUSED
            raise
        finally:
            if held is not None:
                self.budget.settle(held, usage)

    async def _send(self, request: Request, decoding: Decoding, started: float) -> Reply:
        """Send once, within the time limit, and tell the endpoint's state of a failure."""
        asked, limit = self.endpoint.asked, self.options.timeout_s
        try:
            with anyio.fail_after(limit):
                return answered(await self._backend.send(request, decoding))
        except Refused:
            return replace(_REFUSAL, model=self.endpoint.model)
        except TimeoutError as late:
            error: ModelError = TimedOut(asked, f"no reply within {limit:g} s", billed=True)
            error.__cause__ = late
        except ModelError as failed:
            error = failed
        _hide(error, self._redactor)
        self.state.failed(self.options.retry, error, started)
        raise error


def answered(reply: Reply) -> Reply:
    """Return a backend's reply with its answer alone as the text."""
    text, reasoned = final_answer(clean(reply.text))
    if text == reply.text and not reasoned:
        return reply
    blocks = (*reply.blocks, "reasoning in the text") if reasoned else reply.blocks
    return replace(reply, text=text, blocks=blocks)


def is_starved(reply: Reply) -> bool:
    """Return whether hidden reasoning used up the cap: no text, finish `length`."""
    return reply.finish == "length" and not reply.text.strip() and not reply.tool_calls


def what_came_without_text(reply: Reply) -> tuple[str, ...]:
    """Return what speaks for a text that got lost on the way; () where none did.

    A model that ended at once gives at most one token. Blanks are a text; a tool call, a
    refusal and an agent's used-up turns are what they are.
    """
    if reply.text or reply.tool_calls or reply.finish not in ("stop", "tool"):
        return ()
    output = reply.usage.get("output")
    counted = () if output is None or output <= 1 else (f"{output} output tokens",)
    unknown = ("no count of its tokens",) if output is None else ()
    return (*dict.fromkeys(reply.blocks), *counted, *unknown)


def lost_text(asked: str, came: tuple[str, ...]) -> LostText:
    """Return the error for a reply without text of which there came `came`."""
    return LostText(
        asked,
        f"no text came, but {' and '.join(came)}: the answer got lost on the way",
        "Let the server put the answer into its text (see docs/models: replies without a text)",
        billed=True,
    )


def added(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of two usages; a count that one of them does not know is not known."""
    return {name: first[name] + second[name] for name in first if name in second}


def _hide(error: ModelError, redactor: Redactor) -> None:
    """Take secrets out of an error's message and of its causes' messages."""
    chain: BaseException | None = error
    while chain is not None:
        chain.args = tuple(redactor.text(a) if isinstance(a, str) else a for a in chain.args)
        chain = chain.__cause__ if chain.__cause__ is not None else chain.__context__
    error.asked, error.found = redactor.text(error.asked), redactor.text(error.found)
    error.remedy = redactor.text(error.remedy)

"""A hard limit on calls, tokens and money of one role.

The worst case of a call is reserved before it is sent and settled after it, so that any number
of calls in flight together stay within the limit. No tokenizer makes more tokens than there are
bytes, so bytes sent, plus what templates add, are the most that the input can count.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from skilltrail.core.errors import BudgetError, ParamError
from skilltrail.models.client.prices import Price, is_known
from skilltrail.models.protocol import Decoding, Model, Reply, Request, WrappedModel
from skilltrail.params.model_options import BudgetOptions

_PER_MESSAGE_TOKENS = 16  # role names and separators of any known chat template
_TEMPLATE_TOKENS = 64  # the default system prompts that chat templates add by themselves
_TOOLS_TOKENS = 1024  # the instructions that providers add where tools are offered
_PER_IMAGE_TOKENS = 16_384  # above the largest published count for one image


UNUSED: Mapping[str, int] = {"input": 0, "output": 0}


@dataclass(frozen=True)
class Amount:
    """Calls, tokens (input and output together) and USD."""

    calls: int = 0
    tokens: int = 0
    usd: Fraction = Fraction(0)

    def __add__(self, other: Amount) -> Amount:
        calls, tokens = self.calls + other.calls, self.tokens + other.tokens
        return Amount(calls, tokens, self.usd + other.usd)

    def __sub__(self, other: Amount) -> Amount:
        return self + Amount(-other.calls, -other.tokens, -other.usd)


def most_input_tokens(request: Request) -> int:
    """Return a count that the request's input tokens cannot exceed."""
    texts = [request.system, request.prompt if request.prompt is not None else ""]
    images = 0
    for message in request.messages:
        texts.extend(part.text for part in message.parts)
        texts.extend(json.dumps(dict(call)) for call in message.tool_calls)
        images += sum(part.image is not None for part in message.parts)
    texts.extend(json.dumps(dict(tool)) for tool in request.tools)
    if request.schema is not None:
        texts.append(json.dumps(dict(request.schema)))
    written = sum(len(text.encode("utf-8")) for text in texts)
    parts = len(request.messages) + len(request.tools) + 2
    added = _TEMPLATE_TOKENS + (_TOOLS_TOKENS if request.tools else 0)
    return written + added + parts * _PER_MESSAGE_TOKENS + images * _PER_IMAGE_TOKENS


@dataclass
class Account:
    """What one role has spent and what it holds for calls in flight, over all its models.

    `note` is told each change of what counts as spent: a call's most before it is sent, and
    the (mostly negative) difference once it is known what it used.
    """

    spent: Amount = Amount()
    held: list[Amount] = field(default_factory=list)
    freed: asyncio.Event = field(default_factory=asyncio.Event)  # when the next hold is settled
    note: Callable[[Amount], None] = lambda change: None

    def resume(self, past: Amount, note: Callable[[Amount], None]) -> None:
        """Go on from `past`, spent by earlier starts of the run; tell `note` what follows."""
        self.spent, self.note = self.spent + past, note


class Budget:
    """What one model may still spend of its role's account; safe for any number of tasks of
    one event loop."""

    def __init__(
        self,
        role: str,
        limits: BudgetOptions,
        price: Price | None = None,
        account: Account | None = None,
    ) -> None:
        self.role, self.limits, self.price = role, limits, price
        self.account = Account() if account is None else account

    @property
    def unlimited(self) -> bool:
        limits = self.limits
        return (limits.calls, limits.tokens, limits.usd) == (None, None, None)

    def worst_case(self, request: Request, decoding: Decoding) -> Amount:
        """Return the most that one call can use.

        Raises:
            ParamError: a token or money limit is set and nothing caps the reply.
        """
        if self.limits.tokens is None and (self.limits.usd is None or self.price is None):
            return Amount(calls=1)
        if decoding.max_tokens is None:
            raise ParamError(
                f"{self.role}.max_tokens",
                "missing, while a token or money budget is set",
                "Set the longest reply, so that the most a call can cost is known before it",
            )
        sent, back = most_input_tokens(request), decoding.max_tokens
        usd = Fraction(0) if self.price is None else self.price.most(sent, back)
        return Amount(calls=1, tokens=sent + back, usd=usd)

    async def reserve(self, amount: Amount) -> Amount:
        """Hold `amount`; wait while calls in flight may still give some of theirs back.

        Raises:
            BudgetError: it does not fit, and nothing in flight can change that.
        """
        while (over := self._exceeded(amount)) is not None:
            if not self.account.held:
                raise BudgetError(
                    f"{self.role}.budget.{over} is used up",
                    f"{self._state(over)}; the next call could need "
                    f"{_shown(getattr(amount, over))} more",
                    f"What was paid for is kept. Raise {self.role}.budget.{over} and run again",
                )
            await self.account.freed.wait()
        self.account.note(amount)
        self.account.held.append(amount)
        return amount

    def settle(self, held: Amount, usage: Mapping[str, int] | None) -> None:
        """Replace a hold by what was used. Where that is not known (None, or a count that the
        provider did not give), the worst case counts."""
        account = self.account
        account.held.remove(held)
        used = held
        if usage is not None and is_known(usage):
            usd = Fraction(0) if self.price is None else self.price.cost(usage)
            used = Amount(1, usage["input"] + usage["output"], usd)
        account.spent = account.spent + used
        if used != held:
            account.note(used - held)
        account.freed.set()
        account.freed = asyncio.Event()

    def _exceeded(self, amount: Amount) -> str | None:
        total = sum(self.account.held, self.account.spent + amount)
        for name in ("calls", "tokens", "usd"):
            limit = getattr(self.limits, name)
            # As people write it: 0.1 is one tenth, not its nearest float.
            if limit is not None and getattr(total, name) > Fraction(str(limit)):
                return name
        return None

    def _state(self, over: str) -> str:
        spent = _shown(getattr(self.account.spent, over))
        return f"{spent} of {getattr(self.limits, over):g} used"


class BudgetedModel(WrappedModel):
    """A model without a client of its own, held to its role's budget."""

    def __init__(self, model: Model, budget: Budget, most_tokens: int | None) -> None:
        """`most_tokens` is what params set for a reply; it wins over the request's."""
        super().__init__(model)
        self._budget, self._most_tokens = budget, most_tokens

    async def complete(self, request: Request) -> Reply:
        """Return the reply; see `skilltrail.models.protocol.Model`."""
        decoding = request.decoding
        if self._most_tokens is not None:
            decoding = replace(decoding, max_tokens=self._most_tokens)
        held = await self._budget.reserve(self._budget.worst_case(request, decoding))
        usage: Mapping[str, int] = UNUSED
        try:
            reply = await self._model.complete(request)
            usage = reply.usage
        finally:
            self._budget.settle(held, usage)
        return reply


def _shown(value: int | Fraction) -> str:
    return str(value) if isinstance(value, int) else f"{float(value):.6g} USD"

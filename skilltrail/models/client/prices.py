"""What a role's tokens cost: from params, else from the price table, else unknown.

Prices are USD for a million tokens, kept as fractions so that sums never meet a float's
rounding. Usages are token counts as in `Reply.usage`.

Unknown is said, never counted as nothing. The local model is free by nature; a compatible
endpoint of one's own is not known to be: `price: {input: 0, output: 0}` says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from skilltrail.core.errors import ParamError
from skilltrail.models.client.classify import packaged
from skilltrail.params.model_options import EMBEDDED_BACKENDS, PriceOptions, RoleOptions

_MILLION = 1_000_000
# A dated release of a listed model: gpt-4o-2024-08-06, claude-sonnet-4-20250514.
_RELEASE = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$")


@dataclass(frozen=True)
class Price:
    """USD for a million tokens: plain input, output, input read from a cache, and input that
    is written into one."""

    input: Fraction
    output: Fraction
    cached: Fraction
    written: Fraction

    @staticmethod
    def of(
        input: float, output: float, cached: float | None = None, written: float | None = None
    ) -> Price:
        """Return the price as people write it: 0.1 is one tenth, not its nearest float."""
        full = Fraction(str(input))
        read, write = (
            full if price is None else Fraction(str(price)) for price in (cached, written)
        )
        return Price(full, Fraction(str(output)), read, write)

    def cost(self, usage: Mapping[str, int]) -> Fraction:
        """Return the USD that this usage costs."""
        cached, written = usage.get("cached", 0), usage.get("written", 0)
        fresh = max(0, usage.get("input", 0) - cached - written)
        paid = fresh * self.input + cached * self.cached + written * self.written
        return (paid + usage.get("output", 0) * self.output) / _MILLION

    def most(self, input_tokens: int, output_tokens: int) -> Fraction:
        """Return the most that a call of this size can cost: all of it at the dearest price."""
        dearest = max(self.input, self.cached, self.written)
        return (input_tokens * dearest + output_tokens * self.output) / _MILLION


FREE = Price.of(0, 0, 0)


def is_known(usage: Mapping[str, int]) -> bool:
    """Return whether a usage tells both sides of a call."""
    return "input" in usage and "output" in usage


def cost_usd(price: Price | None, usage: Mapping[str, int]) -> float | None:
    """Return the USD that a usage costs, None where the price or the usage is not known."""
    if price is None or (price != FREE and not is_known(usage)):
        return None
    return float(price.cost(usage))


@lru_cache(maxsize=1)
def price_table() -> dict[str, Price]:
    """Return the shipped price list by model name."""
    return {name: Price.of(**row) for name, row in packaged("prices.yaml")["models"].items()}


def price_of(role: str, options: RoleOptions) -> Price | None:
    """Return the role's price, or None when nobody said what it is.

    Raises:
        ParamError: only one of the two prices is set.
    """
    own = options.price
    if own.input is not None and own.output is not None:
        return Price.of(own.input, own.output, own.cached, own.written)
    if own != PriceOptions():
        raise ParamError(f"{role}.price", "incomplete", "Set both `input` and `output`")
    if options.backend in (*EMBEDDED_BACKENDS, "handoff", "replay"):
        return FREE
    if options.base_url is not None:
        return None
    return list_price(options.model)


def list_price(model: str) -> Price | None:
    """Return the price of a model, or of a dated release of it, in the shipped list."""
    return price_table().get(_RELEASE.sub("", model))


def require_price(role: str, options: RoleOptions) -> Price | None:
    """Return the price, refusing a money limit over a model whose price is unknown.

    Raises:
        ParamError: `budget.usd` is set, the price is unknown and nobody allowed that.
    """
    price = price_of(role, options)
    if price is None and options.budget.usd is not None and not options.budget.allow_unpriced:
        raise ParamError(
            f"{role}.budget.usd",
            f"{options.budget.usd:g} is set, but the price of {options.model!r} is unknown",
            f"Set {role}.price.input and {role}.price.output (USD for a million tokens), or "
            f"{role}.budget.allow_unpriced: true (--allow-unpriced) to run without the limit",
        )
    return price

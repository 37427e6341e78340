"""Tokens and money: what calls used, added up exactly.

Token counts: `input` (with cached ones), `output` (with reasoning ones), `cached` and `written`
of the input (read from a cache, put into one at a price of its own), `reasoning` of the output.
Prices are USD for a million tokens, kept as fractions so that sums never meet a float's
rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

TOKEN_FIELDS = ("input", "output", "cached", "written", "reasoning")
_MILLION = 1_000_000


def added(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of two usages, of the fields that one of them has."""
    return {
        name: first.get(name, 0) + second.get(name, 0)
        for name in TOKEN_FIELDS
        if name in first or name in second
    }


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
        fresh = usage.get("input", 0) - cached - written
        paid = fresh * self.input + cached * self.cached + written * self.written
        return (paid + usage.get("output", 0) * self.output) / _MILLION

    def most(self, input_tokens: int, output_tokens: int) -> Fraction:
        """Return the most that a call of this size can cost: all of it at the dearest price."""
        dearest = max(self.input, self.cached, self.written)
        return (input_tokens * dearest + output_tokens * self.output) / _MILLION


FREE = Price.of(0, 0, 0)


@dataclass
class Tally:
    """Running totals of one role: `made` calls (failed attempts too) and `reused` replies."""

    made: int = 0
    failed: int = 0
    reused: int = 0
    tokens: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TOKEN_FIELDS, 0))
    reused_tokens: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(TOKEN_FIELDS, 0)
    )

    def count_made(self, usage: Mapping[str, int]) -> None:
        self.made += 1
        _add_to(self.tokens, usage)

    def count_failed(self) -> None:
        self.made += 1
        self.failed += 1

    def count_reused(self, usage: Mapping[str, int]) -> None:
        self.reused += 1
        _add_to(self.reused_tokens, usage)

    def to_json(self, price: Price | None) -> dict[str, object]:
        """Return the totals; cost in USD is None when the price is unknown, never 0."""
        return {
            "made": self.made,
            "failed": self.failed,
            "reused": self.reused,
            "tokens": dict(self.tokens),
            "reused_tokens": dict(self.reused_tokens),
            "cost_usd": None if price is None else float(price.cost(self.tokens)),
            "reused_usd": None if price is None else float(price.cost(self.reused_tokens)),
        }


def _add_to(totals: dict[str, int], usage: Mapping[str, int]) -> None:
    for name in TOKEN_FIELDS:
        totals[name] += usage.get(name, 0)

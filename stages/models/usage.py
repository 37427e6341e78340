"""Tokens and money: what calls used, added up exactly.

Token counts: `input` (with cached ones), `output` (with reasoning ones), `cached` of the input,
`reasoning` of the output. Prices are USD for a million tokens, kept as fractions so that sums
never meet a float's rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

TOKEN_FIELDS = ("input", "output", "cached", "reasoning")
_MILLION = 1_000_000


def added(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of two usages, field by field."""
    return {name: first.get(name, 0) + second.get(name, 0) for name in TOKEN_FIELDS}


@dataclass(frozen=True)
class Price:
    """USD for a million tokens; `cached` is the price of cached input tokens."""

    input: Fraction
    output: Fraction
    cached: Fraction

    @staticmethod
    def of(input: float, output: float, cached: float | None = None) -> Price:
        """Return the price as people write it: 0.1 is one tenth, not its nearest float."""
        full = Fraction(str(input))
        return Price(
            full, Fraction(str(output)), full if cached is None else Fraction(str(cached))
        )

    def cost(self, usage: Mapping[str, int]) -> Fraction:
        """Return the USD that this usage costs."""
        cached = usage.get("cached", 0)
        fresh = usage.get("input", 0) - cached
        paid = fresh * self.input + cached * self.cached + usage.get("output", 0) * self.output
        return paid / _MILLION

    def most(self, input_tokens: int, output_tokens: int) -> Fraction:
        """Return the most that a call of this size can cost (nothing cached)."""
        dearest = max(self.input, self.cached)
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

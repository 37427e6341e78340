"""Outcomes and scores of one rollout, and exact means over many.

An outcome is `scored`, `missing` (no reply for infrastructure reasons) or `invalid` (the item
itself cannot be scored). Only `scored` enters a mean; a real 0.0 is a score, None is absence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from numbers import Real

from skilltrail.core.canon import Word

_SIMPLE = 10**7  # two fractions with denominators up to this never read as one float


class InvalidScore(ValueError):
    """A scorer said what is no score: not a number, not finite, or outside [0, 1]."""


class Outcome(Word):
    SCORED = "scored"
    MISSING = "missing"
    INVALID = "invalid"


@dataclass(frozen=True)
class Cost:
    """What an agent used: input and output tokens together, and model calls.

    `tokens` is None where a provider did not say: what is not known is neither less nor more.
    """

    tokens: int | None
    calls: int

    @staticmethod
    def total(costs: Iterable[Cost | None]) -> Cost:
        """Return the sum; a cost that is None is not known."""
        known = [Cost(None, 0) if cost is None else cost for cost in costs]
        tokens = [cost.tokens for cost in known if cost.tokens is not None]
        whole = len(tokens) == len(known)
        return Cost(sum(tokens) if whole else None, sum(cost.calls for cost in known))

    def cheaper_than(self, other: Cost) -> bool:
        """Return whether this is less of one and not more of the other."""
        if self.tokens is None or other.tokens is None:
            return False
        ours, theirs = (self.tokens, self.calls), (other.tokens, other.calls)
        return ours != theirs and all(a <= b for a, b in zip(ours, theirs, strict=True))

    def to_json(self) -> dict[str, int | None]:
        return {"tokens": self.tokens, "calls": self.calls}


@dataclass(frozen=True)
class Score:
    """One judged rollout: `hard` and `soft` in [0, 1] when scored, None otherwise.

    `reason` is the scorer's short word on why (`correct`, `wrong`, `empty`, `truncated`,
    `too_long`, `refused`, ...); for a missing outcome it is the infrastructure's.
    `cost` is what the agent used, where the run counts it.
    """

    outcome: Outcome
    hard: float | None = None
    soft: float | None = None
    reason: str = ""
    cost: Cost | None = None

    def __post_init__(self) -> None:
        values = (self.hard, self.soft)
        if self.outcome is Outcome.SCORED:
            for value in values:
                if isinstance(value, bool) or not 0.0 <= _number(value) <= 1.0:
                    raise InvalidScore(f"a score is a number in [0, 1], found {value!r}")
        elif values != (None, None):
            raise InvalidScore(f"{self.outcome.value} carries no score, found {values!r}")

    @staticmethod
    def scored(hard: float, soft: float | None = None, reason: str = "") -> Score:
        """Return a score; `soft` defaults to `hard`."""
        soft = hard if soft is None else soft
        return Score(Outcome.SCORED, _number(hard), _number(soft), reason)

    @staticmethod
    def missing(reason: str) -> Score:
        return Score(Outcome.MISSING, reason=reason)

    @staticmethod
    def invalid(reason: str) -> Score:
        return Score(Outcome.INVALID, reason=reason)


def _number(value: object) -> float:
    if type(value) is float:  # nearly always, and asking for `Real` takes long
        return value + 0.0  # -0.0 is 0.0
    if not isinstance(value, Real):
        raise InvalidScore(f"a score is a number in [0, 1], found {value!r:.80}")
    return float(value) + 0.0


@lru_cache(maxsize=1 << 16)
def exact(value: float) -> Fraction:
    """Return the number that a float stands for: 1/3 for 0.333…, 1/10 for 0.1.

    Scores are ratios and short decimals that a float only comes near. Taken at its word,
    0.1 + 0.2 would exceed 0.3, and rounding would decide a tie.
    """
    simple = Fraction(value).limit_denominator(_SIMPLE)
    return simple if float(simple) == value else Fraction(repr(float(value)))


def metric(score: Score, name: str, mixed_weight: float = 0.5) -> Fraction | None:
    """Return the gate metric of one score, exactly, or None when it is not scored.

    `mixed` is (1 - w) * hard + w * soft with w = `mixed_weight` (SkillOpt's `mixed` metric).
    """
    if score.hard is None or score.soft is None:
        return None
    if name == "hard":
        return exact(score.hard)
    if name == "soft":
        return exact(score.soft)
    if name == "mixed":
        weight = exact(mixed_weight)
        return (1 - weight) * exact(score.hard) + weight * exact(score.soft)
    raise ValueError(f"unknown metric {name!r}")


def exact_mean(values: Iterable[Fraction | None]) -> Fraction | None:
    """Return the mean of the present values, or None when there are none."""
    present = [value for value in values if value is not None]
    return exact_sum(present) / len(present) if present else None


class ExactSum:
    """An exact sum that grows; several times as fast as adding fractions one to another."""

    def __init__(self, values: Iterable[Fraction] = ()) -> None:
        self._above, self._below = 0, 1
        for value in values:
            self.add(value)

    def add(self, value: Fraction, times: int = 1) -> None:
        above, below = value.as_integer_ratio()
        if below == self._below:
            self._above += times * above
        else:
            part = self._below // math.gcd(self._below, below)
            common = part * below
            self._above = self._above * (common // self._below) + times * above * part
            self._below = common

    @property
    def sign(self) -> int:
        """Below, above or equal to 0, as the sum is."""
        return self._above

    @property
    def value(self) -> Fraction:
        return Fraction(self._above, self._below)


def exact_sum(values: Iterable[Fraction]) -> Fraction:
    return ExactSum(values).value


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the present values, summed exactly as the floats they are.

    A float is a whole number over a power of two, so the sum needs no common denominator to be
    searched for: ten times as fast as adding fractions.
    """
    ratios = [float(value).as_integer_ratio() for value in values if value is not None]
    if not ratios:
        return None
    finest = max(below for _, below in ratios)
    total = sum(above * (finest // below) for above, below in ratios)
    return float(Fraction(total, finest * len(ratios)))


def mean_score(scores: Sequence[Score]) -> Score:
    """Return the mean of the scored ones, or the first when there is but one or none."""
    present = [score for score in scores if score.outcome is Outcome.SCORED]
    if len(scores) == 1 or not present:
        return scores[0]
    hard, soft = mean(score.hard for score in present), mean(score.soft for score in present)
    assert hard is not None
    counted = any(score.cost is not None for score in present)
    # Of a repeat that is missing nobody knows what it used: then neither of the sum.
    cost = Cost.total(score.cost for score in scores) if counted else None
    return replace(Score.scored(hard, soft, f"mean of {len(present)}"), cost=cost)

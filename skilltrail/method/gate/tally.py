"""What is known of a candidate on one target: the pairs compared, and what is still open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from skilltrail.core.score import ExactSum, exact
from skilltrail.core.targets import Target
from skilltrail.method.gate.rule import GateRule, TargetVerdict

_ONE = Fraction(1)


class TargetTally:
    """Counts over the items of one target, in the gate metric.

    Attributes:
        of: items of the target in the split.
        compared: of those, items scored under both skills, or not yet judged.
        pairs: items scored under both skills.
        sum: of the current skill over what is compared.
        most: the gain if all items not yet judged came out perfect.
    """

    def __init__(self, target: Target | None, before: Sequence[Fraction | None]) -> None:
        self.target = target
        self.weight = _ONE if target is None else exact(target.weight)
        scored = [value for value in before if value is not None]
        self.of, self.compared, self.pairs = len(before), len(scored), 0
        self._sum, self._most = ExactSum(scored), ExactSum()
        self._most.add(_ONE, len(scored))
        for value in scored:
            self._most.add(value, -1)

    def add(self, before: Fraction, after: Fraction | None) -> None:
        """Take the candidate's value of an item that the current skill has a score of."""
        self._most.add(_ONE, -1)
        if after is None:
            self.compared -= 1
            self._sum.add(before, -1)
            self._most.add(before)
        else:
            self.pairs += 1
            self._most.add(after)

    @property
    def sum(self) -> Fraction:
        return self._sum.value

    @property
    def sign_of_most(self) -> int:
        return self._most.sign

    @property
    def most(self) -> Fraction:
        return self._most.value

    def needed(self, rule: GateRule) -> int:
        """Return the pairs that the rule wants covered."""
        return math.ceil(exact(rule.min_coverage) * self.of)

    def falls(self, tolerance: Fraction) -> bool:
        """Return whether the target falls even if all that is open came out perfect: by more
        than `tolerance`, or at all where that leaves it below its floor."""
        if self.target is None or self.most >= 0:
            return False
        return self.most < -tolerance * self.compared or self._below_floor()

    def _below_floor(self) -> bool:
        floor = Fraction(0) if self.target is None else exact(self.target.floor)
        return self.sum + self.most < floor * self.compared

    def verdict(self, *, stopped: bool) -> TargetVerdict:
        """Return the target's part of the verdict."""
        assert self.target is not None
        before = self.sum / self.compared if self.compared else None
        after = None if before is None else before + self.most / self.compared
        highest = None if after is None else float(after)
        return TargetVerdict(
            target=self.target,
            before=None if before is None else float(before),
            after=None if stopped else highest,
            after_max=highest if stopped else None,
        )

    def fall(self, *, stopped: bool) -> str:
        """Say in words how the target falls."""
        told = self.verdict(stopped=stopped)
        after = f"at most {told.after_max:.3f}" if stopped else f"{told.after:.3f}"
        floor = f", below its floor {told.target.floor:g}" if self._below_floor() else ""
        return f"target {told.target.name} falls from {told.before:.3f} to {after}{floor}"

"""The gate: is the candidate better than the current skill on the selection split?

Everything here is a pure function of per-item scores, by a rule (`method.gate.rule`).

Candidates are judged item by item in a fixed order and evaluation stops as soon as no remainder
could change the verdict from rejected. This departs from SkillOpt, which always evaluates all.

The best skill is the last accepted one that scored higher than the best before it, or as high
at a lower cost than the skill it replaced (`evaluate_candidate.moves_best`), under every rule.
Verdict, means and best rest on the same pairs: items scored under both skills.

With several targets the score is the weighted mean over all cases (items on targets), and under
every rule a candidate is rejected that brings a target down: by more than `tolerance`, or below
its floor. A target that is below its floor already may not fall at all, and may rise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from skilltrail.core.score import Cost, Score, exact, exact_sum
from skilltrail.core.stats import sign_flip_p
from skilltrail.core.targets import by_item, target_of
from skilltrail.history.log.types.parts import Verdict
from skilltrail.method.gate.rule import (
    ORDER,
    RULES,
    GateRule,
    GateVerdict,
    gate_order,
    on_cost,
    recorded,
)
from skilltrail.method.gate.tally import TargetTally

__all__ = [
    "ORDER",
    "RULES",
    "Gate",
    "GateRule",
    "GateVerdict",
    "gate_order",
    "judge_all",
    "on_cost",
    "recorded",
]

_SAME = Fraction(0)


class Gate:
    """Judges one candidate as its scores come in, in gate order."""

    def __init__(
        self,
        rule: GateRule,
        order: Sequence[str],
        current: Mapping[str, Score],
        *,
        tokens_before: int,
        tokens_after: int,
    ) -> None:
        self.rule = rule
        self.order = list(order)
        shorter = rule.prefer_shorter and tokens_after < tokens_before
        self._shorter = shorter and not rule.counts_cost
        self._before = {id: rule.value(current[id]) for id in order}
        on = {id: target_of(id, rule.targets) for id in order}
        tallies = {
            target: TargetTally(target, [self._before[id] for id in order if on[id] is target])
            for target in (rule.targets if rule.targets else (None,))
        }
        self._tallies = list(tallies.values())
        self._tally = {id: tallies[target] for id, target in on.items()}
        self._current = current
        self._pairs: dict[str, Fraction] = {}
        self._judged: dict[str, Score] = {}

    def add(self, score: Score) -> bool:
        """Take the score of the next item; return True when no further item can matter."""
        id = self.order[len(self._judged)]
        self._judged[id] = score
        before, after = self._before[id], self.rule.value(score)
        if before is not None:
            self._tally[id].add(before, after)
            if after is not None:
                # Equal scores are one object, since `exact` keeps them.
                self._pairs[id] = _SAME if after is before else after - before
        return self._lost_for_sure()

    @property
    def _most(self) -> Fraction:
        """The weighted gain if all items not yet judged came out perfect."""
        if not self.rule.targets:
            return self._tallies[0].most
        return exact_sum(tally.weight * tally.most for tally in self._tallies)

    def _lost_for_sure(self) -> bool:
        """True when every possible remainder ends in `rejected`."""
        rule = self.rule
        if rule.rule == "none" or len(self._judged) == len(self.order):
            return False
        # Before this many pairs the remainder might still end in `indecisive`. (At full
        # coverage a missing item stops the run, so that no verdict comes of it at all.)
        for tally in self._tallies:
            covered = tally.needed(rule) if rule.min_coverage < 1 else 0
            if tally.pairs < max(rule.min_items, covered):
                return False
        if rule.rule == "no_regression" and self._regressed():
            return True
        if self._fallen():
            return True
        most = self._most.numerator if rule.targets else self._tallies[0].sign_of_most
        return most < 0 or (most == 0 and not self._wins_ties())

    def _wins_ties(self) -> bool:
        """True while an equal mean may still be accepted for what the candidate costs."""
        if not self.rule.counts_cost:
            return self._shorter
        pairs = [(self._current[id].cost, self._judged[id].cost) for id in self._pairs]
        if any(one is None or one.tokens is None for pair in pairs for one in pair):
            return False
        # The most that can be had: all that is left at no cost at all.
        left = [
            self._current[id].cost
            for id, value in self._before.items()
            if value is not None and id not in self._judged
        ]
        if any(one is None or one.tokens is None for one in left):
            return True
        had = Cost.total([before for before, _ in pairs] + left)
        return Cost.total([after for _, after in pairs]).cheaper_than(had)

    def _regressed(self) -> list[str]:
        return [id for id, d in self._pairs.items() if d < -exact(self.rule.tolerance)]

    def _fallen(self) -> list[TargetTally]:
        return [t for t in self._tallies if t.falls(exact(self.rule.tolerance))]

    def verdict(self) -> GateVerdict:
        """Return the verdict on what was judged so far."""
        stopped = len(self._judged) < len(self.order)
        word, reason, p = self._decide(stopped)
        # Items scored under both skills and those still open: what both means are over.
        weight = sum(tally.weight * tally.compared for tally in self._tallies)
        total = exact_sum(tally.weight * tally.sum for tally in self._tallies)
        before = total / weight if weight else None
        after = None if before is None else before + self._most / weight
        return GateVerdict(
            verdict=word,
            reason=reason,
            before=None if before is None else float(before),
            after=None if after is None or stopped else float(after),
            after_max=None if after is None or not stopped else float(after),
            compared=sum(tally.compared for tally in self._tallies),
            judged=tuple(self._judged),
            won=tuple(id for id, d in self._pairs.items() if d.numerator > 0),
            lost=tuple(id for id, d in self._pairs.items() if d.numerator < 0),
            p=p,
            saved=len(self.order) - len(self._judged),
            forced=self.rule.rule == "none",
            costs=self._costs() if self.rule.counts_cost else None,
            targets=tuple(
                tally.verdict(stopped=stopped) for tally in self._tallies if tally.target
            ),
        )

    def _costs(self) -> tuple[Cost, Cost]:
        """Return what the agent used on the pairs, under either skill."""
        before, after = (
            Cost.total(scores[id].cost for id in self._pairs)
            for scores in (self._current, self._judged)
        )
        return before, after

    def _decide(self, stopped: bool) -> tuple[Verdict, str, float | None]:
        rule = self.rule
        if rule.rule == "none":
            return Verdict.ACCEPTED, "no gate", None
        lacking = None if stopped else self._lacking()
        if lacking is not None:
            return Verdict.INDECISIVE, lacking, None
        regressed = self._regressed() if rule.rule == "no_regression" else []
        if regressed:
            return Verdict.REJECTED, "regressed: " + ", ".join(regressed), None
        fallen = self._fallen()
        if fallen:
            return Verdict.REJECTED, "; ".join(t.fall(stopped=stopped) for t in fallen), None
        if stopped:
            return Verdict.REJECTED, "cannot win any more" + self._coarse(), None
        gain = self._gain()
        if gain < 0:
            return Verdict.REJECTED, "mean lower", None
        if gain == 0 and self._wins_ties():
            at_a_lower_cost = "mean equal at a lower cost" if rule.counts_cost else "shorter"
            return Verdict.ACCEPTED, at_a_lower_cost, None
        if gain == 0:
            return Verdict.REJECTED, "mean equal" + self._coarse(), None
        if rule.rule != "paired":
            return Verdict.ACCEPTED, "mean higher", None
        p = sign_flip_p(
            [d for d in by_item(self._pairs, rule.targets).values() if d is not None]
        )
        if p <= rule.alpha:
            return Verdict.ACCEPTED, f"mean higher, p={p:.3g}", p
        return Verdict.INDECISIVE, f"mean higher, but p={p:.3g} > {rule.alpha:g}", p

    def _lacking(self) -> str | None:
        """Return what is too little to decide on, on any target."""
        for tally in self._tallies:
            on = "" if tally.target is None else f" on {tally.target.name}"
            if tally.pairs < tally.needed(self.rule):
                return f"coverage {tally.pairs}/{tally.of}{on}"
            if tally.pairs < self.rule.min_items:
                return f"too few items ({tally.pairs}){on}"
        return None

    def _coarse(self) -> str:
        """Say so when the hard metric hides a gain that the soft one shows."""
        hidden = self.rule.metric == "hard" and self._gain() == 0 and self._soft_gain() > 0
        return "; soft scores rose: metric too coarse" if hidden else ""

    def _gain(self) -> Fraction:
        if not self.rule.targets:
            return exact_sum(self._pairs.values())
        return exact_sum(self._tally[id].weight * d for id, d in self._pairs.items())

    def _soft_gain(self) -> Fraction:
        value = GateRule(metric="soft").value
        pairs = ((value(self._current[id]), value(now)) for id, now in self._judged.items())
        return exact_sum(b - a for a, b in pairs if a is not None and b is not None)


def judge_all(
    rule: GateRule,
    order: Sequence[str],
    current: Mapping[str, Score],
    candidate: Mapping[str, Score],
    *,
    tokens_before: int = 0,
    tokens_after: int = 0,
    early: bool = True,
) -> GateVerdict:
    """Judge a candidate whose scores are known; `early=False` looks at every item."""
    gate = Gate(rule, order, current, tokens_before=tokens_before, tokens_after=tokens_after)
    for id in order:
        if gate.add(candidate[id]) and early:
            break
    return gate.verdict()

"""The gate: is the candidate better than the current skill on the selection split?

Everything here is a pure function of per-item scores. Rules (tag in each verdict):

    strict         mean strictly higher; equal mean and fewer tokens = accepted as `shorter`
    paired         mean higher and an exact one-sided sign-flip test at `alpha`, else indecisive
    no_regression  mean higher and no item lower by more than `tolerance`
    none           accepted whatever the scores (`use_gate: false`), marked forced

Candidates are judged item by item in a fixed order and evaluation stops as soon as no remainder
could change the verdict from rejected. This departs from SkillOpt, which always evaluates all.

The best skill is the last accepted one that scored higher than the best before it, or as high
in fewer tokens than the skill it replaced (`evaluate_candidate.moves_best`), under every rule.
Verdict, means and best rest on the same pairs: items scored under both skills.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from skilltrail.core.score import Score, exact, exact_mean, metric
from skilltrail.core.stats import sign_flip_p

RULES = ("strict", "paired", "no_regression", "none")
ORDER = "gate_order/1"


@dataclass(frozen=True)
class GateRule:
    """The gate's settings; `metric` is hard, soft or mixed.

    Attributes:
        min_items: fewer pairs than this are never decided on.
        min_coverage: least share of items scored under both skills.
    """

    rule: str = "strict"
    metric: str = "hard"
    mixed_weight: float = 0.5
    alpha: float = 0.05
    tolerance: float = 0.0
    prefer_shorter: bool = True
    min_items: int = 2
    min_coverage: float = 1.0

    def value(self, score: Score) -> Fraction | None:
        """Return the gate metric of one score, or None when it is missing."""
        return metric(score, self.metric, self.mixed_weight)

    def mean(self, scores: Mapping[str, Score]) -> Fraction | None:
        """Return the mean of the gate metric over the scored items, None of none."""
        return exact_mean(map(self.value, scores.values()))

    def consumed(self) -> dict[str, object]:
        """Return the settings that this rule reads: what the verdict's event records."""
        data: dict[str, object] = {"metric": self.metric}
        if self.metric == "mixed":
            data["mixed_weight"] = float(self.mixed_weight)
        if self.rule == "none":
            return data
        if self.rule == "paired":
            data["alpha"] = float(self.alpha)
        if self.rule == "no_regression":
            data["tolerance"] = float(self.tolerance)
        return data | {
            "prefer_shorter": self.prefer_shorter,
            "min_items": self.min_items,
            "min_coverage": float(self.min_coverage),
        }


@dataclass(frozen=True)
class Verdict:
    """The gate's word on one candidate.

    Attributes:
        verdict: accepted, rejected or indecisive.
        before: mean of the current skill over the items that can be compared.
        after: mean of the candidate over them; None when evaluation stopped early.
        after_max: then the highest mean that it could still have reached; else None.
        compared: how many items those are: scored under both skills, or not yet judged.
        judged: ids of the items that were looked at, in order.
        won, lost: of those, the items that went up or down.
        p: of the sign-flip test (rule `paired`), else None.
        saved: rollouts that early stopping made unnecessary.
    """

    verdict: str
    reason: str
    before: float | None
    after: float | None
    after_max: float | None
    compared: int
    judged: tuple[str, ...]
    won: tuple[str, ...]
    lost: tuple[str, ...]
    p: float | None
    saved: int
    forced: bool = False


def recorded(verdict: Verdict, total: int) -> dict[str, Any]:
    """Return the fields of `gate.judged` that follow from a verdict on `total` items."""
    counts = {"wins": len(verdict.won), "losses": len(verdict.lost)}
    statistic = {"name": "sign_flip/1", "p": verdict.p, **counts}
    return {
        "before": verdict.before,
        "after": verdict.after,
        "after_max": verdict.after_max,
        **({"compared": verdict.compared} if verdict.compared < total else {}),
        "judged": len(verdict.judged),
        "total": total,
        "flips": {"won": list(verdict.won), "lost": list(verdict.lost)},
        "statistic": None if verdict.p is None else statistic,
        "verdict": verdict.verdict,
        "forced": verdict.forced,
        "saved": verdict.saved,
        "reason": verdict.reason,
    }


def gate_order(
    selection: Sequence[str],
    current: Mapping[str, Score],
    rule: GateRule,
    shortfall: Mapping[str, Fraction] = MappingProxyType({}),
) -> list[str]:
    """Return the ids of the selection split in the order in which a candidate is judged.

    `strict` and `paired` look first where the current skill scores lowest: a candidate that
    does not win there cannot win at all. `no_regression` looks first where it scores highest,
    since one clear loss decides. Ties go to the more fragile item, and then to the split's own
    order.

    Args:
        shortfall: by item, what its hard scores lacked to 1, summed over all earlier
            evaluations on this split; items not named lacked nothing.
    """
    if rule.rule == "none":
        return list(selection)
    sign = -1 if rule.rule == "no_regression" else 1
    values = {id: rule.value(current[id]) for id in selection}

    def rank(id: str) -> tuple[float, Fraction, float, Fraction]:
        # Floats never part two fractions wrongly, and are compared in no time.
        found, lost = values[id], -shortfall.get(id, Fraction(0))
        value = Fraction(0) if found is None else sign * found
        return float(value), value, float(lost), lost

    return sorted(selection, key=rank)


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
        self.shorter = rule.prefer_shorter and tokens_after < tokens_before
        self._before = {id: rule.value(current[id]) for id in order}
        self._open = {id: value for id, value in self._before.items() if value is not None}
        # The gain if all items not yet judged came out perfect.
        self._sum = sum(self._open.values(), Fraction(0))
        self._most = len(self._open) - self._sum
        self._current = current
        self._pairs: list[tuple[str, Fraction]] = []
        self._judged: dict[str, Score] = {}

    def add(self, score: Score) -> bool:
        """Take the score of the next item; return True when no further item can matter."""
        id = self.order[len(self._judged)]
        self._judged[id] = score
        before, after = self._before[id], self.rule.value(score)
        if before is not None and after is None:
            self._open.pop(id)
            self._sum -= before
            self._most -= 1 - before
        elif before is not None and after is not None:
            self._pairs.append((id, after - before))
            self._most -= 1 - after
        return self._lost_for_sure()

    def _lost_for_sure(self) -> bool:
        """True when every possible remainder ends in `rejected`."""
        rule = self.rule
        if rule.rule == "none" or len(self._judged) == len(self.order):
            return False
        # Before this many pairs the remainder might still end in `indecisive`. (At full
        # coverage a missing item stops the run, so that no verdict comes of it at all.)
        covered = self._pairs_needed() if rule.min_coverage < 1 else 0
        if len(self._pairs) < max(rule.min_items, covered):
            return False
        if rule.rule == "no_regression" and self._regressed():
            return True
        return self._most < 0 or (self._most == 0 and not self.shorter)

    def _pairs_needed(self) -> int:
        return math.ceil(exact(self.rule.min_coverage) * len(self.order))

    def _regressed(self) -> list[str]:
        return [id for id, d in self._pairs if d < -exact(self.rule.tolerance)]

    def verdict(self) -> Verdict:
        """Return the verdict on what was judged so far."""
        stopped = len(self._judged) < len(self.order)
        word, reason, p = self._decide(stopped)
        # Items scored under both skills and those still open: what both means are over.
        compared = len(self._open)
        before = self._sum / compared if compared else None
        after = None if before is None else before + self._most / compared
        return Verdict(
            verdict=word,
            reason=reason,
            before=None if before is None else float(before),
            after=None if after is None or stopped else float(after),
            after_max=None if after is None or not stopped else float(after),
            compared=compared,
            judged=tuple(self._judged),
            won=tuple(id for id, d in self._pairs if d > 0),
            lost=tuple(id for id, d in self._pairs if d < 0),
            p=p,
            saved=len(self.order) - len(self._judged),
            forced=self.rule.rule == "none",
        )

    def _decide(self, stopped: bool) -> tuple[str, str, float | None]:
        rule = self.rule
        if rule.rule == "none":
            return "accepted", "no gate", None
        if not stopped and len(self._pairs) < self._pairs_needed():
            return "indecisive", f"coverage {len(self._pairs)}/{len(self.order)}", None
        if not stopped and len(self._pairs) < rule.min_items:
            return "indecisive", f"too few items ({len(self._pairs)})", None
        regressed = self._regressed() if rule.rule == "no_regression" else []
        if regressed:
            return "rejected", "regressed: " + ", ".join(regressed), None
        if stopped:
            return "rejected", "cannot win any more" + self._coarse(), None
        gain = self._gain()
        if gain < 0:
            return "rejected", "mean lower", None
        if gain == 0 and self.shorter:
            return "accepted", "shorter", None
        if gain == 0:
            return "rejected", "mean equal" + self._coarse(), None
        if rule.rule != "paired":
            return "accepted", "mean higher", None
        p = sign_flip_p([d for _, d in self._pairs])
        if p <= rule.alpha:
            return "accepted", f"mean higher, p={p:.3g}", p
        return "indecisive", f"mean higher, but p={p:.3g} > {rule.alpha:g}", p

    def _coarse(self) -> str:
        """Say so when the hard metric hides a gain that the soft one shows."""
        hidden = self.rule.metric == "hard" and self._gain() == 0 and self._soft_gain() > 0
        return "; soft scores rose: metric too coarse" if hidden else ""

    def _gain(self) -> Fraction:
        return sum((d for _, d in self._pairs), Fraction(0))

    def _soft_gain(self) -> Fraction:
        value = GateRule(metric="soft").value
        pairs = ((value(self._current[id]), value(now)) for id, now in self._judged.items())
        return sum((b - a for a, b in pairs if a is not None and b is not None), Fraction(0))


def judge_all(
    rule: GateRule,
    order: Sequence[str],
    current: Mapping[str, Score],
    candidate: Mapping[str, Score],
    *,
    tokens_before: int = 0,
    tokens_after: int = 0,
    early: bool = True,
) -> Verdict:
    """Judge a candidate whose scores are known; `early=False` looks at every item."""
    gate = Gate(rule, order, current, tokens_before=tokens_before, tokens_after=tokens_after)
    for id in order:
        if gate.add(candidate[id]) and early:
            break
    return gate.verdict()

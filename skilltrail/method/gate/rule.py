"""The gate's rule, what it reads, and its word on a candidate: pure values.

Rules (tag in each verdict):

    strict         mean strictly higher; equal mean and fewer tokens = accepted as `shorter`
    paired         mean higher and an exact one-sided sign-flip test at `alpha`, else indecisive
    no_regression  mean higher and no item lower by more than `tolerance`
    pareto         mean higher, or equal while the agent used fewer tokens or calls and not more
                   of the other
    none           accepted whatever the scores (`use_gate: false`), marked forced

With several targets scores are by case, an item on a target (`core.targets`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from skilltrail.core.score import Cost, Score, exact_mean, metric
from skilltrail.core.targets import Target, weighted_mean
from skilltrail.history.log.types.outcomes import GateJudged
from skilltrail.history.log.types.parts import Verdict

RULES = ("strict", "paired", "no_regression", "pareto", "none")
ORDER = "gate_order/1"
_NOTHING = Fraction(0)


@dataclass(frozen=True)
class GateRule:
    """The gate's settings; `metric` is hard, soft or mixed.

    Attributes:
        min_items: fewer pairs than this are never decided on.
        min_coverage: least share of items scored under both skills.
        targets: where there are several; scores are then by case.
    """

    rule: str = "strict"
    metric: str = "hard"
    mixed_weight: float = 0.5
    alpha: float = 0.05
    tolerance: float = 0.0
    prefer_shorter: bool = True
    min_items: int = 2
    min_coverage: float = 1.0
    targets: tuple[Target, ...] = ()

    @property
    def counts_cost(self) -> bool:
        """Whether rollouts are held against each other by what the agent used, too."""
        return self.rule == "pareto"

    def value(self, score: Score) -> Fraction | None:
        """Return the gate metric of one score, or None when it is missing."""
        return metric(score, self.metric, self.mixed_weight)

    def mean(self, scores: Mapping[str, Score]) -> Fraction | None:
        """Return the mean of the gate metric over the scored items, None of none."""
        if self.targets:
            values = {case: self.value(score) for case, score in scores.items()}
            return weighted_mean(values, self.targets)
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
        if self.rule == "no_regression" or self.targets:
            data["tolerance"] = float(self.tolerance)
        if not self.counts_cost:
            data["prefer_shorter"] = self.prefer_shorter
        return data | {"min_items": self.min_items, "min_coverage": float(self.min_coverage)}


@dataclass(frozen=True)
class TargetVerdict:
    """What a candidate does on one of several targets; means as in `GateVerdict`."""

    target: Target
    before: float | None
    after: float | None
    after_max: float | None

    def to_json(self) -> dict[str, Any]:
        means = {name: getattr(self, name) for name in ("before", "after", "after_max")}
        target = self.target
        return {"target": target.name, "weight": target.weight, "floor": target.floor} | means


@dataclass(frozen=True)
class GateVerdict:
    """The gate's word on one candidate.

    Attributes:
        before: mean of the current skill over the items that can be compared.
        after: mean of the candidate over them; None when evaluation stopped early.
        after_max: then the highest mean that it could still have reached; else None.
        compared: how many items those are: scored under both skills, or not yet judged.
        judged: ids of the items that were looked at, in order.
        won, lost: of those, the items that went up or down.
        p: of the sign-flip test (rule `paired`), else None.
        saved: rollouts that early stopping made unnecessary.
        costs: of the judged items under the current skill and the candidate (rule `pareto`).
        targets: the same means on each target, where there are several.
    """

    verdict: Verdict
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
    costs: tuple[Cost, Cost] | None = None
    targets: tuple[TargetVerdict, ...] = ()


def recorded(verdict: GateVerdict, total: int) -> dict[str, Any]:
    """Return the fields of `gate.judged` that follow from a verdict on `total` items."""
    counts = {"wins": len(verdict.won), "losses": len(verdict.lost)}
    statistic = {"name": "sign_flip/1", "p": verdict.p, **counts}
    data: dict[str, Any] = {
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
    if verdict.targets:
        data["targets"] = [target.to_json() for target in verdict.targets]
    if verdict.costs is not None:
        before, after = verdict.costs
        data["cost"] = {"before": before.to_json(), "after": after.to_json()}
    return data


def on_cost(gate: GateJudged) -> bool:
    """Return whether the candidate of a `gate.judged` event costs less than what it replaces:
    by what the agent used where the rule counts that, else by the document's tokens.

    A minibatch lets a candidate into a pool, on its scores alone.
    """
    if gate.split is not None:
        return False
    if gate.rule == "pareto/1" and gate.cost is not None:
        before, after = (Cost(c.tokens, c.calls) for c in (gate.cost.before, gate.cost.after))
        return after.cheaper_than(before)
    return gate.tokens_after < gate.tokens_before


def gate_order(
    selection: Sequence[str],
    current: Mapping[str, Score],
    rule: GateRule,
    cumulative_loss: Mapping[str, Fraction] = MappingProxyType({}),
) -> list[str]:
    """Return the ids of the selection split in the order in which a candidate is judged.

    `strict`, `paired` and `pareto` look first where the current skill scores lowest: a
    candidate that does not win there cannot win at all. `no_regression` looks first where it
    scores highest, since one clear loss decides. Ties go to the more fragile item, and then to
    the split's own order.

    Args:
        cumulative_loss: by item, what its hard scores lacked to 1, summed over all earlier
            evaluations on this split; items not named lacked nothing.
    """
    if rule.rule == "none":
        return list(selection)
    highest_first = rule.rule == "no_regression"
    values = {id: rule.value(current[id]) for id in selection}

    def rank(id: str) -> tuple[float, Fraction, float, Fraction]:
        # Floats never part two fractions wrongly, and are compared in no time.
        found, lost = values[id], -cumulative_loss.get(id, _NOTHING)
        value = _NOTHING if found is None else -found if highest_first else found
        return float(value), value, float(lost), lost

    return sorted(selection, key=rank)

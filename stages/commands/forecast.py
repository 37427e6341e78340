"""What a run will cost before anything is spent: calls, tokens and money, as ranges.

Upper bounds follow from the params alone. Lower bounds say what a run cannot do without: a
candidate that is rejected early costs less than a full evaluation, and what is recorded costs
nothing. Tokens of a call come from recorded rollouts, else from what is typical.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stages.core.model_options import RoleOptions
from stages.core.params import Params
from stages.models.prices import price_of

# Tokens a call where nothing is recorded yet: (input, output), low and high.
_TYPICAL = {
    "target": ((200, 8), (1500, 300)),
    "optimizer": ((1500, 200), (12000, 2500)),
    "judge": ((500, 40), (4000, 600)),
}


@dataclass(frozen=True)
class Size:
    """Items of the three splits, after limits."""

    train: int
    selection: int
    test: int


@dataclass(frozen=True)
class PerCall:
    """Tokens of one call: low and high, each (input, output)."""

    low: tuple[float, float]
    high: tuple[float, float]
    recorded: int = 0


@dataclass(frozen=True)
class Phase:
    """One line of the forecast. Costs are None where the price is unknown."""

    phase: str
    role: str
    calls_low: int
    calls_high: int
    tokens_low: int
    tokens_high: int
    usd_low: float | None
    usd_high: float | None


@dataclass(frozen=True)
class Forecast:
    """`steps` of the run, the lines, totals by role, and warnings about budgets and prices."""

    steps: int
    phases: tuple[Phase, ...]
    warnings: tuple[str, ...]

    def totals(self, role: str) -> Phase:
        """Return the sum of a role's lines."""
        rows = [phase for phase in self.phases if phase.role == role]

        def money(values: list[float | None]) -> float | None:
            known = [value for value in values if value is not None]
            return math.fsum(known) if len(known) == len(values) else None

        return Phase(
            "total",
            role,
            sum(row.calls_low for row in rows),
            sum(row.calls_high for row in rows),
            sum(row.tokens_low for row in rows),
            sum(row.tokens_high for row in rows),
            money([row.usd_low for row in rows]),
            money([row.usd_high for row in rows]),
        )


def steps_of(params: Params, train: int) -> int:
    """Return the number of steps of a run over `train` items."""
    return params.epochs * math.ceil(train / (params.batch_size * params.accumulation))


def call_ranges(params: Params, size: Size) -> list[tuple[str, str, int, int]]:
    """Return (phase, role, fewest calls, most calls) of every phase."""
    steps = steps_of(params, size.train)
    repeats = params.gate.repeats
    rows = [
        ("baseline", "target", size.selection * repeats, size.selection * repeats),
        ("train rollouts", "target", size.train, size.train * params.epochs),
        ("gate", "target", 0, steps * size.selection * repeats),
    ]
    if params.slow_update.enabled and params.epochs > 1:
        most = (params.epochs - 1) * (2 * params.slow_update.samples + size.selection)
        rows.append(("slow update", "target", 0, most))
    if params.compaction:
        rows.append(("compaction", "target", 0, params.epochs * size.selection * repeats))
    if params.evaluate.enabled:
        rows += _evaluation_ranges(params, size)
    if params.judge.backend != "none":
        rows += _judge_ranges(rows)
    if params.optimizer.backend != "rules":
        rows += _optimizer_ranges(params, steps, size)
    return rows


def _judge_ranges(rollouts: list[tuple[str, str, int, int]]) -> list[tuple[str, str, int, int]]:
    """Return the judge's part of each phase: none where rules score all of it, at most two
    calls a rollout. Equal answers to an item are judged once."""
    most: dict[str, int] = {}
    for phase, _, _, high in rollouts:
        most[phase] = most.get(phase, 0) + 2 * high
    return [(phase, "judge", 0, high) for phase, high in most.items()]


def _evaluation_ranges(params: Params, size: Size) -> list[tuple[str, str, int, int]]:
    asked = params.evaluate
    splits = {"train": size.train, "selection": size.selection, "test": size.test}
    items = sum(splits.values()) if asked.split == "all" else splits[asked.split]
    named = len(asked.skills)
    low, high = (named, named) if named else (1, 3)  # seed, best and last may be one text
    roles = ["target", *map(transfer_role, asked.roles)]
    return [("evaluate", role, low * items, high * items) for role in roles]


def transfer_role(name: str) -> str:
    """Return what messages call a role of `evaluate.targets`."""
    return f"evaluate.targets.{name}"


def roles_of(params: Params) -> dict[str, RoleOptions]:
    """Return the options of every role by its name, those of `evaluate.targets` included."""
    others = {transfer_role(name): role for name, role in params.evaluate.roles.items()}
    judge = {} if params.judge.backend == "none" else {"judge": params.judge}
    return {"target": params.target, "optimizer": params.optimizer, **judge, **others}


def _optimizer_ranges(
    params: Params, steps: int, size: Size
) -> list[tuple[str, str, int, int]]:
    pooled = min(size.train, params.batch_size * params.accumulation)
    analysts = math.ceil(pooled / params.reflect.minibatch_size) + 1
    merges, groups = 0, analysts
    while groups > 1:
        groups = math.ceil(groups / params.merge_batch_size)
        merges += groups
    rows = [
        ("reflect", "optimizer", steps, 2 * steps * analysts),
        ("merge", "optimizer", 0, 2 * steps * (merges + 1)),
        ("rank", "optimizer", 0, 2 * steps),
    ]
    boundaries = max(0, params.epochs - 1)
    for enabled, name in (
        (params.slow_update.enabled, "slow update"),
        (params.meta_skill.enabled, "meta skill"),
    ):
        if enabled and boundaries:
            rows.append((name, "optimizer", 0, 2 * boundaries))
    if params.compaction:
        rows.append(("compaction", "optimizer", params.epochs, 2 * params.epochs))
    return rows


def forecast(
    params: Params, size: Size, measured: Mapping[str, PerCall] | None = None
) -> Forecast:
    """Return the forecast of a run that starts with nothing recorded.

    `measured`: tokens of a call by role, from recorded facts.
    """
    found = {} if measured is None else measured
    roles = roles_of(params)
    phases = []
    for phase, role, low, high in call_ranges(params, size):
        kind = role if role in _TYPICAL else "target"
        each = found.get(kind, PerCall(*_TYPICAL[kind]))
        phases.append(_priced(phase, role, low, high, each, roles[role]))
    plan = Forecast(steps_of(params, size.train), tuple(phases), ())
    return Forecast(plan.steps, plan.phases, tuple(_warnings(plan, roles, params, size)))


def _priced(
    phase: str, role: str, low: int, high: int, each: PerCall, options: RoleOptions
) -> Phase:
    price = price_of(role, options)

    low_in, low_out = (round(low * tokens) for tokens in each.low)
    high_in, high_out = (round(high * tokens) for tokens in each.high)
    return Phase(
        phase,
        role,
        low,
        high,
        round(low * sum(each.low)),
        round(high * sum(each.high)),
        None if price is None else float(price.cost({"input": low_in, "output": low_out})),
        None if price is None else float(price.most(high_in, high_out)),
    )


def _warnings(
    plan: Forecast, roles: Mapping[str, RoleOptions], params: Params, size: Size
) -> list[str]:
    said = []
    used = {phase.role for phase in plan.phases}
    for role, options in roles.items():
        if role not in used:
            continue
        total = plan.totals(role)
        if price_of(role, options) is None:
            said.append(f"{role}: the price of {options.model!r} is unknown; see {role}.price")
        budget = options.budget
        limits: tuple[tuple[str, Any, Any], ...] = (
            ("calls", budget.calls, total.calls_high),
            ("tokens", budget.tokens, total.tokens_high),
            ("usd", budget.usd, total.usd_high),
        )
        for name, limit, most in limits:
            if limit is not None and most is not None and limit < most:
                said.append(f"{role}.budget.{name}: {limit:g} may not reach; up to {most:g}")
    calls = params.target.budget.calls
    if calls is not None:
        said += proposals_warning(calls, params, size)
    return said


def proposals_warning(calls: int, params: Params, size: Size) -> list[str]:
    """Return a warning when a call limit leaves room for hardly any candidate.

    One candidate needs the baseline, one batch of train rollouts and one gate.
    """
    gate = size.selection * params.gate.repeats
    batch = min(size.train, params.batch_size * params.accumulation)
    least, all_steps = gate + batch + gate, steps_of(params, size.train)
    if calls >= least + batch + gate or all_steps <= 1:
        return []
    most = 0 if calls < gate + batch + 1 else max(1, (calls - gate) // (batch + gate))
    return [
        f"target.budget.calls: {calls} lets at most {most} candidate(s) of {all_steps} be "
        f"judged; at least {least} are needed for one, "
        f"{gate + all_steps * (batch + gate)} for all"
    ]

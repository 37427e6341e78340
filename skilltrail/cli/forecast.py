"""What a run will cost before anything is spent: calls, tokens and money, as ranges.

Upper bounds of calls follow from the params alone, as do likely numbers; lower bounds say what
a run cannot do without (see `skilltrail.runtime.call_estimate`). Tokens of a call come from
recorded rollouts, else from what is typical: they are no bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from skilltrail.history.log.words import count
from skilltrail.models.client.prices import price_of
from skilltrail.models.registry import warning_of
from skilltrail.params.fields import Params
from skilltrail.params.model_options import RoleOptions
from skilltrail.runtime.call_estimate import Calls, Size, call_ranges, steps_of, transfer_role

# Tokens a call where nothing is recorded yet: (input, output), low and high.
_TYPICAL = {
    "target": ((200, 8), (1500, 300)),
    "optimizer": ((1500, 200), (12000, 2500)),
    "judge": ((500, 40), (4000, 600)),
}


@dataclass(frozen=True)
class PerCall:
    """Tokens of one call, or of one recorded rollout: low and high, each (input, output)."""

    low: tuple[float, float]
    high: tuple[float, float]
    recorded: int = 0


@dataclass(frozen=True)
class Phase:
    """One line of the forecast. Costs are None where the price is unknown."""

    phase: str
    role: str
    calls_low: int
    calls_likely: int
    calls_high: int
    tokens_low: int
    tokens_likely: int
    tokens_high: int
    usd_low: float | None
    usd_likely: float | None
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

        def total(name: str) -> Any:
            values = [getattr(row, name) for row in rows]
            if None in values:
                return None
            return math.fsum(values) if name.startswith("usd") else sum(values)

        names = [each.name for each in fields(Phase)[2:]]
        return Phase("total", role, *map(total, names))


def roles_of(params: Params) -> dict[str, RoleOptions]:
    """Return the options of every role by its name, those of `evaluate.targets` included."""
    others = {transfer_role(name): role for name, role in params.evaluate.roles.items()}
    judge = {} if params.judge.backend == "none" else {"judge": params.judge}
    return {**params.target_roles, "optimizer": params.optimizer, **judge, **others}


def forecast(
    params: Params,
    size: Size,
    measured: Mapping[str, PerCall] | None = None,
    most_calls: int = 1,
) -> Forecast:
    """Return the forecast of a run that starts with nothing recorded.

    Args:
        measured: tokens of a call (of a target: of a rollout) by role, from recorded facts.
        most_calls: calls of the target in one rollout at most.
    """
    found = {} if measured is None else measured
    roles = roles_of(params)
    phases = []
    for row in call_ranges(params, size):
        kind = row.role if row.role in _TYPICAL else "target"
        turns = most_calls if kind == "target" else 1
        each = found.get(kind, _typical(kind, roles[row.role].max_tokens))
        phases.append(_priced(row, each, roles[row.role], turns))
    plan = Forecast(steps_of(params, size.train), tuple(phases), ())
    return Forecast(plan.steps, plan.phases, tuple(_warnings(plan, roles, params, size)))


def _typical(kind: str, cap: int | None) -> PerCall:
    low, (sent, back) = _TYPICAL[kind]
    return PerCall(low, (sent, back if cap is None else max(back, cap)))


def _priced(row: Calls, each: PerCall, options: RoleOptions, turns: int) -> Phase:
    """Return the line of a phase; a recorded rollout counts with all of its turns."""
    price, of_rollout = price_of(row.role, options), each.recorded > 0
    middle = each.low if of_rollout else tuple(map(_middle, each.low, each.high))
    calls = (row.fewest, row.likely * turns, row.most * turns)
    times = (row.fewest, row.likely, row.most) if of_rollout else calls
    tokens = [
        [round(count * part) for part in parts]
        for count, parts in zip(times, (each.low, middle, each.high), strict=True)
    ]
    usd: tuple[float | None, ...] = (None, None, None)
    if price is not None:
        low, likely, high = tokens
        costs = [price.cost({"input": sent, "output": back}) for sent, back in (low, likely)]
        usd = tuple(map(float, (*costs, price.most(*high))))
    return Phase(row.phase, row.role, *calls, *map(sum, tokens), *usd)


def _middle(low: float, high: float) -> float:
    return math.sqrt(low * high)  # these differ by an order of magnitude


def _warnings(
    plan: Forecast, roles: Mapping[str, RoleOptions], params: Params, size: Size
) -> list[str]:
    said = []
    used = {phase.role for phase in plan.phases}
    for role, options in roles.items():
        if role not in used:
            continue
        total = plan.totals(role)
        if (warning := warning_of(role, options)) is not None:
            said.append(warning)
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
    if params.method != "skillopt" or params.panel:
        return []
    gate = size.selection * params.gate.repeats
    batch = min(size.train, params.batch_size * params.accumulation)
    least, all_steps = gate + batch + gate, steps_of(params, size.train)
    if calls >= least + batch + gate or all_steps <= 1:
        return []
    most = 0 if calls < gate + batch + 1 else max(1, (calls - gate) // (batch + gate))
    return [
        f"target.budget.calls: {calls} lets at most {count(most, 'candidate')} of {all_steps} "
        f"be judged; at least {least} are needed for one, "
        f"{gate + all_steps * (batch + gate)} for all"
    ]

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

from skilltrail.models.client.prices import price_of
from skilltrail.models.registry import warning_of
from skilltrail.params.fields import Params
from skilltrail.params.model_options import RoleOptions
from skilltrail.runtime.call_estimate import Size, call_ranges, steps_of, transfer_role

# Tokens a call where nothing is recorded yet: (input, output), low and high.
_TYPICAL = {
    "target": ((200, 8), (1500, 300)),
    "optimizer": ((1500, 200), (12000, 2500)),
    "judge": ((500, 40), (4000, 600)),
}


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


def roles_of(params: Params) -> dict[str, RoleOptions]:
    """Return the options of every role by its name, those of `evaluate.targets` included."""
    others = {transfer_role(name): role for name, role in params.evaluate.roles.items()}
    judge = {} if params.judge.backend == "none" else {"judge": params.judge}
    return {"target": params.target, "optimizer": params.optimizer, **judge, **others}


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

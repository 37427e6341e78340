"""Settings of the gate, read back from the events that carry them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from skilltrail.core.targets import Target, cases_of, targets_in
from skilltrail.history.log.run_state import RunState
from skilltrail.method.gate import GateRule


def rule_of(data: Mapping[str, Any], state: RunState) -> GateRule:
    """Return the gate's settings as the event recorded them; of several targets who they are,
    with weights and floors, is the run's start's to say."""
    names = {field.name for field in fields(GateRule)} - {"rule", "targets"}
    settings = {name: data[name] for name in names if name in data}
    return GateRule(rule=data["rule"].removesuffix("/1"), targets=targets_of(state), **settings)


def targets_of(state: RunState) -> tuple[Target, ...]:
    """Return the targets of a run with several."""
    return targets_in(state.start.get("target", {}))


def cases(state: RunState) -> list[str]:
    """Return the selection items, on each target where there are several."""
    return cases_of(state.ids("selection"), targets_of(state))

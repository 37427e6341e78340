"""Settings of the gate, read back from the events that carry them."""

from __future__ import annotations

from dataclasses import fields

from skilltrail.core.targets import cases_of
from skilltrail.core.tokens import TAG as COUNTER
from skilltrail.history.log.run_state import RunState
from skilltrail.history.log.types.outcomes import GateJudged
from skilltrail.history.log.types.proposals import ParentsChosen
from skilltrail.method.gate import GateRule
from skilltrail.verify.result import Tags


def rule_of(said: GateJudged | ParentsChosen, state: RunState) -> GateRule:
    """Return the gate's settings as the event recorded them; of several targets who they are,
    with weights and floors, is the run's start's to say."""
    names = {field.name for field in fields(GateRule)} - {"rule", "targets"}
    told = {name: getattr(said, name, None) for name in names}
    settings = {name: value for name, value in told.items() if value is not None}
    return GateRule(rule=said.rule.removesuffix("/1"), targets=state.targets, **settings)


def knows_counter(state: RunState, tags: Tags) -> bool:
    """True when the run counted tokens as it is done here."""
    return tags.knows(None if state.start is None else state.start.counter, COUNTER)


def cases(state: RunState) -> list[str]:
    """Return the selection items, on each target where there are several."""
    return cases_of(state.ids("selection"), state.targets)

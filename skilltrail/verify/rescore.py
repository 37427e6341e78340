"""Rows of rollouts: each has its fact, under the right key, and the score that it gives.

Scores are computed again from recorded trajectories; what a judge scored, from its recorded
judgement. No judge is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from skilltrail.core.canon import canonical
from skilltrail.core.eraser import MARKER
from skilltrail.core.errors import FaultError, UsageError
from skilltrail.core.item import Item
from skilltrail.core.score import Outcome, Score
from skilltrail.core.trajectory import Trajectory, cost_of
from skilltrail.envs.protocol import case_of
from skilltrail.envs.scoring import by_rule
from skilltrail.history.log import types
from skilltrail.history.log.events import Event
from skilltrail.history.log.types.parts import ItemDigest, RowScored
from skilltrail.models.judge import judges, score_of
from skilltrail.models.panel import Panel
from skilltrail.models.protocol import Model
from skilltrail.params.knob import result_values
from skilltrail.runtime.evaluation.transfer import target_named
from skilltrail.store.protocol import gap_key, rollout_key
from skilltrail.verify.doors import RefusingModel, gaps_of, target_of
from skilltrail.verify.evidence import OPENED, Evidence
from skilltrail.verify.result import BROKEN, Fault, Level

SCORED = ("hard", "soft", "reason", "judgement", "cost")


class Rows:
    """Checks rows one by one; knows the items, the agent and the targets that logs name."""

    def __init__(self, evidence: Evidence) -> None:
        self._e = evidence
        self._judge = evidence.start.data.get("judge")
        agent, env = evidence.started.agent, evidence.env
        shown = result_values(env.params, scorer=False)
        scorers = result_values(env.params).keys() - shown.keys()
        params = {k: v for k, v in agent["params"].items() if k not in scorers}
        self._agent = [env.name, agent["version"], params]
        self.erased = evidence.erased  # from the log that is looked at
        self._items: dict[str, Item] = {}
        self._gaps = ""

    def open(self, event: Event) -> None:
        """Take the items that a log begins with, where they are here and still the same."""
        self._gaps = gaps_of(self._e, evaluated=event.type == OPENED)
        rows, here = _opened(event), self._e.items
        self._items |= {r.item: here[r.digest] for r in rows if r.digest in here}

    def target(self, event: Event, after: list[Event]) -> RefusingModel | Panel | None:
        """Return the model that rows were rolled out on; None where nobody knows it here."""
        e, name = self._e, event.read(types.RolloutsScored).target
        if name is None:
            try:
                return target_of(e.params, e.started.target)
            except FaultError:
                return None
        try:
            options = target_named(e.params, name)
        except UsageError:
            return None
        said = after[0].said if after else None
        if not isinstance(said, types.SkillTransferred):
            return None
        return RefusingModel(name, options, said.model)

    def check(
        self, event: Event, row: RowScored, target: RefusingModel | Panel | None
    ) -> str | list[Fault]:
        """Return the faults of a row, or why it cannot be checked."""
        if self._lost(event, row):
            return "rollouts, or what they rest on, lost text that was erased"
        item = self._items.get(row.item)
        if item is None:
            return "items are not here as the log names them"
        if target is None:
            return "rollouts are on a target that params here do not know"
        if isinstance(target, Panel):
            name = row.target
            if name not in target.members:
                return [_of(event, "target", row, name, "one of the run's targets")]
            return self._keyed(event, row, item, target.members[name])
        return self._keyed(event, row, item, target)

    def _keyed(
        self, event: Event, row: RowScored, item: Item, target: Model
    ) -> str | list[Fault]:
        """Return the faults of a row on one model."""
        shown = [target.style, sorted(target.abilities)]
        skill = event.read(types.RolloutsScored).skill
        key = rollout_key(
            self._agent, item, skill, dict(target.identity), shown,
            0 if row.repeat is None else row.repeat,
        )  # fmt: skip
        if row.key != key:
            return [_of(event, "key", row, row.key, key)]
        try:
            return self._scored(event, row, item)
        except BROKEN as error:
            return [_of(event, "fact", row, f"{type(error).__name__} {error}", "a rollout")]
        except FaultError as error:
            return [_of(event, "fact", row, error.found, "a rollout")]

    def _lost(self, event: Event, row: RowScored) -> bool:
        """True where a text was erased from the rollout, its item or its skill."""
        erased = self.erased
        item = self._items.get(row.item)
        if event.seq in erased.events:
            return True
        if row.item in erased.items and (item is None or _marked(item.to_json())):
            return True
        keys = erased.facts & {row.key, row.judgement}
        return any((fact := self._e.facts.get(key)) is None or _marked(fact) for key in keys)

    def _scored(self, event: Event, row: RowScored, item: Item) -> str | list[Fault]:
        facts, key, skill = self._e.facts, str(row.key), event.read(types.RolloutsScored).skill
        if row.outcome is not Outcome.SCORED:
            gap = facts.get(gap_key(self._gaps, key))
            if gap is None:
                return "missing rollouts have no recorded gap"
            return [_of(event, "reason", row, row.reason, gap["reason"])] * (
                row.reason != gap["reason"]
            )
        fact = facts.get(key)
        judged = None if row.judgement is None else facts.get(row.judgement)
        if fact is None or (row.judgement is not None and judged is None):
            return "rollouts are not recorded here"
        if fact["skill"] != skill:
            return [_of(event, "skill", row, fact["skill"], skill)]
        right = self._right(row, fact, judged, item)
        if row.cost is not None:
            right["cost"] = cost_of(Trajectory.from_json(fact["trajectory"])).to_json()
        told = to_builtins(row)
        return [
            _of(event, name, row, told.get(name), right.get(name))
            for name in SCORED
            if told.get(name) != right.get(name)
        ]

    def _right(
        self,
        row: RowScored,
        fact: Mapping[str, Any],
        judged: Mapping[str, Any] | None,
        item: Item,
    ) -> dict[str, Any]:
        """Return what a row should say."""
        trajectory, judge = Trajectory.from_json(fact["trajectory"]), self._judge
        case = case_of(self._e.env, item, trajectory)
        if case is None:
            return _said(by_rule(self._e.env, item, trajectory))
        key = str(row.judgement)
        if judge is None or judged is None or not judges(judged, key, case, judge):
            return _said(Score.missing("no judgement of this answer"))
        score = score_of(judged, judge["threshold"])
        return _said(score) | {"judgement": row.judgement}


def _marked(value: Mapping[str, Any]) -> bool:
    """Return whether something was taken out of an item or a fact, as a tombstone says."""
    return MARKER in canonical(value)


def _opened(event: Event) -> Sequence[ItemDigest]:
    """Return the items that a log starts with."""
    said = event.said
    if isinstance(said, types.TestOpened):
        return said.items
    started = event.read(types.RunStarted)
    return (*started.train, *started.selection)


def _said(score: Score) -> dict[str, Any]:
    return {name: getattr(score, name) for name in ("hard", "soft", "reason")}


def _of(event: Event, what: str, row: RowScored, found: Any, right: Any) -> Fault:
    return Fault.of(event, f"{what} of item {row.item}", found, right, Level.FACTS)

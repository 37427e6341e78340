"""A run: what the method's verbs work with, and the state that passes from step to step.

`Run` holds what stays the same (params, data, the doors to models, store and history);
`State` is frozen, and each step returns the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol

from skilltrail.core.item import FEEDBACK, Item
from skilltrail.core.trajectory import Trajectory
from skilltrail.history.log.events import Event, as_recorded
from skilltrail.history.log.evolve import evolve
from skilltrail.history.log.run_state import RunState
from skilltrail.history.log.types.parts import EventPart
from skilltrail.method.gate import GateRule
from skilltrail.method.rollout import Rollout, Rollouts
from skilltrail.method.schedule import Step, plan_epoch, steps_per_epoch
from skilltrail.models.judge import reasons_in
from skilltrail.optimizers.protocol import Observation, Optimizer, StepRecord, StepView
from skilltrail.params.fields import Params


class History(Protocol):
    """Where events go: appended in order, made durable at the end of each step."""

    events: list[Event]

    @property
    def next_seq(self) -> int: ...

    def append(self, type: str, data: Mapping[str, Any]) -> Event: ...

    def flush(self) -> None: ...


@dataclass(frozen=True)
class Run:
    """All that a run needs and never changes."""

    params: Params
    train: tuple[Item, ...]
    selection: tuple[Item, ...]
    seed_skill: str
    rollouts: Rollouts
    optimizer: Optimizer
    history: History
    parent: str | None = None
    say: Callable[[StepRecord, State], None] = lambda record, state: None

    @property
    def gate_rule(self) -> GateRule:
        return gate_rule(self.params)

    @property
    def total_steps(self) -> int:
        params = self.params
        return params.epochs * steps_per_epoch(
            len(self.train), params.batch_size, params.accumulation
        )

    def plan(self, epoch: int) -> list[Step]:
        """Return the steps of one epoch (1-based)."""
        return plan_epoch(
            [item.id for item in self.train],
            seed=self.params.seed,
            epoch=epoch,
            batch_size=self.params.batch_size,
            accumulation=self.params.accumulation,
        )

    @property
    def cases(self) -> list[Item]:
        """The selection items, each on every target where there are several."""
        return self.rollouts.cases(self.selection)

    def train_items(self, ids: tuple[str, ...]) -> list[Item]:
        by_id = {item.id: item for item in self.rollouts.in_turn(self.train)}
        return [by_id[id] for id in ids]

    def follow(self, state: State) -> State:
        """Return the state after all that the history holds by now."""
        for event in self.history.events[0 if state.last is None else state.last.seq :]:
            state = evolve(state, event)
        return state

    def tell(self, said: EventPart) -> Event:
        """Record what happened as the history's next event."""
        return self.history.append(*as_recorded(said))

    def observe(self, rollout: Rollout, skill: str) -> Observation | None:
        """Return what the optimizer may see of a train rollout; None when it is missing.

        `skill` is the digest of the document that the agent was told.
        """
        if rollout.trajectory is None:
            return None
        return Observation(
            item=rollout.item,
            trajectory=rollout.trajectory,
            score=rollout.score,
            key=rollout.key,
            reference=self.rollouts.env.reference(rollout.item),
            feedback=self._said_of(rollout, rollout.trajectory),
            skill=skill,
            outcome=self.rollouts.env.outcome(rollout.item, rollout.trajectory),
        )

    def observed(self, rollouts: Iterable[Rollout], skill: str) -> tuple[Observation, ...]:
        """Return what the optimizer may see of train rollouts; those that miss are left out."""
        seen = (self.observe(rollout, skill) for rollout in rollouts)
        return tuple(one for one in seen if one is not None)

    def _said_of(self, rollout: Rollout, trajectory: Trajectory) -> str | None:
        """Return what environment, judge and people say of a train rollout to analysts."""
        item = rollout.item
        said = [self.rollouts.env.feedback(item, trajectory)]
        if self.params.judge.show_reasons and rollout.judgement is not None:
            fact = self.rollouts.store.get(rollout.judgement)
            reasons = "" if fact is None else reasons_in(fact)
            said.append(f"the judge: {reasons}" if reasons else None)
        by_people = item.extra.get(FEEDBACK)
        said.append(f"a person: {by_people}" if isinstance(by_people, str) else None)
        told = [text for text in said if text is not None]
        return "\n".join(told) if told else None


@dataclass(frozen=True)
class State(RunState):
    """What a step starts from: what the log says, and what facts add to it.

    Attributes:
        pool: latest observation of every train item rolled out so far.
        earlier: the latest observation of an item with another skill than that in `pool`.
        history: the steps so far.
    """

    rule: GateRule = GateRule()
    pool: Mapping[str, Observation] = field(default_factory=dict)
    earlier: Mapping[str, Observation] = field(default_factory=dict)
    history: tuple[StepRecord, ...] = ()

    @property
    def best_mean(self) -> Fraction | None:
        """The best skill's mean over its selection items, None where all are missing."""
        return self.rule.mean(self.best_scores)

    def with_seen(self, seen: Sequence[Observation]) -> State:
        """Return the state that has seen these train rollouts."""
        pool, earlier = dict(self.pool), dict(self.earlier)
        for one in seen:
            known = pool.get(one.item.id)
            if known is not None and known.skill != one.skill:
                earlier[one.item.id] = known
            pool[one.item.id] = one
        return replace(self, pool=pool, earlier=earlier)


def gate_rule(params: Params) -> GateRule:
    """Return the gate's settings from params; `use_gate: false` is the rule `none`."""
    gate = params.gate
    return GateRule(
        rule=gate.rule if params.use_gate else "none",
        metric=gate.metric,
        mixed_weight=gate.mixed_weight,
        alpha=gate.alpha,
        tolerance=gate.tolerance,
        prefer_shorter=gate.prefer_shorter,
        min_items=gate.min_items,
        min_coverage=gate.min_coverage,
        targets=params.targets_named,
    )


def nothing_can_win(run: Run, state: State) -> bool:
    """Return whether no later candidate of this run can be accepted.

    The current skill has the full score, so that none can be better; and none can be as good at
    a lower cost, since that does not count here or nobody is left to propose it.
    """
    params, rule = run.params, state.rule
    forced = params.has_slow_update and params.slow_update.mode == "force"
    if rule.rule == "none" or forced or rule.mean(state.scores) != 1:
        return False
    if not (rule.prefer_shorter or rule.counts_cost):
        return True
    others = params.compaction or params.has_slow_update or params.skill_aware.enabled
    return not others and run.optimizer.is_done(state.history)


def view_of(
    run: Run,
    state: State,
    step: Step,
    budget: int | None,
    observations: tuple[Observation, ...],
) -> StepView:
    """Return what the optimizer may know at this step."""
    return StepView(
        **step.where,
        seed=run.params.seed,
        skill=state.skill,
        budget=budget,
        observations=observations,
        pool=state.pool,
        history=state.history,
        meta_skill=state.meta_skill,
        max_skill_tokens=run.params.max_skill_tokens if run.params.max_skill_tokens else None,
        success_threshold=run.params.reflect.success_threshold,
        update_mode=run.params.update_mode,
        frozen=run.params.skill.frozen,
        scripts=run.params.skill.scripts,
        references=run.params.skill.makes_references,
        earlier=state.earlier,
        batches=step.batches,
    )

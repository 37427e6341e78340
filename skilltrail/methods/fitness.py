"""Fitness: what documents score on one sample of train items, for methods that go by it.

The sample is drawn once a run, so that all documents are compared on the same items. A method's
own score may be shown to the optimizer, for its items are train items; whether a document
becomes a version, the gate decides on the selection split. It is asked only about those whose
fitness is above that of all before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from skilltrail.core.canon import text_digest
from skilltrail.core.errors import IncompleteError
from skilltrail.core.item import Item
from skilltrail.core.score import exact_mean
from skilltrail.history.log.types.parts import Purpose, Sample
from skilltrail.method.loop import end_step
from skilltrail.method.rollout import Rollout, scored
from skilltrail.method.run import Run, State
from skilltrail.method.schedule import Step
from skilltrail.methods.draws import Draws
from skilltrail.methods.steps import CandidateTried, PoolMember, judge
from skilltrail.optimizers.protocol import Observation

SAMPLE = "sample/1"


@dataclass(frozen=True)
class Scored:
    """A document with its fitness, and its rollouts as the optimizer may see them."""

    text: str
    fitness: Fraction
    seen: tuple[Observation, ...] = ()
    version: int | None = None

    def member(self, weight: int | None = None) -> PoolMember:
        return PoolMember(self.text, self.version, self.fitness, weight)


def drawn(draws: Draws, ids: Sequence[str], size: int, step: int = 0) -> list[str]:
    """Return the ids of a sample; step 0 = that of the whole run."""
    return draws.sample(ids, size, step, "fitness")


def sample(run: Run, draws: Draws, size: int) -> list[Item]:
    """Return the train items that give fitness in this run."""
    return run.train_items(tuple(drawn(draws, [item.id for item in run.train], size)))


async def measure(
    run: Run, state: State, items: Sequence[Item], text: str, step: Step | None = None
) -> tuple[State, Scored]:
    """Roll out a document on the sample and record what it scored; None = before any step."""
    where = {} if step is None else step.where
    rollouts, fitness = await roll_out_sample(run, items, text, **where)
    seen = run.observed(rollouts, text_digest(text))
    return run.follow(state).with_seen(seen), Scored(text, fitness, seen)


async def roll_out_sample(
    run: Run, items: Sequence[Item], text: str, **where: int | str
) -> tuple[list[Rollout], Fraction]:
    """Roll out a document on drawn items and record it; return the rollouts and their mean.

    Raises:
        IncompleteError: nothing of it was scored (`gate.min_coverage: 0` lets that pass).
    """
    rollouts = await run.rollouts.all(items, text)
    values = (run.gate_rule.value(rollout.score) for rollout in rollouts)
    mean = exact_mean(value for value in values if value is not None)
    if mean is None:
        raise IncompleteError(
            "a document's fitness",
            f"none of the {len(rollouts)} rollouts of its sample was scored: "
            f"{rollouts[0].score.reason}",
            "Nothing scored is no score, and a method that goes by scores needs one: fix the "
            "cause, `skilltrail store retry-missing`, and run the same command again",
        )
    chosen = Sample(rule=SAMPLE, size=len(items))
    run.tell(scored(rollouts, text, Purpose.FITNESS, sample=chosen, **where))
    return rollouts, mean


async def try_out(
    run: Run,
    state: State,
    step: Step,
    tried: CandidateTried,
    items: Sequence[Item],
    known: Sequence[Scored],
) -> tuple[State, Scored | None]:
    """Measure a candidate, ask the gate about the fittest so far, and end the step.

    Returns:
        The state, and the document with its fitness; None when it went no further.
    """
    text = tried.built.candidate.text
    if not tried.built.usable:
        return end_step(run, state, tried.record, tried.built.reason), None
    if any(one.text == text for one in known):
        return end_step(run, state, tried.record, "a text that was tried before"), None
    state, found = await measure(run, state, items, text, step)
    best = max(one.fitness for one in known)
    if found.fitness <= best:
        record = replace(tried.record, verdict="measured")
        reason = f"fitness {float(found.fitness):.3f}, the best has {float(best):.3f}"
        return end_step(run, state, record, reason), found
    before = state.version
    state = await judge(run, state, tried)
    return state, replace(found, version=None if state.version == before else state.version)

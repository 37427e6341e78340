"""Bootstrapped demonstrations, found by random search.

Source: DSPy (arXiv 2310.03714), `BootstrapFewShotWithRandomSearch`.

    measure the seed document
    labels only: the seed with `max_labelled` random train items, solved
    for each of 1 + `candidates` sets (the first in the split's own order, others shuffled):
        size = `max_bootstrapped`, or at random from 1 to it
        demonstrations = the first `size` items that the teacher solves
                         + random other train items with their answers, up to `max_labelled`
        candidate = seed + demonstrations
        keep it if it beats the best so far on the selection split

Departures: the teacher is the labels-only document throughout, so that its rollouts serve all
sets (DSPy gives each set a teacher of its own); an item that stands in the teacher's own
demonstrations is not put to it (DSPy takes it out of them for that question). The gate stops
early, accepts an equal mean in fewer tokens, and forms means exactly.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from skilltrail.core.item import Item
from skilltrail.history.log.types.parts import Purpose
from skilltrail.method.rollout import Rollout, scored
from skilltrail.method.run import Run, State
from skilltrail.method.schedule import Step
from skilltrail.methods.demonstrations import as_patch, labelled, solved
from skilltrail.methods.draws import Draws
from skilltrail.methods.steps import CandidateTried, build, choose_parents, judge, seed_of
from skilltrail.skill.edit import Patch


@dataclass(frozen=True)
class Teacher:
    """Who bootstraps: a document, and the train items that stand in it."""

    text: str
    known: frozenset[str]

    @staticmethod
    def of(tried: CandidateTried, labels: Patch) -> Teacher:
        """Return the teacher whose document was made of the seed and these demonstrations."""
        items = frozenset(id for edit in labels.edits for id in edit.items)
        return Teacher(tried.built.candidate.text, items)


async def bootstrap(
    run: Run, state: State, draws: Draws | None = None
) -> AsyncGenerator[State, None]:
    """Yield the state after each set of demonstrations."""
    settings = run.params.methods.bootstrap
    draws = Draws(run.params.seed) if draws is None else draws
    sets = Sets(run, draws, settings.max_bootstrapped, settings.max_labelled)
    step = Step(1, 1, ())
    choose_parents(run, step, [seed_of(run)], "seed/1", "labels only")
    labels = sets.labels_only()
    tried = await build(run, state, step, run.seed_skill, labels)
    teacher = Teacher.of(tried, labels)
    state = await judge(run, state, tried)
    yield state
    for number in range(1 + settings.candidates):
        step = Step(1, 2 + number, ())
        choose_parents(run, step, [seed_of(run)], "seed/1", "")
        _, patch = await sets.bootstrapped(teacher, number, step)
        tried = await build(run, state, step, run.seed_skill, patch)
        state = await judge(run, state, tried)
        yield state


@dataclass(frozen=True)
class Sets:
    """Makes sets of demonstrations, with at most so many that a rollout solved, and in all."""

    run: Run
    draws: Draws
    max_bootstrapped: int
    max_labelled: int

    def labels_only(self) -> Patch:
        """Return the demonstrations of the labels-only document."""
        known = self._labels_of(self.run.train)
        ids = self.draws.sample(list(known), self.max_labelled, 1, "labels")
        return as_patch([(id, known[id]) for id in ids], "labels only")

    async def bootstrapped(
        self, teacher: Teacher, number: int, step: Step
    ) -> tuple[list[Rollout], Patch]:
        """Return the teacher's rollouts for set `number`, and the set: what they solved, filled
        up with labels."""
        order = self._in_turn(number, step)
        rolled, shown = await self._solved(teacher, order, self._size(number, step), step)
        rest = self._labels_of([item for item in order if item.id not in dict(shown)])
        count = max(0, self.max_labelled - len(shown))
        others = self.draws.sample(list(rest), count, step.step, "labels")
        examples = [*shown, *((id, rest[id]) for id in others)]
        words = (
            f"{len(shown)} of {len(rolled)} that the teacher was asked, {len(others)} labels"
        )
        return rolled, as_patch(examples, words, [rollout.item.id for rollout in rolled])

    def _labels_of(self, items: Sequence[Item]) -> dict[str, str]:
        """Return the worked example of each item that has one."""
        found = {item.id: labelled(self.run.rollouts.env, item) for item in items}
        return {id: text for id, text in found.items() if text is not None}

    def _in_turn(self, number: int, step: Step) -> list[Item]:
        """Return the train items in the order of a set: the first one's is the split's."""
        ids = [item.id for item in self.run.train]
        order = self.draws.order(ids, step.step, "shuffle") if number else ids
        return self.run.train_items(tuple(order))

    def _size(self, number: int, step: Step) -> int:
        """Return how many demonstrations a set bootstraps at most."""
        most = self.max_bootstrapped
        return 1 + self.draws.below(most, step.step, "size") if number and most else most

    async def _solved(
        self, teacher: Teacher, order: Sequence[Item], size: int, step: Step
    ) -> tuple[list[Rollout], list[tuple[str, str]]]:
        """Put items to the teacher until `size` are solved; return its rollouts and what they
        show. It stops in the order of the items, whatever order replies arrive in."""
        run = self.run
        asked = [item for item in order if item.id not in teacher.known] if size else []
        rolled: list[Rollout] = []
        shown: list[tuple[str, str]] = []
        async with aclosing(run.rollouts.in_order(asked, teacher.text)) as stream:
            async for rollout in stream:
                rolled.append(rollout)
                text = demonstration(run, rollout)
                if text is not None:
                    shown.append((rollout.item.id, text))
                if len(shown) == size:
                    break
        run.rollouts.require(rolled)
        if rolled:
            run.tell(scored(rolled, teacher.text, Purpose.DEMONSTRATIONS, **step.where))
        return rolled, shown


def demonstration(run: Run, rollout: Rollout) -> str | None:
    """Return what a rollout shows, where it succeeded."""
    hard, least = rollout.score.hard, run.params.reflect.success_threshold
    if rollout.trajectory is None or hard is None or hard < least:
        return None
    return solved(run.rollouts.env, rollout.item, rollout.trajectory)

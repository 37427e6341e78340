"""OPRO: a model writes documents from a list of past ones with their scores.

Source: Large Language Models as Optimizers (arXiv 2309.03409), section 4 and appendix.

    score the seed document on a sample of train items
    for each of `rounds`:
        show the model the best `shown` documents so far, lowest score first, and a few runs
        it writes `proposals` documents
        score each on the sample; all go into the list

Departures. The result is not the document of the highest train score: one whose score is above
all before is put to the gate, and is a version where the selection split agrees. Tasks are
shown as runs of the best document rather than as pairs of question and answer. A document that
was tried before, or breaks a protected region, is not scored. The model is asked by its own
default temperature (the paper: 1.0), each proposal as a sample of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from skilltrail.core.item import Item
from skilltrail.method.loop import end_step, first_record
from skilltrail.method.reflect import heard
from skilltrail.method.run import Run, State
from skilltrail.method.schedule import Step
from skilltrail.methods.draws import Draws
from skilltrail.methods.fitness import Scored, measure, sample, try_out
from skilltrail.methods.minibatch import consumed
from skilltrail.methods.steps import choose_parents, question, whole
from skilltrail.optimizers.protocol import Answer, Brief, Observation

RANKED = "ranked/1"


@dataclass(frozen=True)
class Round:
    """What a round goes by: the scored items, the documents shown, and the runs."""

    items: Sequence[Item]
    ranked: Sequence[Scored]
    shown: Sequence[Observation]

    @property
    def best(self) -> Scored:
        return self.ranked[-1]


async def opro(
    run: Run, state: State, draws: Draws | None = None
) -> AsyncGenerator[State, None]:
    """Yield the state after each document."""
    settings = run.params.methods.opro
    draws = Draws(run.params.seed) if draws is None else draws
    items = sample(run, draws, settings.sample)
    state, seed = await measure(run, state, items, run.seed_skill)
    known = [Scored(seed.text, seed.fitness, seed.seen, 0)]
    number = 0
    for epoch in range(1, 1 + settings.rounds):
        ranked = trajectory(known, settings.shown)
        shown = exemplars(ranked[-1], draws, settings.exemplars, epoch)
        asked = Round(items, ranked, shown)
        for answer in await proposals(run, state, Step(epoch, number + 1, ()), asked):
            number += 1
            step = Step(epoch, number, ())
            state, found = await propose(run, state, step, asked, answer, known)
            known += [] if found is None else [found]
            yield state


def trajectory(known: Sequence[Scored], most: int) -> list[Scored]:
    """Return the best documents, lowest score first; of equal ones the newer stands later."""
    return sorted(known, key=lambda one: one.fitness)[-most:]


def exemplars(best: Scored, draws: Draws, most: int, epoch: int) -> list[Observation]:
    """Return runs of the best document, drawn anew for each round."""
    by_id = {one.item.id: one for one in best.seen}
    return [by_id[id] for id in draws.sample(list(by_id), most, epoch, "exemplars")]


async def proposals(run: Run, state: State, step: Step, asked: Round) -> list[Answer]:
    """Return what the model writes in a round, all in answer to one question."""
    texts = {
        f"document {place}, score {100 * float(one.fitness):.1f}": one.text
        for place, one in enumerate(asked.ranked, start=1)
    }
    # No two of a run are one sample: a round whose list is that of the round before would get
    # the same documents again, and so would all rounds after it.
    first, count = step.step - 1, run.params.methods.opro.proposals
    briefs = [Brief("opro", texts=texts, sample=first + n) for n in range(count)]
    told = (question(run, state, step, asked.best.text, one, asked.shown) for one in briefs)
    return list(await asyncio.gather(*told))


async def propose(
    run: Run,
    state: State,
    step: Step,
    asked: Round,
    answer: Answer,
    known: Sequence[Scored],
) -> tuple[State, Scored | None]:
    """Record one proposal of a round and score it."""
    best, pool = asked.best, [one.member() for one in asked.ranked]
    said = f"the best of {len(pool)} that were shown"
    choose_parents(run, step, [best.member()], RANKED, said, pool, **consumed(run.gate_rule))
    heard(run, answer, **step.where)
    if answer.value is None:
        return end_step(run, state, first_record(step, []), answer.reason), None
    tried = await whole(run, state, step, best.text, answer, asked.shown)
    return await try_out(run, state, step, tried, asked.items, known)

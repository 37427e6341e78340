"""MIPROv2: proposed documents and sets of demonstrations, put together by a search.

Source: DSPy's MIPROv2 (arXiv 2406.11695), and Optuna's TPE sampler (`tpe.py`).

    sets of demonstrations: none, labels only, then bootstrapped ones (as `bootstrap` has them)
    documents: the seed, and proposals, each written from a description of the data, a set of
        demonstrations and a tip
    the score of the seed document on the selection split is the first trial
    for each of `trials`:
        the sampler chooses a document and a set; score the two together on a minibatch of the
        selection split
        each `full_every` trials, and after the last: measure the pair of the highest mean that
        was not measured yet on the whole split; it is a version if it beats the best so far
    the result is the best of those measured in full

Departures. The seed document and the runs that the teacher made stand in for the program's code
and the batches of raw data from which the package describes both. The gate says whether a pair
that was measured in full becomes a version: like the package it asks for more than the best so
far, but an equal mean in fewer tokens is more. A proposal that cannot be used, or repeats
another, is no choice of the search; a pair whose document cannot be built scores 0.
Demonstrations are added to the document as text. Scores go from 0 to 1, not to 100.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from skilltrail.core.canon import text_digest
from skilltrail.method.loop import end_step, first_record
from skilltrail.method.reflect import heard
from skilltrail.method.rollout import Rollout
from skilltrail.method.run import Run, State
from skilltrail.method.schedule import Step
from skilltrail.methods.bootstrap import Sets, Teacher
from skilltrail.methods.draws import Draws
from skilltrail.methods.fitness import drawn, roll_out_sample
from skilltrail.methods.steps import (
    CandidateTried,
    PoolMember,
    build,
    choose_parents,
    instruct,
    judge,
    question,
    seed_of,
    select_all,
    whole,
)
from skilltrail.methods.tpe import Choice, Search, in_full_after
from skilltrail.optimizers.protocol import Brief, Observation
from skilltrail.skill.edit import Patch

KEPT, SHOWN = "kept for the search", 10
TIPS = (
    "as plain as you can make it",
    "exact about the form of the answer",
    "a person who knows this field well is speaking",
    "one surprising but useful idea",
    "short: nothing that could be left out",
    "what to do when in doubt",
)


@dataclass(frozen=True)
class Space:
    """What the search chooses from: documents, each with the patch that wrote it, and sets of
    demonstrations; the seed and none stand first."""

    documents: Sequence[tuple[str, Patch | None]]
    sets: Sequence[Patch | None]


async def mipro(
    run: Run, state: State, draws: Draws | None = None
) -> AsyncGenerator[State, None]:
    """Yield the state after each set, proposal, trial and measurement in full."""
    settings = run.params.methods.mipro
    draws = Draws(run.params.seed) if draws is None else draws
    sets, seen, at = list[Patch](), list[Observation](), 0
    async for after, patch, shown in demonstrations(run, state, draws):
        state, at = after, at + 1
        sets += [patch] if patch.edits else []
        seen += shown
        yield state
    documents: list[tuple[str, Patch | None]] = [(run.seed_skill, None)]
    told = await describe(run, state, Step(1, at + 1, ()), seen)
    for number in range(1, settings.proposals):
        at += 1
        examples = [None, *sets][number % (1 + len(sets))]
        state, found = await propose(run, state, draws, Step(1, at, ()), (told, examples))
        known = [text for text, _ in documents]
        documents += [found] if found is not None and found[0] not in known else []
        yield state
    async for after in search(run, state, draws, Space(documents, [None, *sets]), at):
        yield after


async def demonstrations(
    run: Run, state: State, draws: Draws
) -> AsyncGenerator[tuple[State, Patch, tuple[Observation, ...]], None]:
    """Yield each set as a recorded patch, with the runs that the teacher made for it.

    The first is labels only, the second in the split's own order, others are shuffled.
    """
    settings = run.params.methods.mipro
    sets = Sets(run, draws, settings.max_bootstrapped, settings.max_labelled)
    teacher = None
    for number in range(1, settings.sets):
        step = Step(1, number, ())
        choose_parents(run, step, [seed_of(run)], "seed/1", "")
        rolled: list[Rollout] = []
        patch = sets.labels_only()
        if teacher is not None:
            rolled, patch = await sets.bootstrapped(teacher, number - 2, step)
            state = run.follow(state)
        tried = await build(run, state, step, run.seed_skill, patch)
        if teacher is None:
            teacher = Teacher.of(tried, patch)
        state = end_step(run, state, tried.record, KEPT)
        yield state, tried.patch, run.observed(rolled, text_digest(teacher.text))


async def describe(run: Run, state: State, step: Step, seen: Sequence[Observation]) -> str:
    """Return the model's description of the data, "" where no run shows any."""
    if not seen or run.params.methods.mipro.proposals == 1:
        return ""
    some = list({one.item.id: one for one in seen}.values())[:SHOWN]
    brief = Brief("describe_data", wants="text")
    answer = heard(
        run, await question(run, state, step, run.seed_skill, brief, some), **step.where
    )
    told = "" if answer.value is None else str(answer.value)
    instruct(run, step, "describe", told, answer.reply)
    return told


async def propose(
    run: Run, state: State, draws: Draws, step: Step, material: tuple[str, Patch | None]
) -> tuple[State, tuple[str, Patch] | None]:
    """Ask for one document; return it with its patch, or None.

    `material` is the description of the data, and the demonstrations that are shown.
    """
    told, shown = material
    choose_parents(run, step, [seed_of(run)], "seed/1", "")
    tip = TIPS[draws.below(len(TIPS), step.step, "tip")]
    instruct(run, step, "tip", tip)
    texts = {
        "what the tasks are": told,
        "the document of now": run.seed_skill,
        "examples": "" if shown is None else "\n\n".join(e.content for e in shown.edits),
    }
    brief = Brief("propose_document", task=tip, texts=texts, sample=step.step)
    answer = heard(run, await question(run, state, step, run.seed_skill, brief), **step.where)
    if answer.value is None:
        return end_step(run, state, first_record(step, []), answer.reason), None
    tried = await whole(run, state, step, run.seed_skill, answer)
    usable = tried.built.usable
    state = end_step(run, state, tried.record, KEPT if usable else tried.built.reason)
    return state, (tried.built.candidate.text, tried.patch) if usable else None


async def search(
    run: Run, state: State, draws: Draws, space: Space, at: int
) -> AsyncGenerator[State, None]:
    """Yield the state after each trial and each measurement in full; `at` = steps so far."""
    settings, first = run.params.methods.mipro, state.best_mean
    sizes = len(space.documents), len(space.sets)
    tpe = Search(sizes, run.params.seed, Fraction(0) if first is None else first)
    plan = in_full_after(settings.trials, settings.full_every)
    for number, full in enumerate(plan, start=1):
        trial, choice = tpe.ask()
        at += 1
        pair = await put_together(run, state, Step(1 + number, at, ()), space, choice, tpe.tag)
        state, score = await measure(run, state, draws, pair, settings.minibatch)
        tpe.scored(choice, score)
        yield (state := end(run, state, pair, f"{float(score):.3f} on a minibatch"))
        best = tpe.next_in_full() if full else None
        if best is not None:
            at += 1
            pair = await put_together(
                run, state, Step(1 + number, at, ()), space, best, tpe.tag
            )
            state, in_full = await measure(run, state, draws, pair, len(run.selection))
            tpe.measured(best, in_full)
            if pair.tried is not None and pair.tried.built.usable:
                yield (state := await judge(run, state, pair.tried))
            else:
                yield (state := end(run, state, pair, f"{float(in_full):.3f} in full"))
        tpe.tell(trial, score)


@dataclass(frozen=True)
class TrialPair:
    """A document with demonstrations, on trial; `tried` None = the seed document itself."""

    step: Step
    text: str
    tried: CandidateTried | None

    @property
    def faulty(self) -> bool:
        return self.tried is not None and bool(self.tried.built.faults)


async def put_together(
    run: Run, state: State, step: Step, space: Space, choice: Choice, tag: str
) -> TrialPair:
    """Record a document with demonstrations as a candidate: the proposal written on the seed,
    or the demonstrations added to the document."""
    (text, written), shown = space.documents[choice[0]], space.sets[choice[1]]
    of_seed = written is None or shown is None
    parent = seed_of(run) if of_seed else PoolMember(text)
    choose_parents(run, step, [parent], tag, f"document {choice[0]}, set {choice[1]}")
    patch = written if shown is None else shown
    if patch is None:
        return TrialPair(step, text, None)
    tried = await select_all(run, state, step, parent.text, patch, [])
    return TrialPair(step, tried.built.candidate.text, tried)


async def measure(
    run: Run, state: State, draws: Draws, pair: TrialPair, size: int
) -> tuple[State, Fraction]:
    """Score a pair on selection items drawn for the step; one that nobody can use scores 0."""
    if pair.faulty:
        return state, Fraction(0)
    step, by_id = pair.step, {item.id: item for item in run.selection}
    ids = drawn(draws, list(by_id), size, step.step)
    where = step.where | {"split": "selection"}
    _, score = await roll_out_sample(run, [by_id[id] for id in ids], pair.text, **where)
    return run.follow(state), score


def end(run: Run, state: State, pair: TrialPair, said: str) -> State:
    """End the step of a pair that no gate was asked about."""
    if pair.tried is None:
        return end_step(run, state, first_record(pair.step, []), f"the seed: {said}")
    if pair.faulty:
        return end_step(run, state, pair.tried.record, pair.tried.built.reason)
    return end_step(run, state, replace(pair.tried.record, verdict="measured"), said)

"""PromptBreeder: a population of documents, and of the instructions by which they change.

Source: PromptBreeder (arXiv 2309.16797), section 3.

    each of `population` members: a document written from an instruction and a way of thinking
    for each of `generations`, all members in pairs drawn by lot:
        binary tournament: the fitter of two has a child in the place of the other
        the child, by one operator drawn by lot:
            zero_order     written anew, from a way of thinking
            first_order    the document changed by the member's instruction
            distribution   one more of a list of unlike documents, in random order
            ranked         one more of that list, in order of fitness
            lineage        one more after the documents that were once the fittest here
            hyper_zero     first a new instruction from a way of thinking, then first_order
            hyper_first    first the instruction improved, then first_order
            working        worked out backwards from runs that succeeded (Lamarckian)
        or, with chance `crossover`, another's document, drawn by fitness

Departures. Fitness is the gate metric on one sample of train items for the whole run (the paper
draws a batch each time). A member holds one document, not two prompts in a row, and no few-shot
context apart from it, so contexts are not shuffled. The problem's description is the seed
document and what the environment says of itself. A crossover asks no question (the paper
throws the child's text away). Ranked lists are told in their true order. Unlike means less than
0.95 alike by difflib (the paper: BERT). What cannot be used leaves the loser in its place.
Documents whose fitness is above all before are put to the gate on the selection split; the
best version there is the result. All instructions and ways of thinking are our own words.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from skilltrail.core.item import Item
from skilltrail.method.loop import end_step, first_record
from skilltrail.method.reflect import heard
from skilltrail.method.run import Run, State
from skilltrail.method.schedule import Step
from skilltrail.methods.breeding_words import HYPER, INSTRUCTIONS, TASKS, THOUGHTS
from skilltrail.methods.draws import Draws
from skilltrail.methods.fitness import Scored, measure, sample, try_out
from skilltrail.methods.minibatch import consumed
from skilltrail.methods.steps import choose_parents, instruct, question, whole
from skilltrail.optimizers.protocol import Brief, Observation
from skilltrail.skill.alignment import comparable

TOURNAMENT, CROSSOVER = "tournament/1", "crossover/1"
SEED = "seed/1"
ALIKE = 0.95
OPERATORS = (
    "zero_order",
    "first_order",
    "distribution",
    "ranked",
    "lineage",
    "hyper_zero",
    "hyper_first",
    "working",
)


@dataclass(frozen=True)
class Unit:
    """A member: its document, the instruction that changes it, and the documents of its place
    that were the fittest of all when they were born, oldest first."""

    document: Scored
    instruction: str
    elites: tuple[str, ...] = ()


@dataclass(frozen=True)
class World:
    """What does not change from step to step."""

    run: Run
    draws: Draws
    items: Sequence[Item]
    seed: Scored


async def promptbreeder(
    run: Run, state: State, draws: Draws | None = None
) -> AsyncGenerator[State, None]:
    """Yield the state after each birth."""
    settings = run.params.methods.promptbreeder
    draws = Draws(run.params.seed) if draws is None else draws
    items = sample(run, draws, settings.sample)
    state, found = await measure(run, state, items, run.seed_skill)
    world, units = World(run, draws, items, replace(found, version=0)), list[Unit]()
    for number in range(1, 1 + settings.population):
        state, unit = await begin(world, state, Step(1, number, ()), units)
        units.append(unit)
        yield state
    for generation in range(1, 1 + settings.generations):
        for a, b in pairs(draws, len(units), generation):
            number += 1
            step = Step(1 + generation, number, ())
            state, place, child = await compete(world, state, step, units, (a, b))
            units[place] = child
            yield state


def pairs(draws: Draws, members: int, generation: int) -> list[tuple[int, int]]:
    """Return who meets whom in a generation; of an odd number one stays out."""
    order = draws.order([str(place) for place in range(members)], generation, "pairs")
    return [(int(a), int(b)) for a, b in zip(order[::2], order[1::2], strict=False)]


async def begin(
    world: World, state: State, step: Step, units: Sequence[Unit]
) -> tuple[State, Unit]:
    """Return a first member; one whose document cannot be used begins with the seed's."""
    draws, at, seed = world.draws, step.step, world.seed
    thought = THOUGHTS[draws.below(len(THOUGHTS), at, "thought")]
    instruction = INSTRUCTIONS[draws.below(len(INSTRUCTIONS), at, "instruction")]
    choose_parents(world.run, step, [seed.member()], SEED, "")
    texts = {"the document of now": seed.text, "instruction": instruction, "thought": thought}
    brief = Brief("breed_document", task=TASKS["begin"], texts=texts)
    instruct(world.run, step, "begin", f"{thought} {instruction}")
    known = [seed, *(unit.document for unit in units)]
    state, found = await born(world, state, step, seed, brief, (), known)
    return state, unit_of(seed if found is None else found, instruction, (), units)


async def compete(
    world: World, state: State, step: Step, units: Sequence[Unit], pair: tuple[int, int]
) -> tuple[State, int, Unit]:
    """Let two members meet; return the loser's place and who takes it."""
    a, b = pair
    winner, loser = (a, b) if units[a].document.fitness >= units[b].document.fitness else (b, a)
    parent = units[winner]
    chance = world.run.params.methods.promptbreeder.crossover
    if world.draws.below(10**6, step.step, "crossover") < chance * 10**6:
        return cross(world, state, step, units, (winner, loser))
    pool = [units[at].document.member() for at in pair]
    metric = consumed(world.run.gate_rule)
    first = parent.document.member()
    choose_parents(world.run, step, [first], TOURNAMENT, "the fitter of two", pool, **metric)
    operator = OPERATORS[world.draws.below(len(OPERATORS), step.step, "operator")]
    instruction = await instructed(world, state, step, parent, operator)
    led = replace(parent, instruction=instruction)
    brief, seen = asked_for(world, step, operator, led, units)
    known = [world.seed, *(unit.document for unit in units)]
    state, found = await born(world, state, step, parent.document, brief, seen, known)
    if found is None:
        return state, loser, units[loser]
    return state, loser, unit_of(found, instruction, units[loser].elites, units)


def cross(
    world: World, state: State, step: Step, units: Sequence[Unit], pair: tuple[int, int]
) -> tuple[State, int, Unit]:
    """Put another member's document, drawn by fitness, in the loser's place."""
    winner, loser = pair
    lots = [1 + int(unit.document.fitness * 10**6) for unit in units]
    lots[loser] = 0
    other = units[world.draws.weighted(lots, step.step, "other")].document
    pool = [unit.document.member(lot) for unit, lot in zip(units, lots, strict=True)]
    said, metric = "drawn by fitness", consumed(world.run.gate_rule)
    choose_parents(world.run, step, [other.member()], CROSSOVER, said, pool, **metric)
    reason = "another's document takes the loser's place"
    state = end_step(world.run, state, first_record(step, []), reason)
    return state, loser, Unit(other, units[winner].instruction, units[loser].elites)


async def instructed(
    world: World, state: State, step: Step, parent: Unit, operator: str
) -> str:
    """Return the instruction that the child goes by, a new one where the operator says so."""
    thought = THOUGHTS[world.draws.below(len(THOUGHTS), step.step, "thought")]
    if operator not in HYPER:
        told = parent.instruction if operator == "first_order" else thought
        instruct(world.run, step, operator, told if operator != "working" else TASKS[operator])
        return parent.instruction
    material = thought if operator == "hyper_zero" else parent.instruction
    name = "thought" if operator == "hyper_zero" else "instruction"
    brief = Brief("breed_instruction", "text", HYPER[operator], {name: material})
    answer = await question(world.run, state, step, parent.document.text, brief)
    heard(world.run, answer, **step.where)
    if answer.value is None:
        instruct(world.run, step, operator, parent.instruction)
        return parent.instruction
    instruct(world.run, step, operator, answer.value, answer.reply)
    return str(answer.value)


def asked_for(
    world: World, step: Step, operator: str, parent: Unit, units: Sequence[Unit]
) -> tuple[Brief, Sequence[Observation]]:
    """Return the question for a child, and the runs that it shows."""
    draws, text = world.draws, parent.document.text
    task = TASKS["first_order"] if operator in HYPER else TASKS[operator]
    brief = Brief("breed_document", task=task, sample=step.step)
    if operator == "zero_order":
        thought = THOUGHTS[draws.below(len(THOUGHTS), step.step, "thought")]
        texts = {"what the tasks are": world.run.seed_skill, "thought": thought}
        return replace(brief, texts=texts), ()
    if operator in ("distribution", "ranked"):
        listed = unlike([unit.document for unit in units])
        if operator == "ranked":
            listed = sorted(listed, key=lambda one: one.fitness)
        else:
            order = draws.order([str(n) for n in range(len(listed))], step.step, "list")
            listed = [listed[int(n)] for n in order]
        return replace(brief, texts=numbered([one.text for one in listed])), ()
    if operator == "lineage":
        return replace(brief, texts=numbered([*parent.elites, text])), ()
    if operator == "working":
        solved = [one for one in parent.document.seen if one.score.hard == 1]
        ids = draws.sample([one.item.id for one in solved], 3, step.step, "working")
        shown = [one for one in solved if one.item.id in ids]
        return replace(brief, texts={"the document of now": text}), shown
    return replace(brief, texts={"document": text, "instruction": parent.instruction}), ()


async def born(
    world: World,
    state: State,
    step: Step,
    parent: Scored,
    brief: Brief,
    seen: Sequence[Observation],
    known: Sequence[Scored],
) -> tuple[State, Scored | None]:
    """Ask for a document, record it and measure it; None where it cannot be used."""
    answer = await question(world.run, state, step, parent.text, brief, seen)
    heard(world.run, answer, **step.where)
    if answer.value is None:
        return end_step(world.run, state, first_record(step, []), answer.reason), None
    tried = await whole(world.run, state, step, parent.text, answer, seen)
    return await try_out(world.run, state, step, tried, world.items, known)


def unit_of(
    found: Scored, instruction: str, elites: tuple[str, ...], units: Sequence[Unit]
) -> Unit:
    """Return a member; where none is fitter, its document joins the elites of its place."""
    if all(found.fitness >= unit.document.fitness for unit in units):
        elites = (*elites, found.text)
    return Unit(found, instruction, elites)


def unlike(documents: Sequence[Scored]) -> list[Scored]:
    """Return the documents that are unlike all before them."""
    kept: list[Scored] = []
    for one in documents:
        if not any(_likeness(one.text, other.text) > ALIKE for other in kept):
            kept.append(one)
    return kept


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, *comparable(one, other)).ratio()


def numbered(texts: Sequence[str]) -> dict[str, str]:
    """Return texts by the names under which they are shown."""
    return {f"document {place}": text for place, text in enumerate(texts, start=1)}

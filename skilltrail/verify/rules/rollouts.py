"""Checks on what was rolled out: which items, under which skill, with which means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.score import Outcome, mean
from skilltrail.core.targets import case_of
from skilltrail.history.log import types
from skilltrail.history.log.events import Event, read_all
from skilltrail.history.log.run_state import RunState
from skilltrail.history.log.types.parts import Batch, Purpose, RowScored
from skilltrail.method.schedule import plan_epoch
from skilltrail.methods.draws import Draws
from skilltrail.methods.fitness import SAMPLE, drawn
from skilltrail.verify.result import Fault, Tags, differing
from skilltrail.verify.rules.settings import cases

# Whose skill rollouts of a purpose are made with.
SKILL_OF = {
    Purpose.BASELINE: "parent",
    Purpose.TRAIN: "parent",
    Purpose.SELECTION: "candidate",
    Purpose.MINIBATCH: "candidate",
}


def check_start(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    said = event.read(types.RunStarted)
    if event.seq != 1:
        yield Fault.of(event, "place", event.seq, "the first event")
    splits = {
        name: [item.item for item in items]
        for name, items in (("train", said.train), ("selection", said.selection))
    }
    for split, ids in splits.items():
        twice = (
            sorted({id for id in ids if ids.count(id) > 1}) if len(set(ids)) < len(ids) else []
        )
        if twice:
            yield Fault.of(event, split, f"{twice[:3]} twice", "each item once")
    shared = sorted(set(splits["train"]) & set(splits["selection"]))
    if shared:
        yield Fault.of(event, "splits", f"{shared[:3]} in both", "disjoint splits")


def check_scores(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """Rows, coverage and means agree with each other."""
    rows = event.read(types.RolloutsScored).items
    for row in rows:
        scored = row.outcome is Outcome.SCORED
        if (row.hard is not None) != scored or (row.soft is not None) != scored:
            yield Fault.of(event, f"item {row.item}", row.outcome, "scores iff scored")
    keys = {(case_of(row), 0 if row.repeat is None else row.repeat) for row in rows}
    if len(keys) < len(rows):
        yield Fault.of(event, "items", "an item twice", "each item once")
    yield from differing(event, mean_fields(rows))


def mean_fields(rows: Sequence[RowScored]) -> dict[str, Any]:
    """Return the coverage and the means that follow from rows."""
    scored = sum(row.outcome is Outcome.SCORED for row in rows)
    return {
        "coverage": {"scored": scored, "asked": len(rows)},
        "mean_hard": mean(row.hard for row in rows),
        "mean_soft": mean(row.soft for row in rows),
    }


def check_members(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """The right items were rolled out with the right skill."""
    said = event.read(types.RolloutsScored)
    purpose = said.purpose
    if state.start is None:
        return
    if state.broken is None and purpose in SKILL_OF:
        text = state.candidate if SKILL_OF[purpose] == "candidate" else state.parent
        right = None if text is None else text_digest(text)
        if said.skill != right:
            yield Fault.of(event, "skill", said.skill, right)
    rows = [row for row in said.items if not row.repeat]
    items = [row.item for row in rows]
    if purpose is Purpose.BASELINE and [case_of(row) for row in rows] != cases(state):
        yield Fault.of(event, "items", items, cases(state))
    if purpose in (Purpose.TRAIN, Purpose.SLOW_UPDATE):
        yield from _check_turns(event, state, rows)
    if purpose is Purpose.FITNESS:
        yield from _check_fitness(event, said, state, tags, items)
    if purpose is Purpose.MINIBATCH:
        same = [row.item for row in _last_batch(state)]
        if items != same:
            yield Fault.of(event, "items", items, same)
    if purpose is Purpose.TRAIN:
        yield from _check_batch(event, said, state, tags, items)


def _check_batch(
    event: Event, said: types.RolloutsScored, state: RunState, tags: Tags, items: list[str]
) -> Iterator[Fault]:
    """The items are those of the step's batch."""
    if said.batch is None:
        yield Fault.of(event, "batch", None, "how the items were chosen")
    elif tags.knows(said.batch.rule, "seeded/1", "in_turn/1"):
        right = batch(said, said.batch, state)
        if items != right:
            yield Fault.of(event, "batch", items, right)


def _check_turns(event: Event, state: RunState, rows: Sequence[RowScored]) -> Iterator[Fault]:
    """Of several targets, each train item is done on the one whose turn it is."""
    if not state.targets and all(row.target is None for row in rows):
        return
    names = [target.name for target in state.targets]
    place = {id: n for n, id in enumerate(state.ids("train"))}
    for row in rows:
        turn = names[place[row.item] % len(names)] if names else None
        if row.target != turn:
            yield Fault.of(event, f"target of {row.item}", row.target, turn)


def _last_batch(state: RunState) -> Sequence[RowScored]:
    """Return the rows of the step's last train rollouts."""
    rolled_out = read_all(reversed(state.seen), types.RolloutsScored)
    return next((said.items for said in rolled_out if said.purpose is Purpose.TRAIN), ())


def _check_fitness(
    event: Event, said: types.RolloutsScored, state: RunState, tags: Tags, items: list[str]
) -> Iterator[Fault]:
    """The document is one of this log, and the items are the sample drawn for it."""
    texts = {} if state.documents is None else state.documents
    if state.broken is None and said.skill not in texts:
        yield Fault.of(event, "skill", said.skill, "a document so far")
    sample = said.sample
    if sample is None or state.start is None:
        yield Fault.of(event, "sample", None, "how the items were chosen")
    elif tags.knows(sample.rule, SAMPLE):
        ids = state.ids("train" if said.split is None else said.split)
        step = 0 if said.split is None or said.step is None else said.step
        right = drawn(Draws(state.start.seed), ids, sample.size, step)
        if items != right:
            yield Fault.of(event, "sample", items, right)


def batch(said: types.RolloutsScored, chosen: Batch, state: RunState) -> list[str]:
    """Return the ids that a train event's step must hold; none when there is no such step."""
    if state.start is None or said.epoch is None:
        return []
    # Where a method's other steps roll out no batch, batches are counted, not steps.
    wanted = state.batches + 1 if chosen.rule == "in_turn/1" else said.step
    ids, seed = tuple(state.ids("train")), state.start.seed
    return _plan(ids, seed, said.epoch, chosen.size, chosen.accumulation).get(wanted, [])


@lru_cache(maxsize=2)  # each step of an epoch asks for it
def _plan(
    ids: Sequence[str], seed: int, epoch: int, size: int, accumulation: int
) -> Mapping[int | None, list[str]]:
    """Return the items of each step of an epoch."""
    steps = plan_epoch(ids, seed=seed, epoch=epoch, batch_size=size, accumulation=accumulation)
    return {step.step: list(step.items) for step in steps}

"""Checks on what was rolled out: which items, under which skill, with which means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.score import mean
from skilltrail.core.targets import case_of
from skilltrail.history.log.events import Event
from skilltrail.history.log.run_state import RunState
from skilltrail.method.schedule import plan_epoch
from skilltrail.methods.draws import Draws
from skilltrail.methods.fitness import SAMPLE, drawn
from skilltrail.verify.result import Fault, Tags, differing
from skilltrail.verify.rules.settings import cases, targets_of

# Whose skill rollouts of a purpose are made with.
SKILL_OF = {
    "baseline": "parent", "train": "parent", "selection": "candidate", "minibatch": "candidate",
}  # fmt: skip


def check_start(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    data = event.data
    if event.seq != 1:
        yield Fault.of(event, "place", event.seq, "the first event")
    splits = {split: [item["item"] for item in data[split]] for split in ("train", "selection")}
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
    data = event.data
    rows = data["items"]
    for row in rows:
        scored = row["outcome"] == "scored"
        if (row["hard"] is not None) != scored or (row["soft"] is not None) != scored:
            yield Fault.of(event, f"item {row['item']}", row["outcome"], "scores iff scored")
    keys = [(case_of(row), row.get("repeat", 0)) for row in rows]
    if len(set(keys)) < len(keys):
        yield Fault.of(event, "items", "an item twice", "each item once")
    coverage = {
        "scored": sum(row["outcome"] == "scored" for row in rows),
        "asked": len(rows),
    }
    yield from differing(event, {"coverage": coverage})
    for name in ("hard", "soft"):
        yield from differing(event, {f"mean_{name}": mean(row[name] for row in rows)})


def check_members(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """The right items were rolled out with the right skill."""
    data = event.data
    purpose = data["purpose"]
    if not state.start:
        return
    if state.broken is None and purpose in SKILL_OF:
        text = state.candidate if SKILL_OF[purpose] == "candidate" else state.parent
        right = None if text is None else text_digest(text)
        if data["skill"] != right:
            yield Fault.of(event, "skill", data["skill"], right)
    rows = [row for row in data["items"] if row.get("repeat", 0) == 0]
    items, several = [row["item"] for row in rows], targets_of(state)
    if purpose == "baseline" and [case_of(row) for row in rows] != cases(state):
        yield Fault.of(event, "items", items, cases(state))
    if purpose in ("train", "slow_update") and (several or any("target" in r for r in rows)):
        names = [target.name for target in several]
        place = {id: n for n, id in enumerate(state.ids("train"))}
        for row in rows:
            turn = names[place[row["item"]] % len(names)] if names else None
            if row.get("target") != turn:
                yield Fault.of(event, f"target of {row['item']}", row.get("target"), turn)
    if purpose == "fitness":
        yield from _check_fitness(event, state, tags, items)
    if purpose == "minibatch":
        seen = [e for e in state.seen if e.data.get("purpose") == "train"]
        same = [row["item"] for e in seen[-1:] for row in e.data["items"]]
        if items != same:
            yield Fault.of(event, "items", items, same)
    if purpose == "train" and tags.knows(data["batch"]["rule"], "seeded/1", "in_turn/1"):
        right_items = batch(data, state)
        if items != right_items:
            yield Fault.of(event, "batch", items, right_items)


def _check_fitness(
    event: Event, state: RunState, tags: Tags, items: list[str]
) -> Iterator[Fault]:
    """The document is one of this log, and the items are the sample drawn for it."""
    data = event.data
    texts = {} if state.documents is None else state.documents
    if state.broken is None and data["skill"] not in texts:
        yield Fault.of(event, "skill", data["skill"], "a document so far")
    if tags.knows(data["sample"]["rule"], SAMPLE):
        ids = state.ids(data.get("split", "train"))
        step = data["step"] if "split" in data else 0
        right = drawn(Draws(state.start["seed"]), ids, data["sample"]["size"], step)
        if items != right:
            yield Fault.of(event, "sample", items, right)


def batch(data: Mapping[str, Any], state: RunState) -> list[str]:
    """Return the ids that a train event's step must hold; none when there is no such step."""
    plan = plan_epoch(
        state.ids("train"),
        seed=state.start["seed"],
        epoch=data["epoch"],
        batch_size=data["batch"]["size"],
        accumulation=data["batch"]["accumulation"],
    )
    # Where a method's other steps roll out no batch, batches are counted, not steps.
    in_turn = data["batch"]["rule"] == "in_turn/1"
    wanted = state.batches + 1 if in_turn else data["step"]
    return [id for step in plan if step.step == wanted for id in step.items]

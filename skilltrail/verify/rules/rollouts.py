"""Checks on what was rolled out: which items, under which skill, with which means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.history.log.course import Course
from skilltrail.history.log.events import Event
from skilltrail.method.schedule import plan_epoch
from skilltrail.verify.result import Fault, Tags, differing


def check_start(event: Event, course: Course, tags: Tags) -> Iterator[Fault]:
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


def check_scores(event: Event, course: Course, tags: Tags) -> Iterator[Fault]:
    """Rows, coverage and means agree with each other."""
    data = event.data
    rows = data["items"]
    for row in rows:
        scored = row["outcome"] == "scored"
        if (row["hard"] is not None) != scored or (row["soft"] is not None) != scored:
            yield Fault.of(event, f"item {row['item']}", row["outcome"], "scores iff scored")
    keys = [(row["item"], row.get("repeat", 0)) for row in rows]
    if len(set(keys)) < len(keys):
        yield Fault.of(event, "items", "an item twice", "each item once")
    coverage = {
        "scored": sum(row["outcome"] == "scored" for row in rows),
        "asked": len(rows),
    }
    yield from differing(event, {"coverage": coverage})
    for name in ("hard", "soft"):
        yield from differing(event, {f"mean_{name}": mean(rows, name)})


def check_members(event: Event, course: Course, tags: Tags) -> Iterator[Fault]:
    """The right items were rolled out with the right skill."""
    data = event.data
    purpose = data["purpose"]
    if not course.start:
        return
    if course.broken is None and purpose in ("baseline", "train", "selection"):
        text = course.trial if purpose == "selection" else course.skill
        right = None if text is None else text_digest(text)
        if data["skill"] != right:
            yield Fault.of(event, "skill", data["skill"], right)
    items = [row["item"] for row in data["items"] if row.get("repeat", 0) == 0]
    if purpose == "baseline" and items != course.ids("selection"):
        yield Fault.of(event, "items", items, course.ids("selection"))
    if purpose == "train" and tags.knows(data["batch"]["rule"], "seeded/1"):
        right_items = batch(data, course)
        if items != right_items:
            yield Fault.of(event, "batch", items, right_items)


def batch(data: Mapping[str, Any], course: Course) -> list[str]:
    """Return the ids that a train event's step must hold; none when there is no such step."""
    plan = plan_epoch(
        course.ids("train"),
        seed=course.start["seed"],
        epoch=data["epoch"],
        batch_size=data["batch"]["size"],
        accumulation=data["batch"]["accumulation"],
    )
    return [id for step in plan if step.step == data["step"] for id in step.items]


def mean(rows: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """Return the exactly summed mean of one score over the scored rows.

    A float is a whole number over a power of two, so the sum needs no common denominator to
    be searched for: ten times as fast as adding fractions.
    """
    ratios = [float(row[name]).as_integer_ratio() for row in rows if row[name] is not None]
    if not ratios:
        return None
    finest = max(below for _, below in ratios)
    total = sum(above * (finest // below) for above, below in ratios)
    return float(Fraction(total, finest * len(ratios)))

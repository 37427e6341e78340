"""Checks on an evaluation: who was measured on which items, and what follows from the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.score import exact_mean, exact_sum, metric
from skilltrail.core.share import share_of
from skilltrail.core.stats import GAIN_INTERVALS, SHARE_INTERVALS, gain_interval
from skilltrail.core.targets import (
    Values,
    case_of,
    cases_of,
    item_gains,
    of_target,
    weighted_mean,
)
from skilltrail.history.log.events import Event
from skilltrail.history.log.rows import Row, score_of
from skilltrail.history.log.run_state import RunState
from skilltrail.verify.result import Fault, Tags, differing
from skilltrail.verify.rules.settings import targets_of

TOLD = ("skill.evaluated", "skill.transferred")


def check_opening(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """A split is opened once the one before is done, on items and skills that are what they
    are called."""
    yield from missing(state)
    data = event.data
    ids = [row["item"] for row in data["items"]]
    if len(set(ids)) < len(ids):
        yield Fault.of(event, "items", "an item twice", "each item once")
    if not state.start:
        return
    yield from differing(event, {"target": state.start["target"]})
    learned = set(state.ids("train")) | set(state.ids("selection"))
    if data["split"] == "test" and (shared := sorted(learned & set(ids))):
        yield Fault.of(event, "items", shared[:3], "items that no training saw")
    if state.broken is not None:
        return
    texts = {"best": state.best_skill, "last": state.skill}
    right = {"seed": state.start["seed_skill"]["digest"]}
    right |= {name: text_digest(text) for name, text in texts.items()}
    for skill in data["skills"]:
        if skill["digest"] != right.get(skill["name"], skill["digest"]):
            yield Fault.of(event, skill["name"], skill["digest"], right[skill["name"]])


def check_measured(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """In an evaluation every skill does exactly the items that were opened, in their order."""
    data = event.data
    if data["purpose"] not in ("test", "transfer"):
        return
    opened, _ = _section(state)
    if opened is None:
        yield Fault.of(event, "purpose", data["purpose"], "test.opened before it")
        return
    items = [case_of(row) for row in data["items"]]
    several = targets_of(state) if data["purpose"] == "test" else ()
    if items != cases_of((row["item"] for row in opened.data["items"]), several):
        yield Fault.of(event, "items", items, "the items that were opened, in their order")
    if data["purpose"] == "test":
        yield from differing(event, {"split": opened.data["split"]})


def check_evaluation(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """Check means and gain of a skill, on the target trained on or on another."""
    data = event.data
    target = data.get("target")
    opened, told = _section(state)
    before = sum(one.data.get("target") == target for one in told)
    if opened is None or before >= len(opened.data["skills"]):
        yield Fault.of(event, "skill", data["name"], "a skill that was to be measured")
        return
    first, asked = opened.data["skills"][0]["digest"], opened.data["skills"][before]
    right = {"name": asked["name"], "skill": asked["digest"], "split": opened.data["split"]}
    yield from differing(event, right | {"against": first if before else None})
    rows = _rows(state, data["skill"], target)
    if rows is None or state.last is None or state.last.data.get("skill") != data["skill"]:
        yield Fault.of(event, "skill", data["skill"], "the skill rolled out just before")
        return
    coverage = {"scored": sum(r["outcome"] == "scored" for r in rows), "asked": len(rows)}
    several = targets_of(state) if target is None else ()
    values = {case_of(row): _value(row, data) for row in rows}
    total = weighted_mean(values, several)
    means = means_of(rows)
    means |= {"coverage": coverage, "mean": None if total is None else float(total)}
    yield from differing(event, means)
    if not tags.knows(data["interval"], *GAIN_INTERVALS):
        return
    seed = _rows(state, data["against"], target) if data["against"] is not None else []
    known = {case_of(row): _value(row, data) for row in seed or []}
    yield from differing(event, _gain(item_gains(known, values, several), data["interval"]))
    if several or "targets" in data:
        own_tags = {one["target"]: one["interval"] for one in data.get("targets", ())}
        right_targets = [
            _on(one.name, rows, values, known, own_tags.get(one.name, data["interval"]))
            for one in several
        ]
        yield from differing(event, {"targets": right_targets})


def means_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the means by both metrics, as an evaluation takes them: of what floats stand for,
    so that scores like 0.3 add up."""
    means = {
        f"mean_{kind}": exact_mean(metric(score_of(row), kind) for row in rows)
        for kind in ("hard", "soft")
    }
    return {name: None if mean is None else float(mean) for name, mean in means.items()}


def _gain(differences: Sequence[Fraction], tag: str) -> dict[str, float | None]:
    if not differences:
        return dict.fromkeys(("gain", "gain_low", "gain_high"))
    low, high = gain_interval(differences, tag)
    gain = float(exact_sum(differences) / len(differences))
    return {"gain": gain, "gain_low": low, "gain_high": high}


def _on(
    name: str, rows: Sequence[Row], values: Values, known: Values, tag: str
) -> dict[str, Any]:
    """Return what an evaluation says of a skill on one of several targets."""
    own = [row for row in rows if row.get("target") == name]
    here, before = of_target(values, name), of_target(known, name)
    total = weighted_mean(here, ())
    return {
        "target": name,
        "coverage": {"scored": sum(r["outcome"] == "scored" for r in own), "asked": len(own)},
        "mean": None if total is None else float(total),
        **means_of(own),
        **_gain(item_gains(before, here, ()), tag),
        "interval": tag,
    }


def check_share(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """Check the share of the gain that carries over to another target."""
    data = event.data
    if not tags.knows(data["share_interval"], *SHARE_INTERVALS):
        return
    seed = data["skill"] if data["against"] is None else data["against"]
    wanted = [(seed, None), (data["skill"], None), (seed, data["target"]),
              (data["skill"], data["target"])]  # fmt: skip
    found = [_rows(state, digest, target) for digest, target in wanted]
    known = [rows for rows in found if rows is not None]
    orders = {tuple(row["item"] for row in rows) for rows in known}
    if len(known) < len(wanted) or len(orders) > 1:
        yield Fault.of(event, "target", data["target"], "the same items on both targets")
        return
    values = [[_value(row, data) for row in rows] for rows in known]
    yield from differing(event, share_of(*values, tag=data["share_interval"]))


def missing(state: RunState) -> Iterator[Fault]:
    """Yield a fault for each skill that the last opening names and nothing was told of."""
    opened, told = _section(state)
    if opened is None:
        return
    for target in dict.fromkeys([None, *(one.data.get("target") for one in told)]):
        done = sum(one.data.get("target") == target for one in told)
        for skill in opened.data["skills"][done:]:
            where = skill["name"] if target is None else f"{skill['name']} on {target}"
            yield Fault.of(opened, where, "not measured", "measured after it was opened")


def _section(state: RunState) -> tuple[Event | None, Sequence[Event]]:
    """Return the latest opening of a split and what was told of skills since."""
    starts = [at for at, event in enumerate(state.seen) if event.type == "test.opened"]
    if not starts:
        return None, ()
    since = state.seen[starts[-1] :]
    return since[0], [event for event in since if event.type in TOLD]


def _rows(state: RunState, digest: str, target: str | None) -> Sequence[Any] | None:
    """Return the last rows of a skill on a target; None is the one trained on."""
    for event in reversed(state.seen):
        scored = event.type == "rollouts.scored" and event.data["skill"] == digest
        if scored and event.data.get("target") == target:
            rows: Sequence[Any] = event.data["items"]
            return rows
    return None


def _value(row: Row, data: Mapping[str, Any]) -> Fraction | None:
    return metric(score_of(row), data["metric"], data.get("mixed_weight", 0.5))

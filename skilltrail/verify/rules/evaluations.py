"""Checks on an evaluation: who was measured on which items, and what follows from the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import takewhile
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.score import exact_mean, exact_sum, metric
from skilltrail.core.share import share_of
from skilltrail.core.stats import GAIN_INTERVALS, SHARE_INTERVALS, gain_interval
from skilltrail.core.targets import (
    Target,
    Values,
    case_of,
    cases_of,
    item_gains,
    of_target,
    weighted_mean,
)
from skilltrail.history.log import types
from skilltrail.history.log.events import Event, read_all
from skilltrail.history.log.rows import score_of
from skilltrail.history.log.run_state import RunState
from skilltrail.history.log.types.parts import EventPart, Purpose, RowScored
from skilltrail.verify.result import Fault, Tags, differing
from skilltrail.verify.rules.rollouts import mean_fields

TOLD = (types.type_of(types.SkillEvaluated), types.type_of(types.SkillTransferred))


def check_opening(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """A split is opened once the one before is done, on items and skills that are what they
    are called."""
    yield from missing(state)
    said = event.read(types.TestOpened)
    ids = [row.item for row in said.items]
    if len(set(ids)) < len(ids):
        yield Fault.of(event, "items", "an item twice", "each item once")
    if state.start is None:
        return
    yield from differing(event, {"target": state.start.target})
    learned = set(state.ids("train")) | set(state.ids("selection"))
    if said.split == "test" and (shared := sorted(learned & set(ids))):
        yield Fault.of(event, "items", shared[:3], "items that no training saw")
    if state.broken is not None:
        return
    texts = {"best": state.best_skill, "last": state.skill}
    right = {"seed": state.start.seed_skill.digest}
    right |= {name: text_digest(text) for name, text in texts.items()}
    for skill in said.skills:
        if skill.digest != right.get(skill.name, skill.digest):
            yield Fault.of(event, skill.name, skill.digest, right[skill.name])


def check_measured(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """In an evaluation every skill does exactly the items that were opened, in their order."""
    said = event.read(types.RolloutsScored)
    if said.purpose not in (Purpose.TEST, Purpose.TRANSFER):
        return
    opened = state.told(types.TestOpened)
    if opened is None:
        yield Fault.of(event, "purpose", said.purpose, "test.opened before it")
        return
    here = said.purpose is Purpose.TEST
    items = [case_of(row) for row in said.items]
    if items != cases_of((row.item for row in opened.items), state.targets if here else ()):
        yield Fault.of(event, "items", items, "the items that were opened, in their order")
    if here:
        yield from differing(event, {"split": opened.split})


def check_evaluation(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """Check means and gain of a skill, on the target trained on or on another."""
    said = event.read(types.SkillEvaluated)
    target = _target(said)
    opened, before = state.told(types.TestOpened), len(_told(state, target))
    if opened is None or before >= len(opened.skills):
        yield Fault.of(event, "skill", said.name, "a skill that was to be measured")
        return
    first, asked = opened.skills[0].digest, opened.skills[before]
    right = {"name": asked.name, "skill": asked.digest, "split": opened.split}
    yield from differing(event, right | {"against": first if before else None})
    rows, last = _rows(state, said.skill, target), state.last
    if rows is None or last is None or getattr(last.said, "skill", None) != said.skill:
        yield Fault.of(event, "skill", said.skill, "the skill rolled out just before")
        return
    several = state.targets if target is None else ()
    values = values_of(rows, said)
    total = weighted_mean(values, several)
    means = mean_fields(rows) | means_of(rows)
    means |= {"mean": None if total is None else float(total)}
    yield from differing(event, means)
    if not tags.knows(said.interval, *GAIN_INTERVALS):
        return
    seed = None if said.against is None else _rows(state, said.against, target)
    known = {} if seed is None else values_of(seed, said)
    yield from differing(event, gain_of(known, values, several, said.interval))
    if several or said.targets is not None:
        own_tags = {one.target: one.interval for one in said.targets or ()}
        right_targets = [
            _on(one.name, rows, values, known, own_tags.get(one.name, said.interval))
            for one in several
        ]
        yield from differing(event, {"targets": right_targets})


def means_of(rows: Sequence[RowScored]) -> dict[str, Any]:
    """Return the means by both metrics, as an evaluation takes them: of what floats stand for,
    so that scores like 0.3 add up."""
    means = {
        f"mean_{kind}": exact_mean(metric(score_of(row), kind) for row in rows)
        for kind in ("hard", "soft")
    }
    return {name: None if mean is None else float(mean) for name, mean in means.items()}


def gain_of(
    before: Values, after: Values, several: Sequence[Target], tag: str
) -> dict[str, float | None]:
    """Return the paired gain and its interval by the tag's method; None where nothing pairs."""
    differences = item_gains(before, after, several)
    if not differences:
        return dict.fromkeys(("gain", "gain_low", "gain_high"))
    low, high = gain_interval(differences, tag)
    gain = float(exact_sum(differences) / len(differences))
    return {"gain": gain, "gain_low": low, "gain_high": high}


def _on(
    name: str, rows: Sequence[RowScored], values: Values, known: Values, tag: str
) -> dict[str, Any]:
    """Return what an evaluation says of a skill on one of several targets."""
    own = [row for row in rows if row.target == name]
    here, before = of_target(values, name), of_target(known, name)
    total = weighted_mean(here, ())
    return {
        "target": name,
        "mean": None if total is None else float(total),
        **mean_fields(own),
        **means_of(own),
        **gain_of(before, here, (), tag),
        "interval": tag,
    }


def check_share(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """Check the share of the gain that carries over to another target."""
    said = event.read(types.SkillTransferred)
    if not tags.knows(said.share_interval, *SHARE_INTERVALS):
        return
    seed = said.skill if said.against is None else said.against
    wanted = [(seed, None), (said.skill, None), (seed, said.target), (said.skill, said.target)]
    found = [_rows(state, digest, target) for digest, target in wanted]
    known = [rows for rows in found if rows is not None]
    orders = {tuple(row.item for row in rows) for rows in known}
    if len(known) < len(wanted) or len(orders) > 1:
        yield Fault.of(event, "target", said.target, "the same items on both targets")
        return
    values = [[_value(row, said) for row in rows] for rows in known]
    yield from differing(event, share_of(*values, tag=said.share_interval))


def missing(state: RunState) -> Iterator[Fault]:
    """Yield a fault for each skill that the last opening names and nothing was told of."""
    event, opened = state.latest(types.TestOpened), state.told(types.TestOpened)
    if event is None or opened is None:
        return
    named = (
        _target(one) for one in _since_opening(state) if isinstance(one, types.SkillEvaluated)
    )
    for target in dict.fromkeys([None, *named]):
        for skill in opened.skills[len(_told(state, target)) :]:
            where = skill.name if target is None else f"{skill.name} on {target}"
            yield Fault.of(event, where, "not measured", "measured after it was opened")


def _since_opening(state: RunState) -> list[EventPart]:
    """Return what was told since the latest opening of a split, the newest first."""
    return [event.said for event in takewhile(_is_no_opening, reversed(state.seen))]


def _is_no_opening(event: Event) -> bool:
    return event.type != types.type_of(types.TestOpened)


def _told(state: RunState, target: str | None) -> list[types.SkillEvaluated]:
    """Return what was told of skills on a target since the latest opening."""
    said = _since_opening(state)
    return [o for o in said if isinstance(o, types.SkillEvaluated) and _target(o) == target]


def _target(said: types.SkillEvaluated) -> str | None:
    """Return the name of another target than the one trained on."""
    return said.target if isinstance(said, types.SkillTransferred) else None


def _rows(state: RunState, digest: str, target: str | None) -> Sequence[RowScored] | None:
    """Return the last rows of a skill on a target; None is the one trained on."""
    rolled_out = read_all(reversed(state.seen), types.RolloutsScored)
    own = (said for said in rolled_out if said.skill == digest and said.target == target)
    return next((said.items for said in own), None)


def values_of(rows: Sequence[RowScored], said: types.SkillEvaluated) -> Values:
    """Return the value of each case in the evaluation's metric."""
    return {case_of(row): _value(row, said) for row in rows}


def _value(row: RowScored, said: types.SkillEvaluated) -> Fraction | None:
    weight = 0.5 if said.mixed_weight is None else said.mixed_weight
    return metric(score_of(row), said.metric, weight)

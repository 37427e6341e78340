"""Checks on the end of an epoch: the comparison of two skills, and the memory's digest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from skilltrail.core.canon import text_digest
from skilltrail.history.log.events import Event, read_all
from skilltrail.history.log.run_state import RunState
from skilltrail.history.log.types.outcomes import RolloutsScored
from skilltrail.history.log.types.parts import Purpose
from skilltrail.history.log.types.proposals import (
    MetaSkillWritten,
    Pair,
    SlowUpdateCompared,
)
from skilltrail.verify.result import Fault, Tags, differing

UNMOVED = ("stable_success", "persistent_failure")


def check_comparison(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """Each pair holds the soft scores that were measured, and the category they give."""
    said = event.read(SlowUpdateCompared)
    if state.broken is None:
        yield from differing(event, {"current": text_digest(state.parent)})
    if not tags.knows(said.rule, "epochs/1", "recorded/1"):
        return
    before, after = _measured(state, said)
    for pair in said.pairs:
        for name, found, measured in (
            ("before", pair.before, before),
            ("after", pair.after, after),
        ):
            right = measured.get(pair.item)
            if found != right:
                yield Fault.of(event, f"{name} of {pair.item}", found, right)
        if not _fits(pair, said.rule):
            yield Fault.of(event, f"item {pair.item}", pair.category, "what scores say")
    tally = Counter(pair.category for pair in said.pairs)
    if said.policy == "mixed":
        yield from differing(event, {"counts": dict(tally)})
    for category, number in tally.items():
        if said.counts.get(category, 0) < number:
            yield Fault.of(event, f"counts.{category}", said.counts.get(category), number)


Soft = Mapping[str, float | None]  # soft scores by item


def _measured(state: RunState, said: SlowUpdateCompared) -> tuple[Soft, Soft]:
    """Return the soft scores before and after."""
    if said.rule == "epochs/1":
        return _soft(state, said.previous), _soft(state, said.current)
    latest = state.last_soft.items()
    now = {item: soft for item, (skill, soft) in latest if skill == said.current}
    return state.earlier_soft, now


def _soft(state: RunState, digest: str) -> Soft:
    """Return the soft scores of one skill in this epoch's comparison."""
    return {
        row.item: row.soft
        for said in read_all(state.seen, RolloutsScored)
        if said.purpose is Purpose.SLOW_UPDATE and said.skill == digest
        for row in said.items
    }


def _fits(pair: Pair, rule: str) -> bool:
    """True when the category follows from the scores.

    Whether an unmoved item is a success depends on a threshold that the event does not hold.
    """
    if rule == "recorded/1" and pair.before is None and pair.after is not None:
        return pair.category in (*UNMOVED, "missing")
    if pair.before is None or pair.after is None:
        return pair.category == "missing"
    if pair.before == pair.after:
        return pair.category in UNMOVED
    return pair.category == ("improved" if pair.after > pair.before else "regressed")


def check_memory(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    yield from differing(event, {"digest": text_digest(event.read(MetaSkillWritten).text)})

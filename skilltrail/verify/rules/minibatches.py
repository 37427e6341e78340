"""Checks on the verdict of a train minibatch: the same items under both documents."""

from __future__ import annotations

from collections.abc import Iterator

from skilltrail.core.canon import text_digest
from skilltrail.history.log.events import Event
from skilltrail.history.log.rows import scores_of
from skilltrail.history.log.run_state import RunState
from skilltrail.history.log.types.outcomes import GateJudged, RolloutsScored
from skilltrail.history.log.types.parts import Purpose
from skilltrail.history.log.types.proposals import CandidateBuilt
from skilltrail.methods.minibatch import ORDER, TAG, verdict_of
from skilltrail.verify.result import Fault, Tags, differing
from skilltrail.verify.rules.settings import rule_of


def check_minibatch(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """The verdict, judged again from the rows of both documents."""
    said, built = event.read(GateJudged), state.told(CandidateBuilt)
    told = [one.said for one in state.seen]
    rows = {one.purpose: one.items for one in reversed(told) if isinstance(one, RolloutsScored)}
    if Purpose.TRAIN not in rows or Purpose.MINIBATCH not in rows or built is None:
        yield Fault.of(event, "evidence", "none", "a candidate and rollouts of both")
        return
    yield from differing(event, {"candidate": built.candidate})
    if state.broken is None:
        yield from differing(event, {"current": text_digest(state.parent)})
    if not tags.knows(said.rule, TAG) or not tags.knows(said.order, ORDER):
        return
    rule = rule_of(said, state)
    was, now = (
        {item: rule.value(score) for item, score in scores_of(rows[purpose]).items()}
        for purpose in (Purpose.TRAIN, Purpose.MINIBATCH)
    )
    pairs = {item: (was[item], now[item]) for item in was if item in now}
    yield from differing(event, verdict_of(pairs))

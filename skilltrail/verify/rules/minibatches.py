"""Checks on the verdict of a train minibatch: the same items under both documents."""

from __future__ import annotations

from collections.abc import Iterator

from skilltrail.core.canon import text_digest
from skilltrail.history.log.events import Event
from skilltrail.history.log.rows import scores_of
from skilltrail.history.log.run_state import RunState
from skilltrail.methods.minibatch import ORDER, TAG, verdict_of
from skilltrail.verify.result import Fault, Tags, differing
from skilltrail.verify.rules.settings import rule_of


def check_minibatch(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """The verdict, judged again from the rows of both documents."""
    data = event.data
    rows = [e.data for e in state.seen if e.type == "rollouts.scored"]
    before = next((one for one in rows if one["purpose"] == "train"), None)
    after = next((one for one in rows if one["purpose"] == "minibatch"), None)
    built = state.latest("candidate.built")
    if before is None or after is None or built is None:
        yield Fault.of(event, "evidence", "none", "a candidate and rollouts of both")
        return
    yield from differing(event, {"candidate": built.data["candidate"]})
    if state.broken is None:
        yield from differing(event, {"current": text_digest(state.parent)})
    if not tags.knows(data["rule"], TAG) or not tags.knows(data["order"], ORDER):
        return
    rule = rule_of(data, state)
    was, now = (
        {item: rule.value(score) for item, score in scores_of(one["items"]).items()}
        for one in (before, after)
    )
    pairs = {item: (was[item], now[item]) for item in was if item in now}
    yield from differing(event, verdict_of(pairs))

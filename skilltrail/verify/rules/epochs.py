"""Checks on the end of an epoch: the comparison of two skills, and the memory's digest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.history.log.events import Event
from skilltrail.history.log.run_state import RunState
from skilltrail.verify.result import Fault, Tags, differing

UNMOVED = ("stable_success", "persistent_failure")


def check_comparison(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """Each pair holds the soft scores that were measured, and the category they give."""
    data = event.data
    if state.broken is None:
        yield from differing(event, {"current": text_digest(state.parent)})
    if not tags.knows(data["rule"], "epochs/1", "recorded/1"):
        return
    measured = _measured(state, data)
    for pair in data["pairs"]:
        for name in ("before", "after"):
            right = measured[name].get(pair["item"])
            if pair[name] != right:
                yield Fault.of(event, f"{name} of {pair['item']}", pair[name], right)
        if not _fits(pair, data["rule"]):
            yield Fault.of(event, f"item {pair['item']}", pair["category"], "what scores say")
    tally = Counter(pair["category"] for pair in data["pairs"])
    if data["policy"] == "mixed":
        yield from differing(event, {"counts": dict(tally)})
    for name, number in tally.items():
        if data["counts"].get(name, 0) < number:
            yield Fault.of(event, f"counts.{name}", data["counts"].get(name), number)


def _measured(state: RunState, data: Mapping[str, Any]) -> dict[str, dict[str, float | None]]:
    """Return the soft scores before and after, by item."""
    if data["rule"] == "epochs/1":
        return {
            name: _soft(state, data[side])
            for name, side in (("before", "previous"), ("after", "current"))
        }
    latest = state.last_soft.items()
    now = {item: soft for item, (skill, soft) in latest if skill == data["current"]}
    return {"before": dict(state.earlier_soft), "after": now}


def _soft(state: RunState, digest: str) -> dict[str, float | None]:
    """Return the soft scores of one skill in this epoch's comparison, by item."""
    return {
        row["item"]: row["soft"]
        for event in state.seen
        if event.type == "rollouts.scored"
        and event.data["purpose"] == "slow_update"
        and event.data["skill"] == digest
        for row in event.data["items"]
    }


def _fits(pair: Mapping[str, Any], rule: str) -> bool:
    """True when the category follows from the scores.

    Whether an unmoved item is a success depends on a threshold that the event does not hold.
    """
    before, after = pair["before"], pair["after"]
    if rule == "recorded/1" and before is None and after is not None:
        return pair["category"] in (*UNMOVED, "missing")
    if before is None or after is None:
        return bool(pair["category"] == "missing")
    if before == after:
        return pair["category"] in UNMOVED
    return bool(pair["category"] == ("improved" if after > before else "regressed"))


def check_memory(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    yield from differing(event, {"digest": text_digest(event.data["text"])})

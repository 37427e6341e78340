"""Checks on tombstones: what they name is there, and may have lost text."""

from __future__ import annotations

from collections.abc import Iterator

from skilltrail.core.eraser import MARKER
from skilltrail.history.log.events import Event
from skilltrail.history.log.run_state import RunState
from skilltrail.verify.result import Fault, Tags, differing


def check_tombstone(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """A tombstone stands at the end, and names events before it."""
    data = event.data
    yield from differing(event, {"marker": MARKER})
    if not (data["events"] or data["facts"] or data["items"]):
        yield Fault.of(event, "events", [], "what lost text")
    wrong = [seq for seq in data["events"] if seq >= event.seq]
    if wrong or data["events"] != sorted(set(data["events"])):
        yield Fault.of(event, "events", data["events"], "numbers of events before it, in order")

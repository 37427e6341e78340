"""Checks on tombstones: what they name is there, and may have lost text."""

from __future__ import annotations

from collections.abc import Iterator

from skilltrail.core.eraser import MARKER
from skilltrail.history.log.events import Event
from skilltrail.history.log.run_state import RunState
from skilltrail.history.log.types.outcomes import TextErased
from skilltrail.verify.result import Fault, Tags, differing


def check_tombstone(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """A tombstone stands at the end, and names events before it."""
    said = event.read(TextErased)
    events = list(said.events)
    yield from differing(event, {"marker": MARKER})
    if not (events or said.facts or said.items):
        yield Fault.of(event, "events", [], "what lost text")
    if events != sorted({seq for seq in events if seq < event.seq}):
        yield Fault.of(event, "events", events, "numbers of events before it, in order")

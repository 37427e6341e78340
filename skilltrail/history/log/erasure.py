"""Erasing: a log without a text that must not stand in it, chained anew, and saying so.

From the first event that held the text on, ids change; each later event is the old one with
the new links. Documents, diffs and digests follow, so every version can still be rebuilt. The
tombstone `text.erased` comes last. It names the events whose content is no longer what the run
made, and the facts and items that lost text: nobody can recompute a decision from those.

A training that has not finished is cut before the first such event instead: it goes on from
there, since its events are derived again from facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.eraser import MARKER, Eraser
from skilltrail.history.log import types
from skilltrail.history.log.events import Event, read_all
from skilltrail.history.log.evolve import rebuilt
from skilltrail.history.log.log import follow
from skilltrail.history.log.run_state import RunState
from skilltrail.history.log.types.parts import ItemDigest
from skilltrail.skill.document import unified_diff

ERASED = "text.erased"
STARTED, FINISHED = "run.started", "run.finished"


@dataclass(frozen=True)
class Erased:
    """What tombstones say was erased.

    Attributes:
        events: sequence numbers of events that lost text, or name what did.
        facts: keys of facts that did.
        items: ids of items that did.
    """

    events: frozenset[int] = frozenset()
    facts: frozenset[str] = frozenset()
    items: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.events or self.facts or self.items)


def erased_in(events: Iterable[Event]) -> Erased:
    """Return what the tombstones of a log say."""
    found = list(read_all(events, types.TextErased))
    return Erased(
        frozenset(seq for said in found for seq in said.events),
        frozenset(key for said in found for key in said.facts),
        frozenset(item for said in found for item in said.items),
    )


def end_of(events: Sequence[Event]) -> Event | None:
    """Return the event that ended a training, None while there is none; erasing comes after."""
    last = next((event for event in reversed(events) if event.type != ERASED), None)
    return last if last is not None and last.type == FINISHED else None


@dataclass
class Cleaning:
    """What is taken out, and how names of what held it changed.

    Attributes:
        eraser: takes the text out.
        facts, items: keys of the facts and ids (as they are now) of the items that held it.
        names: new id or digest by old one: of events, documents and items; grows.
        ends: the new last event of a log by the id of its old one; grows.
    """

    eraser: Eraser
    facts: Set[str] = frozenset()
    items: Set[str] = frozenset()
    names: dict[str, str] = field(default_factory=dict)
    ends: dict[str, Event] = field(default_factory=dict)

    def log(self, events: Sequence[Event]) -> list[Event]:
        """Return a log, or an evaluation's that goes on from one cleaned before, without the
        text; the same events where it never held any.

        Raises:
            FaultError: a version cannot be rebuilt from the log.
        """
        if not events:
            return []
        told = self._told(events)
        touched = {e.seq for e, data in zip(events, told, strict=True) if data != e.data}
        if events[0].type == STARTED and end_of(events) is None:
            first = min(touched, default=events[-1].seq + 1)
            return [event for event in events if event.seq < first]
        after = self._after(events[0])
        made: list[Event] = []
        for event, data in zip(events, told, strict=True):
            made.append(follow(made[-1] if made else after, event.type, data))
            if made[-1].id != event.id:
                self.names[event.id] = made[-1].id
        tombstone = self._tombstone(made, {seq + _shift(events, made) for seq in touched})
        if tombstone is not None:
            made.append(follow(made[-1], ERASED, tombstone))
        self.ends[events[-1].id] = made[-1]
        return made

    def _after(self, first: Event) -> Event | None:
        """Return the event that a log goes on from now."""
        if first.prev is None:
            return None
        unchanged = Event(first.seq - 1, FINISHED, None, first.prev, b"")
        return self.ends.get(first.prev, unchanged)

    def _told(self, events: Sequence[Event]) -> list[dict[str, Any]]:
        """Return the data of all events without the text."""
        state, told = RunState(), []
        for event in events:
            data: dict[str, Any] = self.eraser.value(event.data)
            parent = state.parent
            state = rebuilt(state, event)
            if event.type == STARTED:
                self._document(state.skill)
            elif event.type == "candidate.built" and state.candidate is not None:
                before, after = self._document(parent), self._document(state.candidate)
                if (before, after) != (parent, state.candidate):
                    # JSON, not a class: whatever an event holds, the text is looked for in it.
                    data["diff"] = unified_diff(before, after)
            told.append(self._named(data))
        return told

    def _document(self, text: str) -> str:
        clean = self.eraser.text(text)
        if clean != text:
            self.names[text_digest(text)] = text_digest(clean)
        return clean

    def _named(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.names.get(value, value)
        if isinstance(value, dict):
            return {key: self._named(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._named(one) for one in value]
        return value

    def _tombstone(self, events: Sequence[Event], touched: set[int]) -> dict[str, Any] | None:
        """Return what is to be said of a cleaned log beyond what it says already."""
        known = erased_in(events)
        keys = set[str]().union(*map(keys_of, events))
        items = {row.item for event in events for row in items_listed(event)}
        data: dict[str, Any] = {
            "marker": MARKER,
            "events": sorted(touched - known.events),
            "facts": sorted((self.facts & keys) - known.facts),
            "items": sorted((self.items & items) - known.items),
        }
        return data if data["events"] or data["facts"] or data["items"] else None


def _shift(before: Sequence[Event], after: Sequence[Event]) -> int:
    """Return by how much numbers grew: an evaluation's, by its training's tombstone."""
    return after[0].seq - before[0].seq


def keys_of(event: Event) -> set[str]:
    """Return the keys of the facts that an event rests on."""
    said = event.said
    found = {getattr(said, "reply", None)}
    if isinstance(said, types.RolloutsScored):
        found |= {key for row in said.items for key in (row.key, row.judgement)}
    if isinstance(said, types.CandidateBuilt) and said.script_tests is not None:
        found |= {test.key for test in said.script_tests}
    return {key for key in found if key is not None}


def items_listed(event: Event) -> tuple[ItemDigest, ...]:
    """Return the items that an event lists with their contents' digests."""
    said = event.said
    if isinstance(said, types.RunStarted):
        return said.train + said.selection
    return said.items if isinstance(said, types.TestOpened) else ()

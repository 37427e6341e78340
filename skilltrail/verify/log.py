"""One event log at level *log*: chain, schemas, versions rebuilt, decisions recomputed.

The file is read line by line and every fault is named; nothing is repaired.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from skilltrail.core.eraser import MARKER
from skilltrail.core.errors import FaultError
from skilltrail.history.log.erasure import ERASED, Erased, erased_in
from skilltrail.history.log.events import Event, is_canonical, parse_event
from skilltrail.history.log.evolve import evolve
from skilltrail.history.log.run_state import RunState
from skilltrail.history.log.types.outcomes import TextErased
from skilltrail.verify.result import BROKEN, Check, Fault, Tags
from skilltrail.verify.rules import DECISIONS
from skilltrail.verify.rules.evaluations import TOLD, missing

FINISHED = "run.finished"
_TOMBSTONE = f',"type":"{ERASED}","v":1}}'.encode()


@dataclass
class LogReport:
    """What verification of one log found.

    Attributes:
        lines: the lines that it has.
        events: those that could be read.
        unsure: events with a decision whose tag is not known here.
        decisions: how many decisions were recomputed, by event type.
        state: what is known after the last event; an evaluation goes on from it.
        erased: what its tombstones say can be recomputed by nobody.
    """

    name: str
    lines: int = 0
    events: list[Event] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    tags: Tags = field(default_factory=Tags)
    unsure: int = 0
    decisions: Counter[str] = field(default_factory=Counter)
    state: RunState = field(default_factory=RunState)
    erased: Erased = Erased()

    @property
    def last(self) -> Event | None:
        return self.events[-1] if self.events else None

    @property
    def check(self) -> Check:
        """Return it as a check: an event counts when it was read and all its tags are known."""
        note = f"{sum(self.decisions.values())} decisions recomputed"
        if self.tags.unknown:
            tags = ", ".join(f"{tag} ({n})" for tag, n in sorted(self.tags.unknown.items()))
            note += f"; not recomputed here: {tags}"
        if self.erased:
            note += f"; a text was erased from {len(self.erased.events)} events"
        done = len(self.events) - self.unsure
        return Check(done, max(self.lines, 1), note, tuple(self.faults))


def verify_log(
    data: bytes, name: str, *, allow_unfinished: bool = False, after: LogReport | None = None
) -> LogReport:
    """Return what is right and wrong with the bytes of a log.

    Args:
        after: what was found of the log that this one goes on from (evaluation logs).
    """
    report = LogReport(name, erased=erased_in(_tombstones(data)))
    if after is not None:
        report.state = after.state
    with _uncollected():
        for event in _read(data, report, None if after is None else after.last):
            _follow(event, report)
    report.faults += _unmarked(report, after)
    if not allow_unfinished:
        report.faults += _end(report)
    return report


@contextmanager
def _uncollected() -> Iterator[None]:
    """Let nobody look for cycles, of which there are none, among ever more events: that takes a
    tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _unmarked(report: LogReport, after: LogReport | None) -> Iterator[Fault]:
    """Yield a fault for a tombstone whose events lost no text, nor name what did."""
    if after is not None and after.erased:
        return  # they may name documents of the training
    lines = {event.seq: event.line for event in report.events}
    for event in report.events:
        said = event.said
        if not isinstance(said, TextErased) or said.items or not said.events:
            continue
        if not any(MARKER.encode() in lines.get(seq, b"") for seq in said.events):
            right = f"{MARKER} in what lost text"
            yield Fault.of(event, "events", list(said.events), right)


def _follow(event: Event, report: LogReport) -> None:
    """Recompute the decisions of an event, then take it in."""
    state, unknown = report.state, report.tags.unknown.total()
    report.events.append(event)
    faults: list[Fault] = []
    try:
        for rule in DECISIONS.get(event.type, ()):
            faults += rule(event, state, report.tags)
            report.decisions[event.type] += 1
        report.state, before = _taken(state, event), state.seen
    except BROKEN as error:
        # A forged order of events breaks what a rule may take for granted in a real one.
        found = f"{type(error).__name__} {error}"
        faults.append(Fault.of(event, "place", found, "an event that follows"))
        before = ()
    # What lost text, or rests in its step on what did, need not follow any more.
    rests_on = {one.seq for one in (*before, event)} if faults else ()
    lost = not report.erased.events.isdisjoint(rests_on)
    report.faults += [] if lost else faults
    report.unsure += lost or report.tags.unknown.total() > unknown
    broken = report.state.broken
    if broken is not None and state.broken is None:
        report.faults.append(Fault.of(event, "document", broken, "a version that follows"))


def _taken(state: RunState, event: Event) -> RunState:
    """Return the state after `event`; a text that cannot be rebuilt ends the documents."""
    try:
        return evolve(state, event)
    except FaultError as error:
        return evolve(replace(state, broken=str(error)), event)


def _end(report: LogReport) -> Iterator[Fault]:
    last = next((event for event in reversed(report.events) if event.type != ERASED), None)
    if last is not None and last.type in TOLD:
        yield from missing(report.state)
    elif last is None or last.type != FINISHED:
        found = "nothing" if last is None else last.name
        right = "run.finished (or --allow-unfinished)"
        yield Fault(None, report.name, "end of the log", found, right)


def _tombstones(data: bytes) -> Iterator[Event]:
    """Yield the tombstones of a log that can be read."""
    if _TOMBSTONE not in data:
        return  # most logs, and to part a long one takes long
    for line in data.split(b"\n")[:-1]:
        if line.endswith(_TOMBSTONE):
            with suppress(FaultError):
                event = parse_event(line, "")
                _ = event.data
                yield event


def _read(data: bytes, report: LogReport, before: Event | None) -> Iterator[Event]:
    """Yield the events that can be read; put the others among the faults."""
    lines, name = data.split(b"\n"), report.name
    report.lines = len(lines) - (not lines[-1])
    if lines[-1]:
        where = f"{name}, line {len(lines)}"
        report.faults.append(Fault(None, where, "newline", "none", "a finished line"))
    seq = 1 if before is None else before.seq + 1
    prev = None if before is None else before.id
    known = True  # whether the id that the next line must follow is known
    for number, line in enumerate(lines[:-1], 1):
        where = f"{name}, line {number}"
        try:
            event = parse_event(line, where)
            _ = event.data, event.said
        except FaultError as error:
            right = "an event whose id matches"
            report.faults.append(Fault(seq, where, "line", error.found, right))
            seq, known = seq + 1, False
            continue
        if event.seq != seq:
            report.faults.append(Fault.of(event, "seq", event.seq, seq))
        elif known and event.prev != prev:
            report.faults.append(Fault.of(event, "prev", event.prev, prev))
        if not is_canonical(event):
            found, right = "another form", "the canonical form"
            report.faults.append(Fault.of(event, "form", found, right))
        vars(event).pop("data")  # rules read what is said: two forms of a long log take long
        yield event
        seq, prev, known = event.seq + 1, event.id, True

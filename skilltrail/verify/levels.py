"""Verify, level *log*: chain, schemas, versions rebuilt, decisions recomputed.

The file is read line by line and every fault is named; nothing is repaired. Decisions belong to
the method, which stands above this package: whoever knows how to recompute one registers a
check for its event type with `check`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from skilltrail.core.errors import FaultError
from skilltrail.history.log.course import Course
from skilltrail.history.log.events import Event, is_canonical, parse_event
from skilltrail.verify.faults import Fault

ENDS = ("run.finished", "skill.evaluated", "skill.transferred")

Check = Callable[[Event, Course, "Report"], Iterable[Fault]]
CHECKS: dict[str, list[Check]] = {}


@dataclass
class Report:
    """What verification of one log found.

    Attributes:
        events: the events that could be read.
        not_recomputed: how many decisions carry a tag that this version does not know, by tag.
        recomputed: how many decisions were recomputed, by event type.
    """

    events: list[Event] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    not_recomputed: Counter[str] = field(default_factory=Counter)
    recomputed: Counter[str] = field(default_factory=Counter)

    def knows(self, tag: str | None, *known: str) -> bool:
        """True when `tag` is one of `known`; else the decision counts as not recomputed.

        None (a model decided) is not counted: the reply is the fact.
        """
        if tag in known:
            return True
        if tag is not None:
            self.not_recomputed[tag] += 1
        return False


def check(*types: str) -> Callable[[Check], Check]:
    """Register a check for events of `types`; it sees the course before the event."""

    def register(function: Check) -> Check:
        for type in types:
            CHECKS.setdefault(type, []).append(function)
        return function

    return register


def verify_log(
    data: bytes, name: str, *, allow_unfinished: bool = False, after: Event | None = None
) -> Report:
    """Return what is right and wrong with the bytes of a log.

    Args:
        after: the event that the first line follows (evaluation logs).
    """
    report = Report()
    course = Course()
    for event in _read(data, name, report, after):
        report.events.append(event)
        broken = course.broken
        for function in CHECKS.get(event.type, []):
            report.faults += function(event, course, report)
            report.recomputed[event.type] += 1
        course.take(event)
        if course.broken is not None and broken is None:
            report.faults.append(
                Fault.of(event, "document", course.broken, "a version that follows")
            )
    if not allow_unfinished and (not report.events or report.events[-1].type not in ENDS):
        last = "nothing" if not report.events else report.events[-1].name
        report.faults.append(
            Fault(None, name, "end of the log", last, "run.finished (or --allow-unfinished)")
        )
    return report


def _read(data: bytes, name: str, report: Report, after: Event | None) -> Iterator[Event]:
    """Yield the events that can be read; put the others among the faults."""
    lines = data.split(b"\n")
    if lines[-1]:
        report.faults.append(
            Fault(None, f"{name}, line {len(lines)}", "newline", "none", "a finished line")
        )
    seq = 1 if after is None else after.seq + 1
    prev = None if after is None else after.id
    known = True  # whether the id that the next line must follow is known
    for number, line in enumerate(lines[:-1], 1):
        where = f"{name}, line {number}"
        try:
            event = parse_event(line, where)
            _ = event.data
        except FaultError as error:
            report.faults.append(
                Fault(seq, where, "line", error.found, "an event whose id matches")
            )
            seq, known = seq + 1, False
            continue
        if event.seq != seq:
            report.faults.append(Fault.of(event, "seq", event.seq, seq))
        elif known and event.prev != prev:
            report.faults.append(Fault.of(event, "prev", event.prev, prev))
        if not is_canonical(event):
            report.faults.append(Fault.of(event, "form", "another form", "the canonical form"))
        yield event
        seq, prev, known = event.seq + 1, event.id, True

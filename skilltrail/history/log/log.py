"""The event log: a file of events, one a line, that is only ever added to.

A line counts only with its newline. A crash can leave an unfinished last line; the writer moves
that fragment to `<name>.torn` and goes on after the last whole event. Anything else that does
not fit is damage, is named, and is never repaired. Readers repair nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skilltrail.core.errors import FaultError
from skilltrail.core.files import writing
from skilltrail.history.log.events import Event, make_event, parse_event


@dataclass(frozen=True)
class TailCut:
    """What the writer cut: `size` bytes after event `after` (0 = none), now in `kept`."""

    log: Path
    kept: Path
    after: int
    size: int


def read_log(path: Path, *, after: Event | None = None, continues: bool = False) -> list[Event]:
    """Return all events of the log at `path`, each checked; for the arguments see `chained`.

    Raises:
        FaultError: names the first line that is torn, changed, missing or out of order.
    """
    events = scan_log(path, after=after, continues=continues)
    for event in events:
        _ = event.data
    return events


def scan_log(path: Path, *, after: Event | None = None, continues: bool = False) -> list[Event]:
    """Return all events as `read_log` does, but check each one's data only when it is used.

    Raises:
        FaultError: as `read_log`, and later when data that break their schema are used.
    """
    lines = _bytes(path).split(b"\n")
    if lines[-1]:
        raise FaultError(
            f"{path.name}, line {len(lines)}",
            "the last line is not finished",
            "Start the run again: it repairs the line and resumes from there",
        )
    return list(chained(lines[:-1], path.name, after, continues))


@dataclass(frozen=True)
class Reading:
    """What is whole of a log: its events up to the first line that is no event.

    Attributes:
        torn: why reading ended there, None where the whole log was read.
        unfinished: it ended in a last line without its newline, as a run that is on or was
            killed leaves it.
    """

    events: list[Event]
    torn: FaultError | None = None
    unfinished: bool = False


def read_whole(path: Path, *, continues: bool = False) -> Reading:
    """Return what is whole of the log at `path`; for `continues` see `chained`.

    Raises:
        FaultError: there is no such file.
    """
    lines = _bytes(path).split(b"\n")
    events: list[Event] = []
    try:
        events.extend(chained(lines[:-1], path.name, continues=continues))
    except FaultError as error:
        return Reading(events, error)
    if lines[-1]:
        where = f"{path.name}, line {len(lines)}"
        return Reading(events, FaultError(where, "the last line is not finished"), True)
    return Reading(events)


def chained(
    lines: Iterable[bytes], name: str, after: Event | None = None, continues: bool = False
) -> Iterator[Event]:
    """Yield the events of `lines`, each checked and following the one before.

    `after` is the event that the first line follows. `continues` takes a log that goes on from
    one that is not at hand (an evaluation's from a training log) at its word for that.
    """
    before = after
    for number, line in enumerate(lines, 1):
        where = f"{name}, line {number}"
        event = parse_event(line, where)
        if before is not None:
            check_link(event, before.seq + 1, before.id, where)
        elif not continues or event.prev is None:
            check_link(event, 1, None, where)
        yield event
        before = event


def check_link(event: Event, seq: int, prev: str | None, where: str) -> None:
    """Check that `event` has sequence number `seq` and follows the event with id `prev`."""
    if event.seq != seq:
        raise FaultError(where, f"has sequence number {event.seq}, {seq} is due")
    if event.prev != prev:
        raise FaultError(where, f"event {seq} does not follow the event before it")


def follow(last: Event | None, type: str, data: Mapping[str, Any]) -> Event:
    """Return the event that comes after `last` (None: the first of all), without writing it."""
    if last is None:
        return make_event(type, data, seq=1, prev=None)
    return make_event(type, data, seq=last.seq + 1, prev=last.id)


class Following:
    """A history in which each event follows the one before; the first one, `after`."""

    def __init__(self, after: Event | None = None) -> None:
        self._after = after
        self.events: list[Event] = []

    @property
    def next_seq(self) -> int:
        """Sequence number of the event that `append` will make next."""
        last = self.last
        return 1 if last is None else last.seq + 1

    @property
    def last(self) -> Event | None:
        """The event that the next one follows."""
        return self.events[-1] if self.events else self._after


class EventLog(Following):
    """The writer of one log. `flush` makes what was appended durable.

    Use it as a context manager, or call `close`. Only one writer may have a log open: the run's
    lock sees to that.
    """

    def __init__(self, path: Path, events: list[Event], after: Event | None = None) -> None:
        super().__init__(after)
        self.path, self.events = path, events
        with writing(path):
            self._file = path.open("ab", buffering=0)
            self._size = self._file.tell()

    @staticmethod
    def open(
        path: Path,
        *,
        after: Event | None = None,
        on_repair: Callable[[TailCut], None] | None = None,
    ) -> EventLog:
        """Open the log at `path`, or a new one; cut an unfinished last line.

        Raises:
            FaultError: the log is damaged elsewhere; the file is left as it is.
        """
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        data = _bytes(path) if path.exists() else b""
        whole = data.rfind(b"\n") + 1
        events = list(chained(data[:whole].split(b"\n")[:-1], path.name, after))
        if whole < len(data):
            repair = _cut(path, data, whole, events[-1].seq if events else 0)
            if on_repair is not None:
                on_repair(repair)
        return EventLog(path, events, after)

    def append(self, type: str, data: Mapping[str, Any]) -> Event:
        """Add the next event and return it.

        Raises:
            FaultError: the data break the schema of `type`; nothing is written.
        """
        event = follow(self.last, type, data)
        self.add(event)
        return event

    def add(self, event: Event) -> None:
        """Add an event that follows the last one; whoever follows the file sees it at once.

        Raises:
            SkilltrailError: the system refused, as from `flush` and `close`.
        """
        line = rest = event.line + b"\n"
        with writing(self.path):
            try:
                while rest:
                    rest = rest[self._file.write(rest) :]
            except OSError:
                # A part of a line in the middle would be damage, should another event follow.
                os.ftruncate(self._file.fileno(), self._size)
                raise
        self._size += len(line)
        self.events.append(event)

    def flush(self) -> None:
        """Make everything appended so far durable."""
        with writing(self.path):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if not self._file.closed:
            try:
                self.flush()
            finally:
                self._file.close()

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise FaultError(
            f"event log {path.name}", "there is none", "Train first: dvc repro"
        ) from error


def _cut(path: Path, data: bytes, whole: int, after: int) -> TailCut:
    """Move the unfinished line of `path` to `<name>.torn`, fragment first, then the cut."""
    kept = path.with_name(f"{path.name}.torn")
    with writing(kept), kept.open("ab") as file:
        file.write(data[whole:] + b"\n")
        file.flush()
        os.fsync(file.fileno())
    with writing(path), path.open("r+b") as file:
        file.truncate(whole)
        os.fsync(file.fileno())
    return TailCut(path, kept, after, len(data) - whole)

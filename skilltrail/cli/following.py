"""A log followed while a run writes it: what `tail -f` does, for events.

Followed is the run that is on, or else the last one until another starts. A run that is killed
and started again derives its events anew: those that were told are not told again, and where it
now goes another way that is said. A line counts only with its newline.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from skilltrail.core.errors import FaultError, UsageError
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import chained
from skilltrail.history.log.words import sentences
from skilltrail.store.place import Place
from skilltrail.ui.watch import Log, Stamp, logs

LEAST_DIGITS = 6  # of a run's digest


class News(NamedTuple):
    """A remark about the log that is followed, or an event and its sentence."""

    notice: str
    event: Event | None = None
    words: str = ""


class Follower:
    """Tells what is new each time it is asked.

    Args:
        run: a log file, or the first digits of a run's digest; None: whichever is on.

    Raises:
        UsageError: there is no such log.
    """

    def __init__(self, place: Place, run: str | None = None) -> None:
        self._place = place
        self._chosen = None if run is None else named_log(place, run)
        self._tail: Tail | None = None
        self._waiting = False

    def news(self) -> Iterator[News]:
        """Yield what came since the last time.

        Raises:
            FaultError: the log is damaged.
        """
        log = self._chosen if self._chosen is not None else self._on()
        if log is None:
            if not self._waiting:
                yield News("no run has begun yet: waiting for one")
            self._waiting = True
            return
        if self._tail is None or self._tail.path != log.path:
            self._tail = Tail(log.path)
            yield News(f"following {log.name}")
        yield from self._tail.news()

    def _on(self) -> Log | None:
        """Return the log to follow: that one still unless only others are on."""
        found = logs(self._place)
        running = [log for log in found if log.running]
        now = [] if self._tail is None else [Log("", self._tail.path)]
        still = [log for log in running for kept in now if log.path == kept.path]
        return next(iter([*still, *running, *now, *found]), None)


class Tail:
    """What one log file came to hold since the last look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = b""  # the lines that were told
        self._events: list[Event] = []
        self._stamp: Stamp | None = None

    def news(self) -> Iterator[News]:
        """Yield the events that were added, after a remark if others were taken back.

        Raises:
            FaultError: the log is damaged.
        """
        stamp = Log("", self.path).stamp()
        if stamp == self._stamp:
            return
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:  # DVC deletes outputs before a stage writes them
            return
        except OSError as error:
            raise FaultError(f"Reading {self.path.name}", str(error)) from error
        self._stamp = stamp
        data = data[: data.rfind(b"\n") + 1]
        if self._seen.startswith(data):  # nothing new, or a run that begins again
            return
        before = self._events
        if data.startswith(self._seen):
            last = before[-1] if before else None
            added = data[len(self._seen) :].split(b"\n")[:-1]
            self._events = [*before, *chained(added, self.path.name, last)]
            kept = len(before)
        else:
            self._events = list(chained(data.split(b"\n")[:-1], self.path.name))
            pairs = zip(before, self._events)  # noqa: B905 - the shorter one counts
            kept = next((n for n, (a, b) in enumerate(pairs) if a.id != b.id), len(before))
            yield News(f"the run now goes another way after event {kept}")
        self._seen = data
        for event, words in list(sentences(self._events))[kept:]:
            yield News("", event, words)


def named_log(place: Place, name: str) -> Log:
    """Return the log of that name.

    Raises:
        UsageError: there is none that could grow.
    """
    path = place.workspace / name
    if path.is_file():
        return Log(name, path)
    for log in logs(place):
        if log.name == name or (len(name) >= LEAST_DIGITS and log.name.startswith(name)):
            return log
    raise UsageError(
        f"--follow --run {name}",
        "no log file and no run's digest",
        "Name a file, or a folder of .skilltrail/runs; without --run the running one",
    )

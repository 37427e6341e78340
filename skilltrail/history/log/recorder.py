"""The recorder: what the loop tells its events to.

The loop always starts from the beginning and derives its events again. While each one equals
the event that stands in the live log, nothing is written. At the first one that differs (a
changed answer, a fixed scorer) the old log is kept beside as `<name>.superseded-<n>` and the
log goes on with the new event. So a run resumes, and repeats, without an event twice.

A projection (the git commits) is told at every flush, after the log is durable. It is never
the truth and its trouble never stops a run.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from skilltrail.core.errors import FaultError, SkilltrailError
from skilltrail.core.files import write_atomic, writing
from skilltrail.history.log.erasure import ERASED
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import EventLog, Following, TailCut, follow


class ProjectionError(SkilltrailError):
    """A projection could not follow the log; it catches up at the next flush."""


class Projection(Protocol):
    """Something that mirrors the log, such as commits on a side branch."""

    def flush(self, events: Sequence[Event]) -> None:
        """Catch up with `events`: the whole log so far, from its first event.

        Raises:
            ProjectionError: it could not; the log is safe and the next flush tries again.
        """

    def close(self, events: Sequence[Event]) -> None:
        """Catch up for good: nothing more is told. Raises as `flush`."""


class Recorder(Following):
    """Writes one run's live log, deriving again what already stands there.

    Args:
        path: the live log; created when there is none.
        after: the event that the first one follows (evaluation logs only).
        projection: told at every flush.
        report: called with (kind, details) of what is not an event: `log.repaired`,
            `log.superseded`, `projection.failed`. It belongs in the operations log.
    """

    def __init__(
        self,
        path: Path,
        *,
        after: Event | None = None,
        projection: Projection | None = None,
        report: Callable[[str, Mapping[str, Any]], None] = lambda kind, details: None,
    ) -> None:
        super().__init__(after)
        self._projection = projection
        self._report = report
        self._log = self._opened(path)
        self._existing = list(self._log.events)

    def _opened(self, path: Path) -> EventLog:
        try:
            return EventLog.open(path, after=self._after, on_repair=self._repaired)
        except FaultError as error:
            raise FaultError(
                f"The log {path.parent.name}/{path.name}, left as it is",
                str(error),
                "Put it back, or delete it: its events are derived again from recorded calls",
            ) from error

    @property
    def path(self) -> Path:
        return self._log.path

    @property
    def deriving(self) -> bool:
        """True while what the loop tells still stands in the log from an earlier time."""
        return len(self.events) < len(self._existing)

    def append(self, type: str, data: Mapping[str, Any]) -> Event:
        """Record the next event and return it.

        Raises:
            FaultError: the data break the schema of `type`; nothing is written.
        """
        event = follow(self.last, type, data)
        if self.deriving:
            existing = self._existing[len(self.events)]
            if existing.line == event.line:
                self.events.append(existing)
                return existing
            self._supersede(event.type)
        self._log.add(event)
        self.events.append(event)
        return event

    def flush(self) -> None:
        """Make all events durable, then let the projection catch up."""
        self._log.flush()
        if self._projection is not None:
            self._project(self._projection.flush)

    def finish(self) -> None:
        """End the log with the last event told; what stood after it is superseded.

        Tombstones stay: they tell of facts that nobody can derive again.
        """
        rest = self._existing[len(self.events) :]
        if all(event.type == ERASED for event in rest):
            self.events += rest
        else:
            self._supersede("nothing")
        self.close()

    def close(self) -> None:
        """Keep what there is; the run may go on another time. Closing twice does no harm."""
        self._log.close()
        if self._projection is not None:
            self._project(self._projection.close)
            self._projection = None

    def _project(self, step: Callable[[Sequence[Event]], None]) -> None:
        try:
            step(self.events)
        except ProjectionError as error:
            self._report("projection.failed", {"message": str(error)})

    def _supersede(self, type: str) -> None:
        """Keep the existing log beside and start the log anew with what was told so far."""
        self._log.close()
        path, kept = self.path, _free_name(self.path)
        with writing(kept):
            shutil.copyfile(path, kept)
        write_atomic(path, "".join(f"{event.line.decode()}\n" for event in self.events))
        self._report(
            "log.superseded",
            {
                "seq": self.next_seq,
                "stood": self._existing[len(self.events)].type,
                "now": type,
                "kept": kept.name,
            },
        )
        self._existing = []
        self._log = EventLog(path, list(self.events), self._after)

    def _repaired(self, repair: TailCut) -> None:
        details = {"after": repair.after, "bytes": repair.size, "kept": repair.kept.name}
        self._report("log.repaired", details)


def _free_name(path: Path) -> Path:
    number = 1
    while (kept := path.with_name(f"{path.name}.superseded-{number}")).exists():
        number += 1
    return kept

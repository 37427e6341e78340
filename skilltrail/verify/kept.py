"""The evaluations of a run that are at hand beside the one that is shown: logs beside the live
state, in whatever folder, and what only commits hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from skilltrail.core.layout import EVALUATION
from skilltrail.history.ask.evaluations import evaluation_logs
from skilltrail.history.ask.sources import Project
from skilltrail.history.git.branches import evaluations_in
from skilltrail.history.git.repository import Git
from skilltrail.history.log.events import Event
from skilltrail.runtime.evaluation.log import RUN_DIGITS
from skilltrail.store.place import Place
from skilltrail.verify.log import LogReport, verify_log


def kept_of(place: Place, training: LogReport, shown: Sequence[LogReport]) -> list[LogReport]:
    """Return what is found of each evaluation that goes on from `training`.

    Args:
        shown: the logs that a reader is shown; the same bytes are not read twice.
    """
    last = training.last
    if last is None:
        return []
    found = [_found(data, name, training, shown[-1]) for data, name in _logs(place, last)]
    known = {event.id for one in (*shown, *found) for event in one.events}
    git = Git.find(place.root)
    for events in () if git is None else evaluations_in(git):
        if events[0].prev == last.id and events[-1].id not in known:
            data = b"".join(event.line + b"\n" for event in events)
            name = f"the evaluation of commits at {events[-1].name}"
            found.append(_found(data, name, training, shown[-1]))
            known |= {event.id for event in events}
    return found


def _logs(place: Place, last: Event) -> Iterator[tuple[bytes, str]]:
    """Yield bytes and name of each log but the workspace's."""
    link = f'"prev":"{last.id}"'.encode()
    for path in evaluation_logs(Project(place.workspace, place.root)):
        if path == place.workspace / EVALUATION:
            continue
        data = path.read_bytes()
        if path.parent.name == last.id[:RUN_DIGITS] or link in data.split(b"\n", 1)[0]:
            yield data, path.name


def _found(data: bytes, name: str, training: LogReport, shown: LogReport) -> LogReport:
    lines = [event.line for event in shown.events]
    if not shown.faults and data == b"\n".join([*lines, b""]):
        return replace(shown, name=name, faults=[])
    return verify_log(data, name, allow_unfinished=True, after=training)

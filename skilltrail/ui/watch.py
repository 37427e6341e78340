"""What is there to see: the logs of this project, which of them is on, and what it does now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skilltrail.core.canon import loaded
from skilltrail.core.errors import FaultError
from skilltrail.core.held import is_held
from skilltrail.core.layout import EVALUATION, EVENTS
from skilltrail.history.log.erasure import end_of
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import chained
from skilltrail.history.log.types.outcomes import RolloutsScored
from skilltrail.history.log.words import sentences
from skilltrail.runtime.progress import FILE as PROGRESS
from skilltrail.runtime.progress import format_time
from skilltrail.store.owner import Owner
from skilltrail.store.place import Place
from skilltrail.store.usage import read_usage

STAGES = ("rollout", "reflect", "aggregate", "select", "update", "gate")
TAIL = 12

# What the loop does after an event of this type.
NEXT = {
    "run.started": "rollout",
    "skill.versioned": "rollout",
    "step.ended": "rollout",
    "budget.decided": "reflect",
    "reply.rejected": "reflect",
    "patch.proposed": "aggregate",
    "patch.merged": "select",
    "edits.selected": "update",
    "appendix.proposed": "update",
    "slow_update.compared": "reflect",
    "slow_update.proposed": "update",
    "compaction.proposed": "update",
    "meta_skill.written": "rollout",
    "candidate.built": "gate",
    "gate.judged": "gate",
}
# And after rollouts, by their purpose; after others it reflects.
AFTER = {"baseline": "rollout", "selection": "gate"}
Stamp = tuple[str, int, int]


@dataclass(frozen=True)
class Log:
    """A log file: the default one, or the live log of a run by its digest."""

    name: str
    path: Path
    running: bool = False

    def stamp(self) -> Stamp:
        """Return what changes whenever the file does."""
        try:
            status = self.path.stat()
        except OSError:
            return self.name, 0, 0
        return self.name, status.st_mtime_ns, status.st_size

    def end(self) -> str | None:
        """Return the id of its last whole event, None where it has none."""
        try:
            last = self.path.read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[2]
            return str(loaded(last)["id"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def events(self) -> list[Event]:
        """Return the events so far; a last line that is still being written is left out.

        Raises:
            FaultError: the log is damaged.
        """
        try:
            data = self.path.read_bytes()
        except OSError:
            return []
        events = list(chained(data.split(b"\n")[:-1], self.path.name))
        return events if len(events) > 1 else []


def logs(place: Place) -> list[Log]:
    """Return the logs of `place`: what is on first, then the last result, then older ones."""
    live = [
        Log(path.parent.name, path, _is_held(path.with_name("lock")))
        for path in (place.state / "runs").glob("*/events.jsonl")
    ]
    live.sort(key=lambda log: (not log.running, -log.stamp()[1], log.name))
    last = Log("last", place.workspace / EVENTS)
    standing = [last] if last.path.is_file() else []
    on = [log for log in live if log.running]
    return [*on, *standing, *(log for log in live if not log.running)]


def revision(place: Place, log: Log) -> tuple[Stamp, ...]:
    """Return what changes whenever the page of `log` would: the log, an evaluation, or notes,
    which lie where a run that is on writes all the time."""
    parts = [log, Log("evaluation", place.workspace / EVALUATION)]
    if not log.running:
        parts.append(Log("notes", place.state / "ops.jsonl"))
    return tuple(part.stamp() for part in parts)


def evaluation(place: Place, training: Sequence[Event]) -> list[Event]:
    """Return the evaluation log that goes on from `training`; [] when it belongs elsewhere."""
    try:
        data = (place.workspace / EVALUATION).read_bytes()
        return list(chained(data.split(b"\n")[:-1], "evaluation.jsonl", training[-1]))
    except (OSError, FaultError):
        return []


def now(events: Sequence[Event], *, running: bool) -> dict[str, Any]:
    """Return what a run does now: `stage` is one of `STAGES`, None when it is not on."""
    if not events:
        return {
            "stage": "rollout" if running else None,
            "step": None,
            "epoch": None,
            "tail": [],
        }
    step = next((e.data for e in reversed(events) if e.data.get("step") is not None), {})
    return {
        "stage": _stage(events[-1]) if running else None,
        "step": step.get("step"),
        "epoch": step.get("epoch"),
        "tail": tail(events),
    }


def tail(events: Sequence[Event]) -> list[str]:
    """Return the last events in words."""
    return [f"{event.seq} {words}" for event, words in sentences(events)][-TAIL:]


def word(events: Sequence[Event], *, running: bool, process: Mapping[str, Any]) -> str:
    """Return a run's state in one word; `process` is the command that this page started."""
    if running:
        return "Training"
    if process["running"]:
        stages = {"train": "Training", "evaluate": "Evaluating"}
        return stages.get(str(process["stage"]), "Running")
    if process["exit"]:
        return "Stopped" if process["stopped"] else "Failed"
    if not events:
        return "Idle"
    return "Finished" if end_of(events) is not None else "Stopped"


def progress(log: Log | None) -> dict[str, Any] | None:
    """Return rollouts `done`, `total` at most and seconds left of a run that is on; None where
    it does not say."""
    if log is None or not log.running:
        return None
    try:
        told = loaded(log.path.with_name(PROGRESS).read_bytes())
        total, left_s = told["total"], told["left_s"]
        return {
            "done": int(told["done"]),
            "total": None if total is None else int(total),
            "left": None if left_s is None else format_time(float(left_s)),
        }
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None  # not there yet, or just gone


def usage(place: Place) -> Mapping[str, Any] | None:
    """Return the calls and tokens of the last session, None where there are none.

    Raises:
        FaultError: the file is damaged.
    """
    return read_usage(place.state / "usage.json")


def _stage(event: Event) -> str | None:
    if isinstance(event.said, RolloutsScored):
        return AFTER.get(event.said.purpose, "reflect")
    return NEXT.get(event.type)


def _is_held(lock: Path) -> bool:
    """Return whether a live process has signed the lock, or holds it in another container."""
    try:
        signed = Owner.from_json(loaded(lock.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return signed.is_running or is_held(lock)

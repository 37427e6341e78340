"""Verify, level *anchored*: is the log the one that the commits hold?

A commit's hash covers its event and all before it, and is computed here from the log alone. So
a ref whose tip has the computed hash holds exactly this log. A log whose hashes were all made
right again after a change parts from the ref at the changed event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skilltrail.core.errors import FaultError
from skilltrail.history.git.commits import commits_of
from skilltrail.history.git.ref_names import RUNS
from skilltrail.history.git.repository import Git
from skilltrail.history.log.events import Event
from skilltrail.verify.faults import ANCHORED, Fault


@dataclass(frozen=True)
class Anchor:
    """Where a log is anchored: the ref that holds it, or why none does."""

    ref: str | None
    detail: str
    faults: tuple[Fault, ...] = ()


def find_anchor(door: Git, events: Sequence[Event]) -> Anchor:
    """Return the ref that holds `events`; a run that parts from them is named."""
    refs = door.refs(RUNS)
    if not refs:
        return Anchor(None, "this repository has no refs/evolution (fetch them, or rebuild)")
    try:
        chain = [commit.sha for commit in commits_of(events, door.object_format())]
    except FaultError as error:
        return Anchor(None, f"the log's commits cannot be computed ({error})")
    index = {sha: at for at, sha in enumerate(chain)}
    nearest, most = None, 0
    for ref, tip in sorted(refs.items()):
        shas = door.history(tip)
        shared = next((index[sha] + 1 for sha in shas if sha in index), 0)
        if shared == len(chain):
            return Anchor(ref, f"{ref} holds all {len(chain)} events (tip {chain[-1][:12]})")
        if shared > most:
            nearest, most = ref, shared
            parts = shas[: len(shas) - shared]
    if nearest is None:
        return Anchor(None, f"none of {len(refs)} runs holds this log's first event")
    if not parts:
        return Anchor(nearest, f"{nearest} holds the first {most} of {len(chain)} events")
    held = next(iter(door.files([parts[-1]], "event.json"))).decode().strip()
    event = events[most]
    fault = Fault.of(event, f"event held by {nearest}", event.line.decode(), held, ANCHORED)
    detail = f"no ref holds this log; {nearest} parts from it at event {event.seq}"
    return Anchor(None, detail, (fault,))

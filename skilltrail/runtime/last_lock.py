"""The last dvc.lock that was whole.

DVC empties and rewrites dvc.lock in place after each stage, so that a kill leaves half of it.
When a stage starts, DVC has just read it: that text is kept, and `skilltrail doctor --fix` goes
back to it.
"""

from __future__ import annotations

from skilltrail.core.files import write_atomic
from skilltrail.store.place import Place

LOCK = "dvc.lock"
_KEPT = "dvc.lock.last"


def keep_lock(place: Place) -> None:
    """Keep dvc.lock as the stage that starts now finds it; an empty one is not kept.

    Raises:
        SkilltrailError: the copy cannot be written.
    """
    path = place.workspace / LOCK
    data = path.read_bytes() if path.is_file() else b""
    if data.strip() and not place.is_temporary and data != kept_lock(place):
        write_atomic(place.state / _KEPT, data)


def kept_lock(place: Place) -> bytes | None:
    """Return the text that was kept last, None where none was."""
    path = place.state / _KEPT
    return path.read_bytes() if path.is_file() else None

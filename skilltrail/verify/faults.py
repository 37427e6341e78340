"""A fault: what a check found, what was recorded, what is right."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from skilltrail.history.log.events import Event

LOG, FACTS, ANCHORED = "log", "facts", "anchored"


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        seq: number of the event, None when the fault is none of one event.
        type: the event's type, or where else the fault lies.
        what: what was looked at, e.g. `mean_hard`.
        level: `log`, `facts` or `anchored`: the level that caught it.
    """

    seq: int | None
    type: str
    what: str
    recorded: Any
    right: Any
    level: str = LOG

    @staticmethod
    def of(event: Event, what: str, recorded: Any, right: Any, level: str = LOG) -> Fault:
        return Fault(event.seq, event.type, what, recorded, right, level)

    def __str__(self) -> str:
        where = self.type if self.seq is None else f"event {self.seq} ({self.type})"
        values = f"recorded {_shown(self.recorded)}, right is {_shown(self.right)}"
        return f"{where}: {self.what}: {values}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def _shown(value: Any, most: int = 160) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[:most]}…"

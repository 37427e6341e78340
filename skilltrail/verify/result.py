"""What verification finds, as values: faults, checks with their counts, and all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from msgspec import json

from skilltrail.history.log.events import Event

# What forged values make of code that may take real ones for granted.
BROKEN = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


class Level(str, Enum):
    """How deep a check looks: the files alone, recorded facts and inputs, or git."""

    LOG = "log"
    FACTS = "facts"
    ANCHORED = "anchored"


@dataclass(frozen=True)
class Fault:
    """What a check found wrong.

    Attributes:
        seq: number of the event, None when the fault is none of one event.
        type: the event's type, or where else the fault lies.
        what: what was looked at, e.g. `mean_hard`.
        level: the level that caught it.
    """

    seq: int | None
    type: str
    what: str
    recorded: Any
    right: Any
    level: Level = Level.LOG

    @staticmethod
    def of(
        event: Event, what: str, recorded: Any, right: Any, level: Level = Level.LOG
    ) -> Fault:
        return Fault(event.seq, event.type, what, recorded, right, level)

    def __str__(self) -> str:
        where = self.type if self.seq is None else f"event {self.seq} ({self.type})"
        values = f"recorded {_shown(self.recorded)}, right is {_shown(self.right)}"
        return f"{where}: {self.what}: {values}"


@dataclass(frozen=True)
class Check:
    """What one rule found: `done` of `of` things could be checked, and these faults.

    `note` tells a person what was looked at, or why it could not be; nothing reads it.
    """

    done: int
    of: int
    note: str = ""
    faults: tuple[Fault, ...] = ()

    @property
    def whole(self) -> bool:
        return self.done >= self.of


def together(checks: Sequence[Check]) -> Check:
    """Return several checks of one rule as one."""
    notes = dict.fromkeys(check.note for check in checks if check.note)
    done, of = sum(min(c.done, c.of) for c in checks), sum(c.of for c in checks)
    return Check(done, of, "; ".join(notes), tuple(f for c in checks for f in c.faults))


@dataclass(frozen=True)
class Row:
    """A check, under the rule and at the level that it was made for."""

    level: Level
    rule: str
    check: Check


@dataclass(frozen=True)
class Verification:
    """All checks of one run.

    Attributes:
        unknown: how many decisions carry a tag that this version does not know, by tag.
        anchor: the published hash or tag that the run was held against, None without one.
    """

    name: str
    events: int
    rows: tuple[Row, ...]
    unknown: Mapping[str, int]
    anchor: str | None = None

    @property
    def faults(self) -> list[Fault]:
        return [fault for row in self.rows for fault in row.check.faults]

    def at(self, level: Level) -> list[Row]:
        return [row for row in self.rows if row.level is level]

    def counts(self, level: Level) -> tuple[int, int]:
        """Return how many things of a level were checked, and of how many."""
        checks = [row.check for row in self.at(level)]
        return sum(min(c.done, c.of) for c in checks), sum(c.of for c in checks)

    def whole(self, level: Level) -> bool:
        """True when there was something to check at this level, and all of it was."""
        done, of = self.counts(level)
        return 0 < of == done

    def exit_code(self, allowed: Collection[Level] = ()) -> int:
        """Return 1 for a fault, 3 where a level not in `allowed` is not whole, else 0."""
        if self.faults:
            return 1
        return 0 if all(self.whole(one) or one in allowed for one in Level) else 3

    def to_json(self) -> dict[str, Any]:
        levels = [
            {
                "name": level.value,
                "state": "checked" if self.whole(level) else "not checked",
                "checked": self.counts(level)[0],
                "of": self.counts(level)[1],
                "rules": [
                    {"rule": row.rule, "checked": row.check.done, "of": row.check.of,
                     "note": row.check.note} for row in self.at(level)
                ],
            }
            for level in Level
        ]  # fmt: skip
        return {
            "name": self.name,
            "events": self.events,
            "levels": levels,
            "faults": [asdict(fault) for fault in self.faults],
            "not_recomputed": dict(self.unknown),
            "anchor": self.anchor,
        }


@dataclass
class Tags:
    """Counts decisions whose tag is not known here: they cannot be recomputed."""

    unknown: Counter[str] = field(default_factory=Counter)

    def knows(self, tag: str | None, *known: str) -> bool:
        """True when `tag` is one of `known`; None (a model decided) is not counted."""
        if tag in known:
            return True
        if tag is not None:
            self.unknown[tag] += 1
        return False


def differing(
    event: Event, right: Mapping[str, Any], level: Level = Level.LOG
) -> Iterator[Fault]:
    """Yield a fault for each field of the event that is not what it should be, as JSON."""
    for name, value in right.items():
        found = json.decode(json.encode(getattr(event.said, name, None)))
        if found != value:
            yield Fault.of(event, name, found, value, level)


def _shown(value: Any, most: int = 160) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[:most]}…"

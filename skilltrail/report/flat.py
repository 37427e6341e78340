"""Flat tables of a run, for spreadsheets and data frames: rows of plain values.

steps      the curve, a row per step (`skilltrail.report.tables.COLUMNS`)
rollouts   a row per scored rollout, in the order of the log
versions   a row per version of the skill
events     a row per event: number, type, one sentence, the data as JSON
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from skilltrail.core.canon import canonical
from skilltrail.core.errors import UsageError
from skilltrail.history.log.events import Event
from skilltrail.history.log.words import sentences
from skilltrail.report.tables import COLUMNS, curve

Row = dict[str, Any]
# A spreadsheet takes a cell that begins so for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def table_of(name: str, training: Sequence[Event], evaluation: Sequence[Event]) -> list[Row]:
    """Return a table; every row has the same columns, absent values are None.

    Raises:
        UsageError: there is no such table.
    """
    if name not in TABLES:
        raise UsageError(f"table {name!r}", f"the tables are {', '.join(TABLES)}")
    return list(TABLES[name]([*training, *evaluation]))


def csv_text(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Return rows as CSV (RFC 4180, LF, UTF-8); None is an empty cell.

    A text that a spreadsheet would run as a formula gets an apostrophe in front.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row[name]) for name in columns])
    return out.getvalue()


def columns_of(name: str) -> tuple[str, ...]:
    """Return the columns of a table, in order."""
    return _COLUMNS[name]


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def _steps(events: Sequence[Event]) -> Iterator[Row]:
    yield from curve(events)


# Columns are fields of the events, named in one list each: so here their JSON is read.
def _rollouts(events: Sequence[Event]) -> Iterator[Row]:
    for event in events:
        if event.type == "rollouts.scored":
            data = event.data
            about = {name: data.get(name) for name in ("purpose", "epoch", "step", "split")}
            for row in data["items"]:
                named = {name: row.get(name) for name in _ROW}
                yield {"event": event.seq} | about | {"skill": data["skill"]} | named


def _versions(events: Sequence[Event]) -> Iterator[Row]:
    gates = {event.seq: event.data for event in events if event.type == "gate.judged"}
    for event in events:
        if event.type == "skill.versioned":
            gate: Mapping[str, Any] = gates.get(event.data["gate"], {})
            scores = {name: gate.get(name) for name in ("before", "after")}
            yield {name: event.data.get(name) for name in _VERSION} | scores


def _events(events: Sequence[Event]) -> Iterator[Row]:
    for event, words in sentences(events):
        data = canonical(event.data)
        yield {"event": event.seq, "type": event.type, "told": words, "data": data}


_ROW = ("item", "target", "repeat", "outcome", "hard", "soft", "reason", "key")
_VERSION = (
    "version", "epoch", "step", "best", "digest", "parent", "patch", "tokens", "lines_added",
    "lines_removed",
)  # fmt: skip
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "steps": COLUMNS,
    "rollouts": ("event", "purpose", "epoch", "step", "split", "skill", *_ROW),
    "versions": (*_VERSION, "before", "after"),
    "events": ("event", "type", "told", "data"),
}
TABLES: Mapping[str, Callable[[Sequence[Event]], Iterator[Row]]] = {
    "steps": _steps,
    "rollouts": _rollouts,
    "versions": _versions,
    "events": _events,
}

"""Tags and notes that people give to runs: lines of the operations journal, never events.

A note is about a run as it was: it names the last event of that time, and is shown with every
run that holds this event, under whatever name, so a run that went on keeps its notes.

    {"type": "run.noted", "run": "main", "event": "<id>", "tags": ["baseline"], "note": "…"}
    {"type": "run.noted", …, "untagged": ["baseline"]}
    {"type": "run.noted", …, "cleared": true}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skilltrail.core.errors import UsageError
from skilltrail.history.log.events import Event
from skilltrail.store.ops import Ops, read_ops

TYPE = "run.noted"
MOST_CHARS = 2_000
MOST_TAG_CHARS = 40


@dataclass(frozen=True)
class Noted:
    """What people said of a run, oldest first."""

    tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tags or self.notes)

    def __str__(self) -> str:
        return "; ".join(part for part in (" ".join(self.tags), *self.notes) if part)


def notes_of(ops: Path, runs: Mapping[str, Sequence[Event]]) -> dict[str, Noted]:
    """Return what was said of each run; a line of the journal that is damaged says nothing."""
    said: dict[str, list[Mapping[str, Any]]] = {}
    for record in read_ops(ops):
        if record.get("type") == TYPE and isinstance(record.get("event"), str):
            said.setdefault(record["event"], []).append(record)
    found = {}
    for name, events in runs.items():
        ids = [event.id for event in events if event.id in said] if said else []
        found[name] = _folded([record for id in ids for record in said[id]])
    return found


def write_note(
    ops: Ops,
    name: str,
    last: Event,
    *,
    note: str | None = None,
    tags: Sequence[str] = (),
    untagged: Sequence[str] = (),
    cleared: bool = False,
) -> None:
    """Write what a person says of a run.

    Raises:
        UsageError: a tag is no word, or a text is too long.
    """
    for tag in (*tags, *untagged):
        if not tag or len(tag) > MOST_TAG_CHARS or not tag.isprintable() or " " in tag:
            found = f"a tag is a word of at most {MOST_TAG_CHARS} characters"
            raise UsageError(
                f"tag {tag[:60]!r}", found, "Use --tag baseline, and a note for more"
            )
    if note is not None and not 0 < len(note.strip()) <= MOST_CHARS:
        found = f"{len(note)} characters, a note has 1 to {MOST_CHARS}"
        raise UsageError("The note", found, "Shorten it")
    fields: dict[str, Any] = {"tags": list(tags), "untagged": list(untagged)}
    fields |= {"note": note, "cleared": cleared or None}
    ops.write(TYPE, run=name, event=last.id, **{k: v for k, v in fields.items() if v})


def _folded(records: Sequence[Mapping[str, Any]]) -> Noted:
    tags: dict[str, None] = {}
    notes: list[str] = []
    for record in records:
        if record.get("cleared") is True:
            tags, notes = {}, []
        for tag in _texts(record.get("tags")):
            tags[tag] = None
        for tag in _texts(record.get("untagged")):
            tags.pop(tag, None)
        notes += _texts([record.get("note")])
    return Noted(tuple(tags), tuple(notes))


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []

"""An analyst's reply read: edits, failure types and notes, each claim checked.

Items are among those shown, failure types in the environment's list and joined by item id (what
nobody said is `unknown`), support is counted, and a note quotes a line that the skill has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skilltrail.optimizers.failure_types import UNKNOWN
from skilltrail.optimizers.llm.proposals import (
    REWRITE,
    ParsedEdits,
    ProposalContext,
    document_faults,
    named_items,
    sort_edits,
    sort_suggestions,
)
from skilltrail.optimizers.llm.question import Parsed, reasoning_of
from skilltrail.optimizers.llm.reading.replies import quoted
from skilltrail.skill.document import neutralised, split_lines
from skilltrail.skill.edit import Edit
from skilltrail.skill.untrusted import same_word

_NOTE_CHARS = 300


@dataclass(frozen=True)
class Assignment:
    """What one analyst was given.

    Attributes:
        mode: the update mode.
        ids: the items it was shown, in order.
        types: the environment's failure types; () for an analyst of successes.
        wants_notes: True when it may write notes on lapses.
        most_edits: how many edits count, in order; 0 = all.
    """

    mode: str
    ids: tuple[str, ...]
    types: tuple[str, ...]
    wants_notes: bool
    ground: ProposalContext
    most_edits: int = 0


@dataclass(frozen=True)
class Draft:
    """The usable part of an analyst's reply, with the commands that the agent may be told."""

    edits: tuple[Edit, ...]
    reasoning: str
    failure_types: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    procedures: tuple[str, ...] = ()
    cut: int = 0  # edits beyond the most that counts


def read_analysis(given: Assignment, found: Mapping[str, Any]) -> Parsed[Draft]:
    """Return the usable part of an analyst's reply, with what is wrong with the rest."""
    if given.mode == "patch":
        kept = sort_edits(found["edits"], given.ground)
    elif given.mode == "rewrite_from_suggestions":
        kept = sort_suggestions(found["suggestions"], given.ground)
    else:
        kept = _whole(found, given.ground)
        if kept.faults:
            return Parsed(None, tuple(kept.faults))
    edits = named_items(kept.edits, frozenset(given.ids), kept)
    types = _failure_types(given, found, kept)
    notes = _notes(given, found, kept)
    kept_edits = edits[: given.most_edits] if given.most_edits else edits
    told = tuple(given.ground.screen.procedures(kept_edits))
    cut = len(edits) - len(kept_edits)
    draft = Draft(tuple(kept_edits), reasoning_of(found), types, notes, told, cut)
    return Parsed(draft, tuple(kept.faults), tuple(kept.dropped))


def _whole(found: Mapping[str, Any], ground: ProposalContext) -> ParsedEdits:
    text = found["document"]
    items = tuple(item for item in found.get("items") or () if isinstance(item, str))
    faults = document_faults(text, ground)
    if faults or text.strip() == ground.skill.strip():
        return ParsedEdits(faults=faults)
    return ParsedEdits([Edit(REWRITE, content=text, items=items)])


def _failure_types(
    given: Assignment, found: Mapping[str, Any], kept: ParsedEdits
) -> Mapping[str, str]:
    """Return a type for each failed item, joined by its id; `unknown` where nobody said."""
    if not given.types:
        return {}
    said: dict[str, set[str]] = {id: set() for id in given.ids}
    for number, part in enumerate(found.get("failures") or ()):
        if part is None:
            continue
        item, type = part["item"], part["type"]
        known = None if type is None else same_word(type, given.types)
        type = type if known is None else known
        if item not in said:
            kept.dropped.append(f"failures[{number}]: {quoted(item)} was not shown")
        elif type is not None and type not in given.types:
            kept.dropped.append(f"failures[{number}]: {quoted(type)} is not in the list")
        elif type is not None:
            said[item].add(type)
    for item, types in said.items():
        if len(types) > 1:
            both = quoted(sorted(types))
            kept.dropped.append(f"failures: item {quoted(item)} is given the types {both}")
    return {
        item: next(iter(types)) if len(types) == 1 else UNKNOWN for item, types in said.items()
    }


def _notes(given: Assignment, found: Mapping[str, Any], kept: ParsedEdits) -> tuple[str, ...]:
    """Return the notes that remind of a line the skill has."""
    lines = {line.strip() for line in split_lines(given.ground.skill) if line.strip()}
    notes = []
    for number, part in enumerate(found.get("notes") or ()):
        if part is None:
            continue
        note, rule = " ".join(part["note"].split()), part["rule"].strip()
        if not given.wants_notes:
            problem: str | None = "notes were not asked for"
        elif rule not in lines:
            problem = f"new_rule: no line of the document is {quoted(rule)}"
        elif not note or len(note) > _NOTE_CHARS or neutralised(note) != note:
            problem = f"bad_note: a note is 1 to {_NOTE_CHARS} characters without a marker"
        else:
            problem = given.ground.screen.text_refusal(note)
        if problem is None:
            notes.append(note)
        else:
            kept.dropped.append(f"notes[{number}]: {problem}")
    return tuple(dict.fromkeys(notes))

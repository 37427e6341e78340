"""An edit of a skill document, what became of it, and the patch in which it is proposed.

Operations (SkillOpt's four, and one for protected regions):

    append         add `content` at the end (of `section`, when given)
    insert_after   add `content` as new lines after the lines that `target` names
    replace        put `content` in place of the lines that `target` names
    delete         remove the lines that `target` names
    write_region   set the text of a protected region (`target` = region name); owners only

A target is whole lines of the parent document and must match exactly once.

The rewriting update modes propose in other terms, which are never applied as edits: `suggest`
(advice in words) and `rewrite` (`content` is a whole document).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from skilltrail.core.canon import Word
from skilltrail.skill.folder import MAIN

OPS = ("append", "insert_after", "replace", "delete", "write_region")


def text_lines(text: str) -> list[str]:
    """Return an edit's text as lines: CR LF read as LF, one final line end left out."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if len(lines) > 1 and lines[-1] == "" else lines


class EditStatus(Word):
    APPLIED = "applied"
    NOT_FOUND = "not_found"
    AMBIGUOUS = "ambiguous"
    PROTECTED = "protected"
    CONFLICT = "conflict"
    NOOP = "noop"
    INVALID = "invalid"


@dataclass(frozen=True)
class Edit:
    """One proposed change.

    Attributes:
        op: one of `OPS`, or `suggest` or `rewrite`.
        target: existing text (whole lines), or a region's name for `write_region`.
        content: new text.
        file: which file of a skill folder it changes.
        section: a heading's text that scopes the match or the append; None = whole document.
        inline: True allows a target inside one line (never across its ends).
        kind: `rule`, `example` (a worked example from a train item), `note`, `guidance`.
        reason: why, in one sentence, as the proposer said it.
        items: ids of the distinct train items behind it; support is their number.
        id: `<event seq>.<index>` once an event carries it; "" before.
        parents: ids of the edits it was merged from.
    """

    op: str
    target: str = ""
    content: str = ""
    section: str | None = None
    inline: bool = False
    kind: str = "rule"
    reason: str = ""
    items: tuple[str, ...] = ()
    id: str = ""
    parents: tuple[str, ...] = ()
    file: str = MAIN

    @cached_property
    def lines(self) -> list[str]:
        """The new text as lines; see `text_lines`."""
        return text_lines(self.content)

    @property
    def support(self) -> int:
        """Number of distinct train items behind the edit, computed and never claimed."""
        return len(set(self.items))

    def to_json(self) -> dict[str, Any]:
        told = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "id"}
        lists = {"items": list(self.items), "parents": list(self.parents)}
        if self.file == MAIN:
            del told["file"]
        return {"edit": self.id, **told, **lists, "support": self.support}

    @staticmethod
    def of(made: Any) -> Edit:
        """Return the edit that an event's `EditMade` tells."""
        file = MAIN if made.file is None else made.file
        return Edit(
            made.op,
            made.target,
            made.content,
            made.section,
            made.inline,
            made.kind,
            made.reason,
            made.items,
            made.edit,
            made.parents,
            file,
        )


@dataclass(frozen=True)
class EditResult:
    """What became of one edit: exactly one result per proposed edit.

    Attributes:
        edit: the edit's id.
        status: see `EditStatus`.
        lines: 1-based line numbers in the parent document: of the span for applied and
            protected edits, of every match for ambiguous ones.
        detail: a sentence for people (nearest real text, which edit it conflicts with, ...).
        matched_by: `exact`, or `trailing_space` when only blanks at line ends differed.
    """

    edit: str
    status: EditStatus
    lines: tuple[int, ...] = ()
    detail: str = ""
    matched_by: str = "exact"

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "status": self.status.value, "lines": list(self.lines)}


@dataclass(frozen=True)
class Patch:
    """One analyst's output.

    Attributes:
        source: `failure` or `success`.
        items: ids of the train items it was shown, in order.
        edits: proposed edits.
        reasoning: the analyst's own words.
        failure_types: item id -> type from the environment's closed list.
        shown: what of the trajectories was shown, and what was clipped.
        reply: fact key of the optimizer's reply; None for rules.
        notes: short reminders of rules that exist and were not followed (`skill_aware`).
        id: `p<event seq>` once an event carries it.
    """

    source: str
    items: tuple[str, ...]
    edits: tuple[Edit, ...]
    reasoning: str = ""
    failure_types: Mapping[str, str] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)
    reply: str | None = None
    notes: tuple[str, ...] = ()
    id: str = ""

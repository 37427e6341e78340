"""An edit of a skill document, and what became of it.

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
from dataclasses import dataclass
from enum import Enum
from typing import Any

OPS = ("append", "insert_after", "replace", "delete", "write_region")


class EditStatus(str, Enum):
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

    @property
    def support(self) -> int:
        """Number of distinct train items behind the edit, computed and never claimed."""
        return len(set(self.items))

    def to_json(self) -> dict[str, Any]:
        return {
            "edit": self.id,
            "op": self.op,
            "target": self.target,
            "content": self.content,
            "section": self.section,
            "inline": self.inline,
            "kind": self.kind,
            "reason": self.reason,
            "items": list(self.items),
            "support": self.support,
            "parents": list(self.parents),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Edit:
        return Edit(
            op=data["op"],
            target=data["target"],
            content=data["content"],
            section=data["section"],
            inline=data["inline"],
            kind=data["kind"],
            reason=data["reason"],
            items=tuple(data["items"]),
            id=data["edit"],
            parents=tuple(data["parents"]),
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
        return {
            "edit": self.edit,
            "status": self.status.value,
            "lines": list(self.lines),
            "detail": self.detail,
            "matched_by": self.matched_by,
        }

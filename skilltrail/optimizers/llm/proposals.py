"""What analysts and mergers propose, read one by one: kept, or named with the reason.

An edit is tried on the current document by itself, so one that finds no place is told to its
author (with the nearest real text) while a correction is still to be had. A refusal for what an
edit carries is final: nobody is taught how to phrase it past the screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skilltrail.core.tokens import count_tokens
from skilltrail.optimizers.llm.reading.replies import quoted
from skilltrail.optimizers.llm.shown.past import describe
from skilltrail.optimizers.screen import Screen
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.document import parse
from skilltrail.skill.edit import Edit, EditStatus
from skilltrail.skill.folder import files_of, is_folder, parts_of
from skilltrail.skill.folder_edits import FROZEN
from skilltrail.skill.rewrite import rewrite
from skilltrail.skill.untrusted import Unusable, edit_from_untrusted

SUGGEST = "suggest"
REWRITE = "rewrite"
_EXAMPLES = "example"


@dataclass(frozen=True)
class ProposalContext:
    """What proposals are held against: the document, its size limit, the screen, whether its
    frontmatter is frozen, and of a folder: whether scripts may change, and references be made
    and removed."""

    skill: str
    max_tokens: int | None
    screen: Screen
    frozen: bool = True
    scripts: bool = False
    references: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The files of a skill folder; () for a skill of one file that stays one."""
        folder = self.references or is_folder(self.skill)
        return tuple(files_of(self.skill)) if folder else ()


@dataclass
class ParsedEdits:
    """Proposals that are kept, with what is wrong with the others (see `ask.Reading`)."""

    edits: list[Edit] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def sort_edits(parts: Sequence[Any], ground: ProposalContext) -> ParsedEdits:
    """Return the usable edits of a reply's `edits`; None in it = named by the schema."""
    found = ParsedEdits()
    for number, part in enumerate(parts):
        if part is None:
            continue
        edit = edit_from_untrusted(part, ground.files, references=ground.references)
        if isinstance(edit, Unusable):
            found.faults.append(f"edits[{number}]: {edit.reason}")
        else:
            _sort(f"edits[{number}]", _kind_made_safe(edit), ground, found)
    return found


def sort_suggestions(parts: Sequence[Any], ground: ProposalContext) -> ParsedEdits:
    """Return the usable suggestions of a reply, as edits of op `suggest`."""
    found = ParsedEdits()
    for number, part in enumerate(parts):
        if part is None:
            continue
        edit = edit_from_untrusted({**part, "op": "append", "target": None, "section": None})
        name = f"suggestions[{number}]"
        if isinstance(edit, Unusable) or not edit.content.strip():
            found.faults.append(f"{name}: content is text that says what to change")
            continue
        edit = replace(_kind_made_safe(edit), op=SUGGEST)
        refusal = ground.screen.refusal(edit)
        if refusal is not None:
            found.dropped.append(f"{name} ({describe(edit)}): {refusal}")
        else:
            found.edits.append(edit)
    return found


def document_faults(text: str, ground: ProposalContext) -> list[str]:
    """Return what is wrong with a whole new document; [] = it can be a candidate."""
    candidate = rewrite(
        ground.skill, text, "0", frozen=ground.frozen, references=ground.references
    )
    result = candidate.results[0]
    if result.status is EditStatus.NOOP:
        return []
    if result.status is not EditStatus.APPLIED:
        return [f"document: {result.status.value}: {result.detail}"]
    faults = [f"document: {fault}" for fault in candidate.faults]
    faults += _size_faults(candidate.text, ground)
    document = parse(candidate.text)
    shown = [
        range(section.start, section.end)
        for section in document.sections
        if _EXAMPLES in section.title.casefold()
    ]
    marks = {part.start - 1 for part in parts_of(candidate.text)[1:]}  # no part of any file
    for number, source in enumerate(candidate.sources):
        if not isinstance(source, str) or number in marks:
            continue
        line = document.lines[number]
        is_example = any(number in lines for lines in shown)
        refusal = ground.screen.text_refusal(line, examples=is_example)
        if refusal is not None:
            faults.append(f"document: the new line {quoted(line)}: {refusal}")
    return faults


def _kind_made_safe(edit: Edit) -> Edit:
    """Only a worked example that says which item it shows is one."""
    is_example = edit.kind == "example" and bool(edit.items)
    return replace(edit, kind="example" if is_example else "rule")


def _sort(name: str, edit: Edit, ground: ProposalContext, found: ParsedEdits) -> None:
    said = f"{name} ({describe(edit)})"
    refusal = ground.screen.refusal(edit)
    if refusal is not None:
        found.dropped.append(f"{said}: {refusal}")
        return
    scripts = None if ground.scripts else FROZEN
    one = [replace(edit, id="")]
    candidate = apply_edits(
        ground.skill, one, frozen=ground.frozen, scripts=scripts, references=ground.references
    )
    result = candidate.results[0]
    problem = f"{said}: {result.status.value}: {result.detail}"
    if result.status is EditStatus.NOOP:
        found.dropped.append(problem)
    elif result.status is not EditStatus.APPLIED:
        found.faults.append(problem)
    elif candidate.faults:
        found.faults.append(f"{said}: {'; '.join(candidate.faults)}")
    elif faults := _size_faults(candidate.text, ground):
        found.dropped.append(f"{said}: {faults[0]}")
    else:
        found.edits.append(edit)


def _size_faults(text: str, ground: ProposalContext) -> list[str]:
    """Return a fault when `text` is over the limit and no smaller than what stands."""
    size = count_tokens(text)
    if ground.max_tokens is None or size <= ground.max_tokens:
        return []
    if size < count_tokens(ground.skill):
        return []
    return [f"too_large: the document would hold {size} tokens of at most {ground.max_tokens}"]


def named_items(
    edits: Sequence[Edit], known: Mapping[str, Any] | frozenset[str], found: ParsedEdits
) -> list[Edit]:
    """Return the edits with only items that were shown; others are named and do not count."""
    kept = []
    for edit in edits:
        strangers = [item for item in edit.items if item not in known]
        if strangers:
            found.dropped.append(
                f"({describe(edit)}): unknown_items: {quoted(strangers)} were not shown and "
                "do not count as support"
            )
        items = tuple(dict.fromkeys(item for item in edit.items if item in known))
        kept.append(replace(edit, items=items))
    return kept

"""One edit against its parent document: the exact change it makes, or why it makes none.

Nothing here looks at other edits, so a result does not depend on their order. Refusals carry a
code (`missing_target: …`) that programs can read.

Where text goes: `append` puts it after the last line of text of the document (or of the named
section, before its first subsection, unless it begins with a heading itself), ahead of
protected regions and blank lines that stand at that end. A blank line is added only where
Markdown would otherwise fuse the new text with its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skilltrail.skill.document import (
    REGIONS,
    Document,
    Section,
    marker,
    marker_line,
    neutralised,
)
from skilltrail.skill.edit import OPS, Edit, EditStatus
from skilltrail.skill.folder import is_mark
from skilltrail.skill.guards import check_insertion, check_replacement
from skilltrail.skill.markdown import HEADING, holds_text, is_blank, is_heading, scan
from skilltrail.skill.match import EditRefused, Match, Place, bare, match_inline, match_lines
from skilltrail.skill.structure import structure_faults


@dataclass(frozen=True)
class Change:
    """What an edit does, in places of the parent document.

    Attributes:
        start, end: the text it takes out; equal for an insertion.
        lines: the lines it puts there; for an inline change one string within a line.
        anchor: text that must stay for the change to make sense (other edits may not take it).
        spaced: True when blank lines may be added around the new lines.
        report: 1-based lines for the result.
    """

    start: Place
    end: Place
    lines: tuple[str, ...]
    anchor: tuple[Place, Place] | None = None
    inline: bool = False
    spaced: bool = False
    report: tuple[int, ...] = ()
    matched_by: str = "exact"
    detail: str = ""
    region: str | None = None


def resolve(document: Document, edit: Edit, owner: str | None) -> Change:
    """Return the change that `edit` makes.

    Raises:
        Refused: with the status and the reason.
    """
    if edit.op not in OPS:
        raise EditRefused(EditStatus.INVALID, f"unknown_op: op is one of {', '.join(OPS)}")
    if edit.op == "write_region":
        return _write_region(document, edit, owner)
    _check_texts(edit)
    if edit.op == "append":
        return _append(document, edit)
    first, last = 0, len(document.lines)
    if edit.section is not None and edit.section.strip():
        section = find_section(document, edit.section)
        _check_headings(edit, section)
        first, last = section.start, section.end
    if edit.inline:
        return _inline(document, edit, match_inline(document, edit.target, first, last))
    match = match_lines(document, edit.target, first, last)
    if edit.op == "insert_after":
        return _insert_after(document, edit, match)
    return _replace(document, edit, match)


def find_section(document: Document, name: str) -> Section:
    """Return the one section with heading text `name` (`#` signs in front pin the level).

    Raises:
        Refused: not_found or ambiguous.
    """
    title = name.strip()
    bare = title.lstrip("#")
    level = len(title) - len(bare)
    found = [s for s in document.sections if s.title == title]
    if not found and level and bare.startswith((" ", "\t")):
        found = [s for s in document.sections if (s.title, s.level) == (bare.strip(), level)]
    if len(found) == 1:
        return found[0]
    if found:
        detail = f"section_matches={len(found)}: several sections have this heading"
        raise EditRefused(EditStatus.AMBIGUOUS, detail, (s.start + 1 for s in found))
    known = "; ".join(section.title for section in document.sections[:12]) or "none"
    raise EditRefused(EditStatus.NOT_FOUND, f"no_section: headings of the document: {known}")


def _check_texts(edit: Edit) -> None:
    """Refuse what is wrong with an edit whatever the document says."""
    if "\0" in edit.content or "\0" in edit.target:
        raise EditRefused(EditStatus.INVALID, "nul: the text holds a NUL character")
    if edit.op != "append" and not edit.target.strip():
        raise EditRefused(EditStatus.INVALID, f"missing_target: {edit.op} needs a target")
    if edit.op == "delete":
        return
    if not holds_text(edit.content):
        if edit.op == "replace":
            raise EditRefused(EditStatus.INVALID, "missing_content: to remove lines use delete")
        raise EditRefused(EditStatus.NOOP, "blank: there is no text to add")
    if any(marker(line) for line in edit.lines):
        detail = "marker: content may not hold the marker line of a protected region"
        raise EditRefused(EditStatus.INVALID, detail)
    if any(is_mark(line) for line in edit.lines):
        detail = "marker: content may not hold the line that begins a file of the skill"
        raise EditRefused(EditStatus.INVALID, detail)
    if edit.inline and len(edit.lines) != 1:
        raise EditRefused(EditStatus.INVALID, "inline_content: inline content is one line")


def _check_headings(edit: Edit, section: Section) -> None:
    if edit.op == "delete":
        return
    for block in scan(edit.lines):
        if block.kind == HEADING and block.level <= section.level:
            raise EditRefused(
                EditStatus.INVALID,
                f"heading: content opens a section of level {block.level} inside the section"
                f" {section.title!r} of level {section.level}",
                (section.start + 1,),
            )


def _append(document: Document, edit: Edit) -> Change:
    lines = _without_outer_blanks(edit.lines)
    first, last, anchor = document.frontmatter, len(document.lines), None
    if edit.section is not None and edit.section.strip():
        section = find_section(document, edit.section)
        _check_headings(edit, section)
        first = section.body
        last = section.end if is_heading(lines[0]) else section.own_end
        anchor = ((section.start, 0), (section.body, 0))
    at = _end_of_text(document, first, last)
    check_insertion(document, at, lines)
    return Change(
        (at, 0),
        (at, 0),
        tuple(lines),
        anchor,
        spaced=not document.plain,
        report=(at,) if at else (),
    )


def _end_of_text(document: Document, first: int, last: int) -> int:
    """Return the line after the last line of text in `first` up to `last`, regions apart."""
    at = last
    while at > first and (
        is_blank(document.lines[at - 1]) or document.touches_region(at - 1, at)
    ):
        at -= 1
    return at


def _without_outer_blanks(lines: Sequence[str]) -> list[str]:
    text = [number for number, line in enumerate(lines) if not is_blank(line)]
    return list(lines[text[0] : text[-1] + 1]) if text else list(lines)


def _insert_after(document: Document, edit: Edit, match: Match) -> Change:
    lines = edit.lines
    at = match.end[0]
    check_insertion(document, at, lines)
    in_table_end = any(b.kind == "table" and b.end == at for b in document.blocks)
    return Change(
        (at, 0),
        (at, 0),
        tuple(lines),
        anchor=(match.start, match.end),
        spaced=in_table_end,
        report=match.lines,
        matched_by=match.matched_by,
    )


def _replace(document: Document, edit: Edit, match: Match) -> Change:
    """Return the change of a replace or a delete of whole lines."""
    lines = [] if edit.op == "delete" else edit.lines
    first, last = match.start[0], match.end[0]
    if edit.op == "replace" and bare(lines) == bare(document.lines[first:last]):
        detail = "same: the old and the new text are equal, blanks at line ends apart"
        raise EditRefused(EditStatus.NOOP, detail, match.lines)
    check_replacement(document, first, last, lines)
    return Change(
        match.start,
        match.end,
        tuple(lines),
        report=match.lines,
        matched_by=match.matched_by,
    )


def _inline(document: Document, edit: Edit, match: Match) -> Change:
    number, column = match.start
    new = "" if edit.op == "delete" else edit.lines[0]
    line = document.lines[number]
    if edit.op == "replace" and new == line[column : match.end[1]]:
        raise EditRefused(
            EditStatus.NOOP, "same: the old and the new text are equal", match.lines
        )
    start = match.end if edit.op == "insert_after" else match.start
    changed = line[: start[1]] + new + line[match.end[1] :]
    check_replacement(document, number, number + 1, [changed])
    return Change(
        start,
        match.end,
        (new,),
        anchor=(match.start, match.end) if edit.op == "insert_after" else None,
        inline=True,
        report=match.lines,
    )


def _write_region(document: Document, edit: Edit, owner: str | None) -> Change:
    name = edit.target
    if name not in REGIONS:
        detail = f"unknown_region: a region is one of {', '.join(REGIONS)}"
        raise EditRefused(EditStatus.INVALID, detail)
    if name != owner:
        raise EditRefused(
            EditStatus.PROTECTED, f"owner: only its owner writes the region {name}"
        )
    text = neutralised(edit.content.replace("\r\n", "\n")).strip("\n")
    lines = text.split("\n") if text.strip() else []
    detail = "" if text == edit.content.strip("\n") else "neutralised: markers or line ends"
    region = document.region(name)
    inside = document.lines[region.start + 1 : region.end - 1] if region else ()
    if list(inside) == lines:
        raise EditRefused(EditStatus.NOOP, "same: the region holds this text already")
    whole = [marker_line(name, "START"), *lines, marker_line(name, "END")]
    if faults := structure_faults("\n".join(whole)):
        raise EditRefused(EditStatus.INVALID, f"structure: {faults[0]}")
    if region is None:
        at = len(document.lines)
        if at and not is_blank(document.lines[-1]):
            whole.insert(0, "")
        return Change((at, 0), (at, 0), tuple(whole), detail=detail, region=name)
    return Change(
        (region.start + 1, 0),
        (region.end - 1, 0),
        tuple(lines),
        report=tuple(range(region.start + 1, region.end + 1)),
        detail=detail,
        region=name,
    )

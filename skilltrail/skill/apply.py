"""Apply edits to a skill document: a candidate, and one result per proposed edit.

Every target is resolved against the parent document, never against what another edit of the
same list writes. Changes apply by span, so their order does not matter, with two exceptions
that the list order settles: of two edits that want the same text the earlier one wins and the
later one is a `conflict`; insertions at one point follow each other as listed.

Departures from SkillOpt: no fuzzy or first-of-many match, no append in place of a lost target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skilltrail.skill.candidate import Candidate, Splice, build, joined
from skilltrail.skill.document import Document, frontmatter_text, marker, parse, plain
from skilltrail.skill.edit import Edit, EditResult, EditStatus
from skilltrail.skill.folder import MAIN, files_of, is_markdown, script_fault
from skilltrail.skill.folder_edits import (
    FROZEN,
    Refusal,
    is_emptied,
    keep_named,
    refusal_of,
    without_script,
)
from skilltrail.skill.guards import check_frozen
from skilltrail.skill.markdown import (
    HEADING,
    is_blank,
    is_heading,
    is_list_item,
    is_row,
    is_underline,
)
from skilltrail.skill.match import EditRefused, Place
from skilltrail.skill.resolve import Change, resolve
from skilltrail.skill.untrusted import Unusable

__all__ = ["TAG", "Candidate", "apply_edits"]

TAG = "apply/1"

_CRLF_NOTE = "the document's CR LF line ends are written as LF"

# An edit by its name, and one that was resolved: its name and its change.
Named = tuple[str, Edit | Unusable]
Resolved = tuple[str, Change]


def apply_edits(
    parent: str,
    edits: Sequence[Edit | Unusable],
    owner: str | None = None,
    *,
    frozen: bool = False,
    scripts: Refusal | None = FROZEN,
    references: bool = False,
) -> Candidate:
    """Return the candidate that `edits` make of `parent`.

    An edit without id is known by its index in the list. `owner` names the protected region
    that these edits may write (`write_region`); without any other applied edit the text
    outside that region stays byte for byte. When nothing applies the text is the parent's.
    `frozen`: no edit may change the frontmatter, or make one. `scripts`: why no edit may
    change a script of a skill folder; None = it may. `references`: an edit may make a file
    `references/NAME.md`, and one without text goes, where no other file still names it.

    Each file of a folder is edited by itself; a script whose syntax an edit breaks stays.

    Raises:
        ValueError: two edits have one id.
    """
    names = [edit.id or str(index) for index, edit in enumerate(edits)]
    if len(set(names)) != len(names):
        raise ValueError("two edits of one list have the same id")
    by_file: dict[str, list[Named]] = {}
    for name, edit in zip(names, edits, strict=True):
        by_file.setdefault(getattr(edit, "file", MAIN), []).append((name, edit))
    texts = files_of(parent)
    if len(texts) == 1 and set(by_file) <= {MAIN}:
        return _apply(parse(parent), by_file.get(MAIN, []), owner, frozen=frozen)
    results: dict[str, EditResult] = {}
    made: dict[str, Candidate] = {}
    freed = references and not by_file.keys() <= texts.keys()
    for path, named in by_file.items():
        refusal = refusal_of(path, texts, scripts, references=references)
        if refusal is not None:
            results |= {name: EditResult(name, *refusal) for name, _ in named}
            continue
        document = (parse if is_markdown(path) else plain)(texts.get(path, ""))
        one = _apply(document, named, owner, frozen=frozen)
        fault = script_fault(path, one.text) if one.changed else None
        if fault is None and (one.changed or path in texts):
            made[path] = one
        results |= {r.edit: without_script(r, fault) for r in one.results}
    kept = keep_named(texts, made) if references else {}
    emptied = {path for path in made if references and is_emptied(path, made[path])}
    candidate = joined(parent, made, [(results | kept)[name] for name in names], emptied)
    return replace(candidate, freed=bool(freed or kept or emptied))


def _apply(
    document: Document, edits: Sequence[Named], owner: str | None, *, frozen: bool
) -> Candidate:
    """Return the candidate that `edits` make of one file."""
    parent = document.text
    names = [name for name, _ in edits]
    results: dict[str, EditResult] = {}
    resolved: list[Resolved] = []
    held = False
    for name, edit in edits:
        try:
            change = _change(document, edit, owner, frozen=frozen)
            _check_conflict(change, resolved)
            resolved.append((name, change))
        except EditRefused as refused:
            held = held or refused.holds
            results[name] = EditResult(name, refused.status, refused.lines, refused.detail)
    resolved = _without_new_markers(document, resolved, results)
    keep_ends = all(change.region is not None for _, change in resolved)
    crlf = "\r\n" in parent and document.end == "\n" and not keep_ends
    for name, change in resolved:
        notes = [change.detail, _CRLF_NOTE if crlf else ""]
        results[name] = EditResult(
            name,
            EditStatus.APPLIED,
            change.report,
            "; ".join(note for note in notes if note),
            change.matched_by,
        )
    owned = frozenset(change.region for _, change in resolved if change.region is not None)
    splices = _splices(document, resolved)
    candidate = build(document, splices, [results[name] for name in names], owned, keep_ends)
    if frozen and frontmatter_text(candidate.text) != frontmatter_text(parent):
        held = True  # edits that change nothing there one by one may do so together
    return replace(candidate, held=held) if held else candidate


def _change(
    document: Document, edit: Edit | Unusable, owner: str | None, *, frozen: bool
) -> Change:
    if isinstance(edit, Unusable):
        raise EditRefused(EditStatus.INVALID, edit.reason)
    change = resolve(document, edit, owner)
    if frozen and change.region is None:
        check_frozen(document, change.start[0], change.end[0], change.lines)
    return change


def _check_conflict(change: Change, earlier: Sequence[Resolved]) -> None:
    for name, other in earlier:
        if _collide(change, other) or _collide(other, change):
            detail = f"with={name}: it touches the same text as edit {name}, which comes first"
            raise EditRefused(EditStatus.CONFLICT, detail, change.report)


def _collide(one: Change, other: Change) -> bool:
    """Return whether `one` takes out text that `other` writes over, needs or stands inside."""
    if one.region is not None and one.region == other.region:
        return True
    if one.start == one.end:
        return False
    if other.anchor is not None and _overlap(one, *other.anchor):
        return True
    if other.start == other.end:
        return one.start < other.start < one.end
    return _overlap(one, other.start, other.end)


def _overlap(one: Change, start: Place, end: Place) -> bool:
    return one.start < end and start < one.end


def _without_new_markers(
    document: Document, resolved: Sequence[Resolved], results: dict[str, EditResult]
) -> list[Resolved]:
    """Return `resolved` without inline changes whose line would become a region marker."""
    kept = list(resolved)
    for splice in _inline_splices(document, resolved):
        if not any(marker(line) for line in splice.lines):
            continue
        for name, change in resolved:
            if change.inline and change.start[0] == splice.start:
                kept.remove((name, change))
                detail = "marker: the line would become the marker of a protected region"
                results[name] = EditResult(name, EditStatus.INVALID, change.report, detail)
    return kept


def _splices(document: Document, resolved: Sequence[Resolved]) -> list[Splice]:
    """Return what the changes do to whole lines, from top to bottom."""
    order = {name: index for index, (name, _) in enumerate(resolved)}
    whole = [(name, change) for name, change in resolved if not change.inline]
    plain = [
        Splice(change.start[0], change.end[0], change.lines, name) for name, change in whole
    ]
    spaced = {name for name, change in whole if change.spaced}
    inserted = {name for name, change in whole if change.start == change.end}
    # A new region at the end follows what is appended there.
    regions = {name for name, change in whole if change.region is not None}
    splices = sorted(
        [*plain, *_inline_splices(document, resolved)],
        key=lambda s: (s.start, s.end, s.edit in regions, order[s.edit]),
    )
    done: list[Splice] = []
    for splice in splices:
        if splice.edit in inserted and splice.edit not in regions:
            splice = _spaced(document, splice, done, splice.edit in spaced)
        done.append(splice)
    return done


def _inline_splices(document: Document, resolved: Sequence[Resolved]) -> list[Splice]:
    """Return one splice per line with inline changes; the rightmost edit is its author."""
    by_line: dict[int, list[Resolved]] = {}
    for name, change in resolved:
        if change.inline:
            by_line.setdefault(change.start[0], []).append((name, change))
    splices = []
    for number, changes in by_line.items():
        line, author = document.lines[number], ""
        in_order = sorted(enumerate(changes), key=lambda c: (c[1][1].start, c[1][1].end, c[0]))
        for _, (name, change) in reversed(in_order):
            line = line[: change.start[1]] + change.lines[0] + line[change.end[1] :]
            author = author or name
        splices.append(Splice(number, number + 1, (line,), author))
    return splices


def _spaced(
    document: Document, splice: Splice, done: Sequence[Splice], everywhere: bool
) -> Splice:
    """Return an insertion with the blank lines that keep Markdown from fusing it.

    `everywhere` = between any two blocks; else only where a line of dashes or equals signs
    would turn its neighbour into a heading.
    """
    last = done[-1] if done and done[-1].end == splice.start else None
    written = last.lines[-1:] if last is not None and last.start <= splice.start else ()
    above = written or document.lines[max(splice.start - 1, 0) : splice.start]
    below = document.lines[splice.start : splice.start + 1]
    lines = list(splice.lines)
    if document.plain:
        return splice
    if above and _fuses(above[0], lines[0], everywhere):
        lines.insert(0, "")
    if below and _fuses_below(document, splice.start, lines[-1], below[0], everywhere):
        lines.append("")
    return Splice(splice.start, splice.end, tuple(lines), splice.edit)


def _fuses(above: str, first: str, everywhere: bool) -> bool:
    if is_blank(above) or is_blank(first):
        return False
    if is_underline(first):
        return True
    if not everywhere or is_heading(above):
        return False
    if is_row(above):
        return not is_row(first)
    return not is_list_item(first)


def _fuses_below(document: Document, at: int, last: str, below: str, everywhere: bool) -> bool:
    if is_blank(last) or is_blank(below):
        return False
    if is_underline(below):
        return True
    titled = any(b.kind == HEADING and b.start == at for b in document.blocks)
    return everywhere and ((titled and not is_heading(below)) or marker(below) is not None)

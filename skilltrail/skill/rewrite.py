"""A whole new text in place of a skill document: the candidate of the rewriting update modes.

Protected regions survive byte for byte: one that the new text repeats is put back as it was,
where the new text has it; one that it leaves out follows at the end. Lines of the body that
stay the same keep their origin by line alignment (`candidate.align`), moved ones by their text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from skilltrail.skill.candidate import Candidate, Source, Splice, align, build, joined, moved
from skilltrail.skill.document import Document, marker, parse, raw_lines
from skilltrail.skill.edit import EditResult, EditStatus, text_lines
from skilltrail.skill.folder import (
    files_of,
    is_mark,
    is_markdown,
    is_reference,
    is_script,
    new_file_fault,
)
from skilltrail.skill.folder_edits import is_emptied, keep_named
from skilltrail.skill.markdown import is_blank

TAG = "rewrite/1"

# A line of the new text, and the parent's line it is bound to (None = to be aligned).
_Line = tuple[str, int | None]


def rewrite(
    parent: str, text: str, edit: str, *, frozen: bool = False, references: bool = False
) -> Candidate:
    """Return the candidate that the whole new `text` makes of `parent`; `edit` is its id.

    Of a folder each file that the text holds is rewritten by itself; one that it leaves out
    stays, and so does every script (scripts change by edits alone). A file that the folder
    does not have makes it `invalid`. `references`: it may be a new one, `references/NAME.md`,
    and one that stands there without text is removed, where no other file names it.
    `frozen`: the parent's frontmatter, or that there is none, stays whatever the text says.
    The one result is `applied`, `noop` (the same text), `protected` (a region that the parent
    does not have, a file that is named) or `invalid` (no text, or marker lines without a
    partner).
    """
    files = files_of(parent)
    texts = files_of("\n".join(_lines_of(text, apart=references)) + "\n")
    new = [path for path in texts if path not in files]
    fault = _new_fault(new, files, references=references)
    if fault is not None:
        result = EditResult(edit, EditStatus.INVALID, detail=fault)
        return replace(build(parse(parent), (), [result]), freed=references)
    if len(files) == len(texts) == 1:
        return _rewrite(parent, text, edit, frozen=frozen)
    made: dict[str, Candidate] = {}
    for path, told in texts.items():
        before = files.get(path, "")
        same = text_lines(told) == text_lines(before)  # a file that says the same stays
        blank = references and is_reference(path) and not told.strip()
        if same or (blank and not before.strip()) or is_script(path) or not is_markdown(path):
            continue
        made[path] = (
            _emptied(before, edit) if blank else _rewrite(before, told, edit, frozen=frozen)
        )
    return _of_folder(parent, made, edit, new, references=references)


def _of_folder(
    parent: str, made: dict[str, Candidate], edit: str, new: Sequence[str], *, references: bool
) -> Candidate:
    """Return the candidate of a folder whose files were `made` anew, all of them or none."""
    named = keep_named(files_of(parent), made) if references else {}
    results = [*named.values(), *(one.results[0] for one in made.values())]
    if not results:
        results = [EditResult(edit, EditStatus.NOOP, detail="same: the text is the parent's")]
    worst = min(results, key=_rank)
    kept = made if worst.status in (EditStatus.APPLIED, EditStatus.NOOP) else {}
    gone = {path for path in made if references and is_emptied(path, made[path])}
    candidate = joined(parent, kept, [worst], gone & kept.keys())
    return replace(candidate, freed=bool(new or named or gone))


def _lines_of(text: str, *, apart: bool) -> list[str]:
    """Return the lines of a text; `apart`: two that each begin a file get a blank one between
    them, so that a file without text is one."""
    lines = text_lines(text)
    twice = {n for n, (a, b) in enumerate(pairwise(lines), 1) if is_mark(a) and is_mark(b)}
    return [one for n, line in enumerate(lines)
            for one in (("", line) if apart and n in twice else (line,))]  # fmt: skip


def _new_fault(new: Sequence[str], files: Mapping[str, str], *, references: bool) -> str | None:
    """Return why a text may not hold one of the files that are not there, None = it may."""
    if new and not references:
        return f"no_file: files of the skill: {', '.join(files)}"
    faults = (new_file_fault(path, [*files, *new[:n]]) for n, path in enumerate(new))
    return next((fault for fault in faults if fault is not None), None)


def _emptied(before: str, edit: str) -> Candidate:
    """Return the candidate that takes every line out of a file."""
    document = parse(before)
    splice = Splice(0, len(document.lines), (), edit)
    return build(document, [splice], [EditResult(edit, EditStatus.APPLIED)])


def _rank(result: EditResult) -> int:
    """Return the order in which results of several files count: a refusal before all."""
    return {EditStatus.APPLIED: 1, EditStatus.NOOP: 2}.get(result.status, 0)


def _rewrite(parent: str, text: str, edit: str, *, frozen: bool) -> Candidate:
    """Return the candidate that a new text makes of one file."""
    old, new = parse(parent), parse("\n".join(text_lines(text)) + "\n")
    held = False
    if frozen:
        own = new
        head = old.lines[: old.frontmatter]
        new = parse("".join(line + "\n" for line in (*head, *own.lines[own.frontmatter :])))
        held = new.lines != own.lines
    status, detail = _verdict(old, new)
    if status is not EditStatus.APPLIED:
        refused = build(old, (), [EditResult(edit, status, detail=detail)])
        return replace(refused, held=held)
    lines = _with_regions(old, new)
    whole = _text(old, lines)
    if whole == parent:
        result = EditResult(edit, EditStatus.NOOP, detail="same: the text is the parent's")
        return replace(build(old, (), [result]), held=held)
    sources = _sources(old, lines, edit)
    added = sum(isinstance(source, str) for source in sources)
    return Candidate(
        parent,
        whole,
        (EditResult(edit, EditStatus.APPLIED),),
        tuple(moved(old.lines, [line for line, _ in lines], sources)),
        added,
        len(old.lines) - (len(lines) - added),
        held=held,
    )


def _text(old: Document, lines: list[_Line]) -> str:
    """Return the lines as text; where they begin with the parent's frontmatter, as it was."""
    texts = [line + old.end for line, _ in lines]
    head = old.frontmatter
    if head and [line for line, _ in lines[:head]] == list(old.lines[:head]):
        texts[:head] = raw_lines(old.text)[:head]
    return "".join(texts)


def _verdict(old: Document, new: Document) -> tuple[EditStatus, str]:
    if not any(not is_blank(line) for line in new.lines):
        return EditStatus.INVALID, "missing_content: there is no text"
    known = {region.name for region in old.regions}
    for region in new.regions:
        if region.name not in known:
            return EditStatus.PROTECTED, f"owner: the text writes the region {region.name}"
    edges = {n for region in new.regions for n in (region.start, region.end - 1)}
    for number, line in enumerate(new.lines):
        if marker(line) and number not in edges and not new.hidden(number):
            detail = f"marker: line {number + 1} is a region marker without a partner"
            return EditStatus.INVALID, detail
    if len({region.name for region in new.regions}) != len(new.regions):
        return EditStatus.INVALID, "marker: a region stands twice in the text"
    return EditStatus.APPLIED, ""


def _with_regions(old: Document, new: Document) -> list[_Line]:
    """Return the new lines with the parent's regions in their places."""
    lines: list[_Line] = []
    at = 0
    for region in new.regions:
        lines += [(line, None) for line in new.lines[at : region.start]]
        lines += _region_lines(old, region.name)
        at = region.end
    lines += [(line, None) for line in new.lines[at:]]
    present = {region.name for region in new.regions}
    for region in old.regions:
        if region.name not in present:
            if not is_blank(lines[-1][0]):
                lines.append(("", None))
            lines += _region_lines(old, region.name)
    return lines


def _region_lines(old: Document, name: str) -> list[_Line]:
    region = old.region(name)
    assert region is not None
    return [(old.lines[number], number) for number in range(region.start, region.end)]


def _sources(old: Document, lines: list[_Line], edit: str) -> list[Source]:
    """Return each new line's source: bound lines as they are, the others by alignment."""
    sources: list[Source] = [edit if bound is None else bound for _, bound in lines]
    free_old = [n for n in range(len(old.lines)) if not old.touches_region(n, n + 1)]
    free_new = [n for n, (_, bound) in enumerate(lines) if bound is None]
    runs = align([old.lines[n] for n in free_old], [lines[n][0] for n in free_new])
    for old_at, new_at, length in runs:
        for offset in range(length):
            sources[free_new[new_at + offset]] = free_old[old_at + offset]
    return sources

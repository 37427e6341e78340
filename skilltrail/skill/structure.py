"""What is wrong with the structure of a skill document, said before it is ever evaluated.

Checked: text that UTF-8 can hold, no character that nobody sees (a byte order mark in front
apart); one frontmatter that is a YAML mapping; every
code fence closed; region markers in balanced, unique, unnested pairs. Lines are 1-based.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from skilltrail.core.hidden import UNSEEN, is_plain, unseen_codes
from skilltrail.skill.document import (
    BOM,
    Document,
    marker,
    marker_line,
    parse,
    plain,
    split_lines,
)
from skilltrail.skill.folder import (
    MAIN,
    FolderFile,
    is_mark,
    is_markdown,
    parts_of,
    path_faults,
    script_fault,
)
from skilltrail.skill.markdown import FENCE, scan

_MOST_BRACKETS = 500
_SHOWN = 5
_ODD = re.compile("[\0\ud800-\udfff]")
_FIELD = re.compile(r"[A-Za-z_][\w-]*:(?:[ \t]|$)")


def structure_faults(text: str) -> list[str]:
    """Return one sentence per fault, in order of line; [] = the document can be used.

    Those of a folder say which file they are of.
    """
    parts = parts_of(text)
    if len(parts) == 1:
        return _faults(text)
    return path_faults(text) + [
        f"{part.path}: {fault}"
        for part in parts
        for fault in (*_part_faults(part), *_mark_faults(part))
    ]


def _part_faults(part: FolderFile) -> list[str]:
    if part.path == MAIN:
        return _faults(part.text)
    if is_markdown(part.path):
        regions = [region.name for region in parse(part.text).regions]
        held = [f"the protected region {name} belongs into {MAIN}" for name in regions]
        return _faults(part.text) + held
    fault = script_fault(part.path, part.text)
    document = plain(part.text)
    return [
        *_odd_characters(document),
        *unseen_faults(part.text),
        *_marker_faults(document),
        *([] if fault is None else [fault]),
    ]


def _mark_faults(part: FolderFile) -> list[str]:
    return [
        f"line {number} holds the line that begins a file"
        for number, line in enumerate(split_lines(part.text), start=1)
        if is_mark(line)
    ]


def _faults(text: str) -> list[str]:
    document = parse(text)
    return [
        *_odd_characters(document),
        *unseen_faults(text),
        *_frontmatter_faults(document),
        *_fence_faults(document),
        *_marker_faults(document),
    ]


def unseen_faults(text: str) -> list[str]:
    """Return the faults of lines that hold what nobody sees, a NUL apart."""
    lines = text.replace("\r\n", "\n")
    if is_plain(lines) or not UNSEEN.search(lines):
        return []
    return [
        f"line {number} holds what nobody sees: {', '.join(codes[:_SHOWN])}"
        for number, line in enumerate(split_lines(text.removeprefix(BOM)), start=1)
        if (codes := unseen_codes(line.replace("\0", "")))
    ]


def begins_with_frontmatter(lines: Sequence[str]) -> bool:
    """Return True when the first line that holds text opens a block of `key:` fields."""
    start = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    head = [line.rstrip() for line in lines[start : start + 2]]
    return (
        len(head) == 2
        and head[0] == "---"
        and _FIELD.match(head[1]) is not None
        and any(line.rstrip() in ("---", "...") for line in lines[start + 2 :])
    )


def _odd_characters(document: Document) -> list[str]:
    faults: list[str] = []
    if not _ODD.search(document.text):
        return faults
    for number, line in enumerate(document.lines, start=1):
        if "\0" in line:
            faults.append(f"line {number} holds a NUL character")
        if any("\ud800" <= char <= "\udfff" for char in line):
            faults.append(f"line {number} holds a lone surrogate, which UTF-8 cannot write")
    return faults


def _frontmatter_faults(document: Document) -> list[str]:
    lines, length = document.lines, document.frontmatter
    if not length:
        if lines and lines[0].lstrip(BOM).rstrip(" \t") == "---":
            return ["the frontmatter that line 1 opens is never closed by a line ---"]
        return []
    faults = _yaml_faults("\n".join(lines[1 : length - 1]))
    if begins_with_frontmatter(lines[length:]):
        faults.append(f"a second frontmatter follows the first, which ends on line {length}")
    return faults


def _yaml_faults(source: str) -> list[str]:
    """Return what is wrong with the frontmatter's YAML; `source` begins on line 2."""
    if source.count("[") + source.count("{") > _MOST_BRACKETS:
        # The time a YAML scanner takes grows with the square of the nesting.
        return [f"the frontmatter is not YAML we read: over {_MOST_BRACKETS} brackets"]
    try:
        data = YAML(typ="safe", pure=True).load(source)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 2}, column {mark.column + 1}" if mark else "line 2"
        return [f"the frontmatter is not YAML: {where}: {error.problem or error.context}"]
    except (YAMLError, ValueError, OverflowError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        return [f"the frontmatter is not YAML: after line 1: {reason}"]
    if data is not None and not isinstance(data, dict):
        return [f"the frontmatter must be a YAML mapping, found {type(data).__name__}"]
    return []


def _fence_faults(document: Document) -> list[str]:
    return [
        f"the code fence that line {block.start + 1} opens is never closed"
        for block in document.blocks
        if block.kind == FENCE and not block.closed
    ] + [
        f"the code fence that line {region.start + 2 + block} opens inside the region"
        f" {region.name} is never closed"
        for region in document.regions
        for block in _open_fences(document.lines[region.start + 1 : region.end - 1])
    ]


def _open_fences(lines: tuple[str, ...]) -> list[int]:
    return [block.start for block in scan(lines) if block.kind == FENCE and not block.closed]


def _marker_faults(document: Document) -> list[str]:
    faults = []
    seen: set[str] = set()
    for region in document.regions:
        if region.name in seen:
            faults.append(f"a second region {region.name} begins on line {region.start + 1}")
        seen.add(region.name)
    edges = {n for region in document.regions for n in (region.start, region.end - 1)}
    for number, line in enumerate(document.lines):
        found = marker(line)
        if found is None or number in edges or document.hidden(number):
            continue
        inside = document.touches_region(number, number + 1)
        why = "stands inside another region" if inside else "has no partner"
        faults.append(f"the marker {marker_line(*found)} on line {number + 1} {why}")
    return faults

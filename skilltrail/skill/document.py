"""A skill document read into lines, frontmatter, protected regions, blocks and sections.

Only LF ends a line (CR LF counts as one end); a form feed or U+2028 is text. The text itself
is never changed: `Document.text` is what was read, byte for byte.

Protected regions stand between two marker lines (the four that published SkillOpt skills
carry); a marker counts only when alone on its line and outside a closed code fence:

    <!-- SLOW_UPDATE_START -->        <!-- APPENDIX_START -->
    …                                 …
    <!-- SLOW_UPDATE_END -->          <!-- APPENDIX_END -->
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from skilltrail.skill.alignment import comparable
from skilltrail.skill.markdown import FENCE, HEADING, Block, scan

REGIONS = ("slow_update", "appendix")
BOM = "\ufeff"
_MOST_REGIONS = 4  # each is read anew; a second one of a name is a fault already

_FENCE = re.compile("```|~~~")
_NO_LINE_END = "\n\\ No newline at end of file\n"
_MARKER = re.compile(r"<!-- (SLOW_UPDATE|APPENDIX)_(START|END) -->")
_MARKER_LIKE = re.compile(
    r"<!--\s*((?:SLOW_UPDATE|APPENDIX)_(?:START|END))\s*-->", re.IGNORECASE
)


@dataclass(frozen=True)
class Region:
    """A protected region: 0-based lines `start` (START marker) up to `end`, both markers in."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Section:
    """A heading and what it heads.

    Attributes:
        start: the heading's (first) line, 0-based.
        body: the line after the heading.
        own_end: where the next heading of any level begins.
        end: where the next heading of the same or a higher level begins.
    """

    title: str
    level: int
    start: int
    body: int
    own_end: int
    end: int


@dataclass(frozen=True)
class Document:
    """What `parse` found.

    Attributes:
        text: the text as it was read.
        lines: the lines without their ends.
        frontmatter: number of lines of the frontmatter with both delimiters, 0 = none.
        plain: True where the lines are no Markdown.
    """

    text: str
    lines: tuple[str, ...]
    frontmatter: int
    regions: tuple[Region, ...]
    blocks: tuple[Block, ...]
    sections: tuple[Section, ...]
    plain: bool = False

    @property
    def end(self) -> str:
        """How a line that is written ends: as the frontmatter's first one, else with LF."""
        first = self.text.split("\n", 1)[0]
        return "\r\n" if self.frontmatter and first.endswith("\r") else "\n"

    def region(self, name: str) -> Region | None:
        """Return the first region of that name, or None."""
        return next((region for region in self.regions if region.name == name), None)

    def touches_region(self, start: int, end: int) -> bool:
        """Return True when lines `start` up to `end` overlap a region or its markers."""
        return any(start < region.end and end > region.start for region in self.regions)

    def hidden(self, number: int) -> bool:
        """Return True for a line where no marker counts: in frontmatter or a closed fence."""
        return number < self.frontmatter or number in self._fenced

    @cached_property
    def _fenced(self) -> frozenset[int]:
        return _fenced(self.blocks)


def raw_lines(text: str) -> list[str]:
    """Return the lines with their ends; `"".join` of them is `text`."""
    *lines, last = text.split("\n")
    return [line + "\n" for line in lines] + ([last] if last else [])


def split_lines(text: str) -> list[str]:
    """Return the lines without their ends (LF or CR LF)."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def marker(line: str) -> tuple[str, str] | None:
    """Return (region name, `START` or `END`) when `line` is a marker and nothing else."""
    found = _MARKER.fullmatch(line.strip(" \t\r" + BOM)) if "<!--" in line else None
    return (found[1].lower(), found[2]) if found else None


def neutralised(text: str) -> str:
    """Return `text` with every region marker, wherever it stands, reduced to its bare name."""
    return _MARKER_LIKE.sub(lambda found: found[1], text)


def marker_line(name: str, which: str) -> str:
    """Return the marker line of region `name`; `which` is `START` or `END`."""
    return f"<!-- {name.upper()}_{which} -->"


@lru_cache(maxsize=16)
def parse(text: str) -> Document:
    """Return the structure of `text`; any text has one."""
    lines = split_lines(text)
    frontmatter = frontmatter_length(lines)
    masked = [""] * frontmatter + lines[frontmatter:]
    regions, blocks = _regions(masked)
    sections = _sections([b for b in blocks if b.kind == HEADING], len(lines))
    return Document(text, tuple(lines), frontmatter, regions, blocks, sections)


def plain(text: str) -> Document:
    """Return a text that is no Markdown, a script: lines without any structure."""
    return Document(text, tuple(split_lines(text)), 0, (), (), (), plain=True)


def region_text(text: str, name: str) -> str | None:
    """Return what stands inside region `name`, without the last line end; None when absent."""
    document = parse(text)
    region = document.region(name)
    if region is None:
        return None
    return "\n".join(document.lines[region.start + 1 : region.end - 1])


def frontmatter_text(text: str) -> str:
    """Return the frontmatter as it stands, both delimiters in; "" = there is none."""
    return "".join(raw_lines(text)[: parse(text).frontmatter])


def frontmatter_length(lines: Sequence[str]) -> int:
    """Return how many lines the frontmatter takes, delimiters included; 0 = there is none."""
    if not lines or lines[0].lstrip(BOM).rstrip(" \t") != "---":
        return 0
    for number, line in enumerate(lines[1:], start=2):
        if line.rstrip(" \t") in ("---", "..."):
            return number
    return 0


def _regions(lines: list[str]) -> tuple[tuple[Region, ...], tuple[Block, ...]]:
    """Return the regions, and the blocks of the rest (a region reads as a comment there)."""
    view = [lines[0].lstrip(BOM), *lines[1:]] if lines else []
    marks = [(number, found) for number, line in enumerate(lines) if (found := marker(line))]
    ends = {name: [n for n, found in marks if found == (name, "END")] for name in REGIONS}
    regions: list[Region] = []
    first = next((n for n, line in enumerate(view) if _FENCE.search(line)), len(view))
    blocks: tuple[Block, ...] | None = None  # read where they decide, since it takes long
    for number, (name, which) in marks:
        if which != "START" or (regions and number < regions[-1].end):
            continue
        if number > first:
            blocks = scan(view) if blocks is None else blocks
            if number in _fenced(blocks):
                continue
        at = bisect_right(ends[name], number)
        if at == len(ends[name]) or len(regions) == _MOST_REGIONS:
            continue
        end = ends[name][at]
        regions.append(Region(name, number, end + 1))
        view[number : end + 1] = ["<!-- -->"] * (end + 1 - number)
        # A region may hold anything, so what follows it is read again without it.
        blocks = None
    return tuple(regions), scan(view) if blocks is None else blocks


def _fenced(blocks: Sequence[Block]) -> frozenset[int]:
    """Return the lines inside closed code fences."""
    closed = (block for block in blocks if block.kind == FENCE and block.closed)
    return frozenset(n for block in closed for n in range(block.start + 1, block.end))


def _sections(headings: Sequence[Block], total: int) -> tuple[Section, ...]:
    sections: list[Section] = []
    own_end = total
    ends = [total] * 7  # where the next heading of each level, or a higher one, begins
    for heading in reversed(headings):
        level, start = heading.level, heading.start
        sections.append(Section(heading.title, level, start, heading.end, own_end, ends[level]))
        own_end = start
        ends[level:] = [start] * (7 - level)
    return tuple(reversed(sections))


def unified_diff(before: str, after: str, name: str = "skill.md", context: int = 3) -> str:
    """Return the unified diff, as `git apply` reads it; "" when the texts are equal."""
    old, new = comparable(raw_lines(before), raw_lines(after))
    lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", n=context)
    return "".join(line if line.endswith("\n") else line + _NO_LINE_END for line in lines)

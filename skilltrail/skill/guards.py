"""Which changes would break a block they touch: code fences, tables, headings, frontmatter.

The test is the parser's own: what stays of a block that is changed in part must still be one
block of that kind together with the new lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from skilltrail.skill.document import Document, frontmatter_length
from skilltrail.skill.edit import EditStatus
from skilltrail.skill.markdown import FENCE, HEADING, TABLE, Block, dedent, scan
from skilltrail.skill.match import EditRefused
from skilltrail.skill.structure import begins_with_frontmatter


def check_insertion(document: Document, at: int, lines: Sequence[str]) -> None:
    """Refuse to insert `lines` before line `at` where that would break a block.

    Raises:
        Refused: invalid.
    """
    if document.plain:
        return
    if 0 < at < document.frontmatter:
        raise _refused("frontmatter", "text cannot be inserted into the frontmatter", at)
    if at == 0:
        _check_head([*lines, *document.lines])
    elif begins_with_frontmatter(lines):
        raise _refused("frontmatter", "content begins with frontmatter of its own", at)
    _check_closed(lines, at)
    for block in document.blocks:
        if not _holds(block, at):
            continue
        if block.kind == FENCE:
            what = f"text cannot go inside the code fence that line {block.start + 1} opens"
            raise _refused("inside_fence", what, at)
        if block.kind == HEADING:
            raise _refused("inside_heading", "text cannot go inside a heading", at)
        if not _stays(document, block, at, at, lines):
            what = f"only rows can go into the table of line {block.start + 1}, below its rule"
            raise _refused("inside_table", what, at)


def check_replacement(document: Document, start: int, end: int, lines: Sequence[str]) -> None:
    """Refuse to put `lines` in place of lines `start` up to `end` where a block would break.

    Raises:
        Refused: invalid.
    """
    if document.plain:
        return
    if start < document.frontmatter < end or (
        start < document.frontmatter and not _frontmatter_stays(document, start, end, lines)
    ):
        what = "the frontmatter must keep both of its --- lines"
        raise _refused("frontmatter", what, start + 1)
    if start == 0 and end >= document.frontmatter:
        _check_head([*lines, *document.lines[end:]])
    partly = [
        block
        for block in document.blocks
        if block.start < end and start < block.end
        if block.start < start or end < block.end
    ]
    for block in partly:
        if block.kind in (FENCE, TABLE) and not _stays(document, block, start, end, lines):
            what = f"the {block.kind} of lines {block.start + 1} to {block.end} would break"
            raise _refused(f"breaks_{block.kind}", what, start + 1)
    if not any(block.kind == FENCE for block in partly):
        _check_closed(lines, start + 1)


def check_frozen(document: Document, start: int, end: int, lines: Sequence[str]) -> None:
    """Refuse what changes a frontmatter, or makes one.

    Raises:
        Refused: protected.
    """
    if document.plain:
        return
    touches = start < document.frontmatter
    makes = start == 0 and frontmatter_length([*lines, *document.lines[end:]]) > 0
    if touches or makes:
        detail = "frontmatter: it is frozen (`skill.frontmatter` in params.yaml)"
        raise EditRefused(EditStatus.PROTECTED, detail, (start + 1,), holds=True)


def _check_head(lines: Sequence[str]) -> None:
    if lines and lines[0].rstrip(" \t") == "---" and not begins_with_frontmatter(lines):
        what = "a first line --- opens frontmatter, which needs fields and a closing ---"
        raise _refused("frontmatter", what, 1)


def _check_closed(lines: Sequence[str], line: int) -> None:
    if any(block.kind == FENCE and not block.closed for block in scan(lines)):
        raise _refused("open_fence", "content opens a code fence and does not close it", line)


def _holds(block: Block, at: int) -> bool:
    return block.start < at and (at < block.end or (at == block.end and not block.closed))


def _stays(
    document: Document, block: Block, start: int, end: int, lines: Sequence[str]
) -> bool:
    """Return whether what is left of `block` is still one block around the new `lines`."""
    opener = document.lines[block.start]
    whole = dedent(document.lines[block.start : block.end], opener)
    if not _spans(whole, block.kind, len(whole), 0):
        # It opens behind a list or quote mark and cannot be read alone: judged as a whole.
        return True
    before = document.lines[block.start : max(start, block.start)]
    after = document.lines[min(end, block.end) : block.end]
    return _spans(
        dedent([*before, *lines, *after], opener), block.kind, len(before), len(after)
    )


def _spans(lines: Sequence[str], kind: str, head: int, tail: int) -> bool:
    """Return whether one `kind` block covers the first `head` and the last `tail` lines."""
    blocks = [block for block in scan(lines) if block.kind in (FENCE, TABLE)]
    if not all(block.closed for block in blocks):
        return False
    first = 0 if head else len(lines) - tail
    last = len(lines) if tail else head
    return any(
        block.kind == kind
        and block.start <= first
        and block.end >= last
        # GFM takes any line below a table into it; only real rows belong there.
        and (kind != TABLE or all("|" in line for line in lines[block.start : block.end]))
        for block in blocks
    )


def _frontmatter_stays(document: Document, start: int, end: int, lines: Sequence[str]) -> bool:
    if start == 0 and end == document.frontmatter:
        return True
    head = [*document.lines[:start], *lines, *document.lines[end : document.frontmatter]]
    return frontmatter_length(head) == len(head)


def _refused(code: str, what: str, line: int) -> EditRefused:
    return EditRefused(EditStatus.INVALID, f"{code}: {what}", (line,) if line else ())

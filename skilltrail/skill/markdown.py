"""The block structure of Markdown lines: fences, tables and headings, per CommonMark and GFM.

Blocks come from markdown-it (block rules only, no inline parsing), so that a fence inside a
list or a quote, a longer closing fence and a setext heading are what a reader would see.
Source: CommonMark 0.31 (https://spec.commonmark.org/0.31.2/), GFM tables.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

FENCE, TABLE, HEADING = "fence", "table", "heading"

_LIST_ITEM = re.compile(r"[ \t]*(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)")
_ATX_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")


@dataclass(frozen=True)
class Block:
    """One block: 0-based lines `start` up to `end`, which is not part of it.

    Attributes:
        kind: `fence`, `table` or `heading`.
        closed: False for a fence that no closing line ends.
        level: 1 to 6 for a heading, else 0.
        title: a heading's text.
    """

    kind: str
    start: int
    end: int
    closed: bool = True
    level: int = 0
    title: str = ""


# What may open a fence, a table or HTML, underline a heading, or indent one; a heading that
# ends in `#`; and signs that the parser changes. Where a text has none of these, its blocks are
# the lines that begin with `#`: such a line ends whatever stands before it.
_INVOLVED = re.compile(
    r"```|~~~|[|<\r\0]|^[ \t]*(?:=+|-+)[ \t]*$|^ {1,3}#|^#[^\n]*#[ \t]*$", re.MULTILINE
)
_PLAIN_HEADING = re.compile(r"(#{1,6})(?:[ \t]|$)")


def scan(lines: Sequence[str]) -> tuple[Block, ...]:
    """Return the fences and tables (at any depth) and the top-level headings of `lines`."""
    if any("\n" in line for line in lines) or _INVOLVED.search("\n".join(lines)):
        return parsed(lines)
    found = ((number, _PLAIN_HEADING.match(line)) for number, line in enumerate(lines))
    return tuple(
        Block(HEADING, n, n + 1, level=len(m[1]), title=lines[n][m.end() :].strip())
        for n, m in found
        if m is not None
    )


def parsed(lines: Sequence[str]) -> tuple[Block, ...]:
    """Return the same, always by the parser."""
    # A lone CR is text here, but a line end to the parser.
    source = "".join(line.replace("\r", " ") + "\n" for line in lines)
    tokens = _parser().parse(source)
    blocks = (_block(token, tokens[i + 1 : i + 2]) for i, token in enumerate(tokens))
    return tuple(block for block in blocks if block is not None)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # a light command needs none, and it takes long

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _block(token: Token, following: Sequence[Token]) -> Block | None:
    if token.map is None:
        return None
    start, end = token.map
    if token.type == "fence":
        # The content excludes the opening line, and the closing one only where there is one.
        closed = end - start == token.content.count("\n") + 2
        return Block(FENCE, start, end, closed)
    if token.type == "table_open":
        return Block(TABLE, start, end)
    if token.type == "heading_open" and token.level == 0:
        title = following[0].content.strip() if following else ""
        return Block(HEADING, start, end, level=int(token.tag[1:]), title=title)
    return None


def is_blank(line: str) -> bool:
    """Return True for a line of blanks and tabs only (other spaces are text)."""
    return not line.strip(" \t\r")


def holds_text(text: str) -> bool:
    """Return True when a reader sees anything of `text`; invisible signs are no text."""
    return any(
        not char.isspace() and unicodedata.category(char) not in ("Cc", "Cf") for char in text
    )


def is_list_item(line: str) -> bool:
    return _LIST_ITEM.match(line) is not None


def is_heading(line: str) -> bool:
    """Return True for a `#` heading."""
    return _ATX_HEADING.match(line) is not None


def is_underline(line: str) -> bool:
    """Return True for a line that turns a paragraph above it into a heading."""
    return _UNDERLINE.match(line) is not None


def is_row(line: str) -> bool:
    """Return True for a line that looks like a row of a table."""
    return line.lstrip(" \t").startswith("|")


def dedent(lines: Sequence[str], like: str) -> list[str]:
    """Return `lines` without as much leading blank as the line `like` has."""
    width = len(like) - len(like.lstrip(" \t"))
    return [line[min(width, len(line) - len(line.lstrip(" \t"))) :] for line in lines]

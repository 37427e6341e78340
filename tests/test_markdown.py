"""Blocks of plain documents are found without the parser, and are the parser's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skilltrail.skill.markdown import parsed, scan

PIECES = (
    "#", "##", "#######", "# ", "# a", "## b c", "#\tt", "# a #", "# a \\#", "#a", " # a",
    "    # a", "\t# a", "- ", "-", "- a", "* # a", "1. a", "1. # a", "> a", "> # a", ">", "a",
    "a b", "  a", "      a", "", " ", "\t", "---", "===", "=", "- - -", "***", "```", "~~~",
    "``", "`#`", "| a |", "|-|", "<b>", "<!-- a", "-->", "[a]: b", "[a]:", "'t", '"t', "\\",
    "\\# a", "&#35; a", "\u00a0# a", "\u2028# a", "\x0b# a", "\x0c", "# \u00a0a\u00a0",
    "# \x1f", "\r", "a\r# b", "\0", "﻿# a", "+", "+ # a", "10) a", "#  ", "# #", "#\u2003a",
    "é #", "# a\t", "<?", "]]>", "<a href",
)  # fmt: skip
line = st.lists(st.sampled_from(PIECES), min_size=1, max_size=2).map("".join) | st.text(
    st.sampled_from("# \t-=>*+a1.)(`~|<[]:\\\"'\r\0\u00a0\u2028\x0b"), max_size=8
)


@settings(max_examples=400)
@given(st.lists(line, max_size=8))
def test_blocks_are_those_of_the_parser(lines: list[str]) -> None:
    assert scan(lines) == parsed(lines)


@pytest.mark.parametrize("first", PIECES)
def test_blocks_after_any_piece_are_those_of_the_parser(first: str) -> None:
    for second in PIECES:
        for lines in ([first, second], [first, "a", second, "# c"], ["- a", first, second]):
            assert scan(lines) == parsed(lines), lines

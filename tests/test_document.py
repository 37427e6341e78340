"""Reading a skill document: lines, fences, tables, sections, regions; sizes and diffs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_texts import FRONTMATTER, SLOW, any_text, line_soup, skills

from skilltrail.core.tokens import TAG, count_tokens
from skilltrail.skill.document import (
    marker,
    neutralised,
    parse,
    raw_lines,
    region_text,
    split_lines,
    unified_diff,
)
from skilltrail.skill.markdown import FENCE, HEADING, TABLE, scan

texts = st.one_of(any_text, line_soup, skills())


def kinds(text: str) -> list[tuple[str, int, int, bool]]:
    return [(b.kind, b.start, b.end, b.closed) for b in scan(text.split("\n"))]


@given(texts)
def test_any_text_comes_back_byte_for_byte(text):
    assert parse(text).text == text
    assert "".join(raw_lines(text)) == text
    assert len(parse(text).lines) == len(raw_lines(text))


@given(texts)
def test_regions_are_apart_and_begin_and_end_with_their_markers(text):
    document = parse(text)
    end = document.frontmatter
    for region in document.regions:
        assert region.start >= end
        end = region.end
        assert marker(document.lines[region.start]) == (region.name, "START")
        assert marker(document.lines[region.end - 1]) == (region.name, "END")


def test_only_line_feeds_end_lines():
    assert split_lines("a\u2028b\x0cc\x85d\re\n\ufefff\r\n") == [
        "a\u2028b\x0cc\x85d\re",
        "\ufefff",
    ]
    assert split_lines("") == []
    assert split_lines("\n") == [""]
    assert split_lines("a\r") == ["a\r"]


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("```\nx\n```", True),
        ("   ```\nx\n  `````", True),
        ("~~~\n```\n~~~", True),
        ("````\n```\n````", True),
        ("- a\n  ```\n  x\n  ```", True),
        ("> ```\n> x\n> ```", True),
        ("- ```py\n  x\n  ```", True),
        ("```", False),
        ("```\nx\n~~~", False),
        ("````\nx\n```", False),
        ("```\nx\n    ```", False),
        ("- a\n  ```\n  x\n\nout of the list", False),
    ],
)
def test_a_fence_is_closed_as_commonmark_says(text, closed):
    fences = [b for b in scan(text.split("\n")) if b.kind == FENCE]
    assert [fence.closed for fence in fences] == [closed]


def test_what_only_looks_like_a_fence_is_none():
    assert kinds("    ```\n    x") == []
    assert kinds("`` x ``\n``` a `b`\n") == []


def test_tables_and_headings_are_found_where_a_reader_sees_them():
    text = "# A\ntext\n| a | b |\n|---|---|\n| 1 | 2 |\n\nB\nb\n---\n"
    text += "```\n# no\n| x |\n|---|\n```\n> # no"
    assert kinds(text) == [
        (HEADING, 0, 1, True),
        (TABLE, 2, 5, True),
        (HEADING, 6, 9, True),
        (FENCE, 9, 14, True),
    ]


def test_a_section_ends_at_the_next_heading_of_its_level_or_a_higher_one():
    text = "# S\n## A\na\n### AA\naa\n## B #\nb\n# T\n"
    found = [(s.title, s.start, s.own_end, s.end) for s in parse(text).sections]
    assert found == [
        ("S", 0, 1, 7),
        ("A", 1, 3, 5),
        ("AA", 3, 5, 5),
        ("B", 5, 7, 7),
        ("T", 7, 8, 8),
    ]


def test_a_marker_counts_only_when_alone_on_its_line():
    text = f"Never write <!-- SLOW_UPDATE_END --> yourself.\n\n{SLOW}"
    assert region_text(text, "slow_update") == "keep me\n\n  - nested"
    assert marker("  <!-- APPENDIX_START -->\t") == ("appendix", "START")
    assert marker("<!--APPENDIX_START-->") is None
    assert marker("<!-- appendix_start -->") is None


def test_a_marker_shown_in_a_code_fence_is_an_example():
    text = f"```\n{SLOW}```\n{SLOW.replace('keep me', 'real')}"
    assert region_text(text, "slow_update") == "real\n\n  - nested"


def test_a_region_may_hold_an_open_fence_and_still_ends_at_its_marker():
    text = "<!-- APPENDIX_START -->\n```\n<!-- APPENDIX_END -->\n" + SLOW
    assert region_text(text, "appendix") == "```"
    assert region_text(text, "slow_update") is not None


def test_an_absent_region_is_none_and_an_empty_one_is_empty():
    assert region_text("# S\n", "appendix") is None
    assert region_text("<!-- APPENDIX_START -->\n<!-- APPENDIX_END -->", "appendix") == ""


def test_headings_inside_a_region_open_no_section():
    text = "# S\n<!-- APPENDIX_START -->\n# In\n<!-- APPENDIX_END -->\n"
    assert [section.title for section in parse(text).sections] == ["S"]


def test_frontmatter_stands_at_the_very_start():
    assert parse(FRONTMATTER + "# S\n").frontmatter == 4
    assert parse("\ufeff" + FRONTMATTER).frontmatter == 4
    assert parse("\n" + FRONTMATTER).frontmatter == 0
    assert parse("---\nname: t\n").frontmatter == 0


def test_neutralised_text_holds_no_marker_in_any_spelling():
    text = "One. <!-- SLOW_UPDATE_END --> Two. <!--appendix_start-->"
    assert neutralised(text) == "One. SLOW_UPDATE_END Two. appendix_start"


def test_a_document_of_5000_lines_with_a_huge_one_is_read():
    text = "".join(f"- rule {n}\n```\nx\n```\n" for n in range(1250)) + "y" * 1_000_000
    assert len(parse(text).lines) == 5001


def test_the_size_of_a_text_is_what_the_docstring_says():
    assert TAG == "count/1"
    counts = {"": 0, " \n\t\n": 0, "rule": 1, "instructions": 2, "1234": 2, "한국어": 3}
    counts |= {"a b\n\n \nc": 4, "----- !": 3, "naïve": 3, "😀😀": 2}
    assert {text: count_tokens(text) for text in counts} == counts


@given(texts, texts)
def test_two_texts_on_lines_of_their_own_count_as_their_sum(one, other):
    visible = [text.strip(" \t\r\n") for text in (one, other)]
    if all(visible):
        joined = count_tokens("\n".join(visible))
        assert joined == sum(count_tokens(text) for text in visible) + 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\n", "a\nc\n"),
        ("a", "a\nb"),
        ("a\nb", "a\n"),
        ("", "x\n"),
        ("x\u2028y\x0cz\n", "x\u2028y\n"),
    ],
)
def test_git_applies_the_diffs(tmp_path: Path, before: str, after: str):
    file = tmp_path / "skill.md"
    file.write_bytes(before.encode())
    patch = unified_diff(before, after).encode()
    subprocess.run(["git", "apply", "-"], input=patch, cwd=tmp_path, check=True)
    assert file.read_bytes() == after.encode()


def test_equal_texts_have_no_diff():
    assert unified_diff("a\n", "a\n") == ""

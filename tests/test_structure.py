"""What makes a document unusable, and that orderly ones pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_texts import FRONTMATTER, NOTES, SLOW, any_text, line_soup, skills

from skilltrail.skill.structure import structure_faults


@given(skills())
def test_orderly_documents_have_no_fault(text):
    assert structure_faults(text) == []


@given(st.one_of(any_text, line_soup))
def test_any_text_can_be_checked(text):
    assert all(isinstance(fault, str) for fault in structure_faults(text))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a\0b", "line 1 holds a NUL"),
        ("a\n\ud800", "line 2 holds a lone surrogate"),
        ("---\nname: t\nd: Use when: x\n---\n", "line 3, column 12"),
        ("---\n- a\n---\n", "must be a YAML mapping, found list"),
        ("---\njust words\n---\n", "must be a YAML mapping, found str"),
        ("---\na: 1\na: 2\n---\n", "line 3, column 1"),
        ("---\nd: 2020-13-45\n---\n", "not YAML"),
        ("---\n" + "[" * 5000 + "\n---\n", "over 500 brackets"),
        ("---\n" + "[" * 499 + "\n---\n", "not YAML"),
        ("---\na: \x07\n---\n", "not YAML"),
        ("---\nname: t\n# S\n", "never closed by a line ---"),
        (FRONTMATTER + "\n" + FRONTMATTER, "a second frontmatter"),
        ("# S\n```\ncode\n", "line 2 opens is never closed"),
        ("<!-- APPENDIX_START -->\n```\n<!-- APPENDIX_END -->\n", "line 2 opens inside"),
        ("<!-- SLOW_UPDATE_START -->\n", "START --> on line 1 has no partner"),
        ("x\n<!-- APPENDIX_END -->\n", "END --> on line 2 has no partner"),
        (SLOW + SLOW, "a second region slow_update"),
        (SLOW.replace("keep me\n", NOTES), "stands inside another region"),
        ("<!-- APPENDIX_END -->\n<!-- APPENDIX_START -->\n", "has no partner"),
    ],
)
def test_a_fault_is_named_with_its_line(text, says):
    assert any(says in fault for fault in structure_faults(text)), structure_faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "---\n---\n",
        FRONTMATTER + "\n---\n\ntext\n\n---\n",
        "Never write <!-- SLOW_UPDATE_END --> yourself.\n",
        f"```\n{SLOW}```\n{SLOW}",
        SLOW + NOTES,
        "\ufeff" + FRONTMATTER,
    ],
)
def test_unusual_but_sound_documents_pass(text):
    assert structure_faults(text) == []

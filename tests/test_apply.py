"""Edits on a skill document: one result each, exact places, and nothing else moves."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skill_texts import FRONTMATTER, NOTES, SLOW, any_text, skills, skills_and_edits

from skilltrail.skill.apply import Candidate, apply_edits
from skilltrail.skill.document import frontmatter_text, parse, region_text, split_lines
from skilltrail.skill.edit import Edit, EditStatus
from skilltrail.skill.rewrite import rewrite
from skilltrail.skill.structure import structure_faults
from skilltrail.skill.untrusted import Unusable, edit_from_untrusted

LAWS = settings(max_examples=80, deadline=None)


def edited(skill: str, *proposed: object) -> Candidate:
    """Apply edits as an optimizer's reply would hold them."""
    return apply_edits(skill, [edit_from_untrusted(value) for value in proposed])


def edit(op: str, target: str = "", content: object = "", **more: object) -> dict[str, object]:
    return {"op": op, "target": target, "content": content, **more}


def statuses(candidate: Candidate) -> list[str]:
    return [result.status.value for result in candidate.results]


def only(candidate: Candidate) -> tuple[str, tuple[int, ...], str]:
    (result,) = candidate.results
    return result.status.value, result.lines, result.detail.split(":")[0]


# One result per edit, and what each status means.


def test_a_lost_target_is_reported_and_never_appended():
    skill = "# Skill\n- rule a\n"
    candidate = edited(skill, edit("replace", "- ghost", "- x"), edit("append", "", "- b"))
    assert statuses(candidate) == ["not_found", "applied"]
    assert candidate.text == "# Skill\n- rule a\n- b\n"
    assert (candidate.applied, candidate.not_applied) == (("1",), ("0",))


def test_the_nearest_real_line_is_told():
    skill = "- Check the units\n- Read dates as day first\n"
    detail = edited(skill, edit("delete", "- Read dates day first")).results[0].detail
    assert 'nearest is line 2: "- Read dates as day first"' in detail


def test_a_target_in_two_sections_is_ambiguous_until_a_section_is_named():
    skill = "## A\n- Check units\n## B\n- Check units\n"
    change = edit("replace", "- Check units", "- Check dates")
    candidate = edited(skill, change)
    assert only(candidate) == ("ambiguous", (2, 4), "matches=2")
    assert candidate.text == skill
    assert edited(skill, {**change, "section": "B"}).text == skill[:-14] + "- Check dates\n"
    assert edited(skill, {**change, "section": "## A"}).text.startswith("## A\n- Check dates")


def test_a_missing_or_repeated_section_is_no_guess():
    change = edit("append", "", "- x", section="A")
    assert only(edited("## B\n", change)) == ("not_found", (), "no_section")
    assert only(edited("## A\n## A\n", change)) == ("ambiguous", (1, 2), "section_matches=2")
    assert statuses(edited("### A\n", {**change, "section": "## A"})) == ["not_found"]


def test_crlf_is_read_as_lf_and_written_as_lf():
    candidate = edited("# S\r\n- a\r\n- b\r\n", edit("replace", "- a\n- b", "- c\r\n"))
    assert candidate.text == "# S\n- c\n"
    assert "CR LF" in candidate.results[0].detail


def test_blanks_at_line_ends_do_not_hide_a_unique_target():
    candidate = edited("- rule one  \n- rule two\n", edit("delete", "- rule one\n"))
    assert candidate.results[0].matched_by == "trailing_space"
    assert candidate.text == "- rule two\n"
    twice = edited("- a  \n- a\t\n", edit("delete", "- a"))
    assert only(twice) == ("ambiguous", (1, 2), "matches=2")
    exact = edited("- a  \n- a\n", edit("delete", "- a"))
    assert (exact.text, exact.results[0].matched_by) == ("- a  \n", "exact")


@pytest.mark.parametrize(
    "target", ["-  a", " - a", "- A", "\n- a", "- a.", "a\u0301", "- а"], ids=repr
)
def test_anything_fuzzier_is_refused(target):
    candidate = edited("- a\n- \u00e1\n", edit("delete", target))
    assert statuses(candidate) == ["not_found"]
    assert not candidate.changed


def test_equal_old_and_new_text_is_no_change():
    for content in ("- keep me", "- keep me\n", "- keep me  ", "- keep me\n\n"):
        candidate = edited("- keep me\n", edit("replace", "- keep me", content))
        assert only(candidate) == ("noop", (1,), "same")
        assert not candidate.changed


@pytest.mark.parametrize("op", ["delete", "replace", "insert_after"])
@pytest.mark.parametrize("target", ["", " ", "\n", "\n\n", "\u2003"])
def test_an_empty_target_matches_nothing(op, target):
    candidate = edited("- a\n\n- b\n", edit(op, target, "x"))
    assert only(candidate) == ("invalid", (), "missing_target")
    assert not candidate.changed


@pytest.mark.parametrize("op", ["append", "insert_after"])
@pytest.mark.parametrize(
    "content", ["", "  \n ", "\n", "\t", "\u200b", "\ufeff\n\u2060", [" ", ""]]
)
def test_adding_blanks_is_no_change(op, content):
    candidate = edited("# S\n", edit(op, "# S", content))
    assert only(candidate) == ("noop", (), "blank")
    assert candidate.text == "# S\n"


def test_replacing_by_nothing_must_be_said_as_delete():
    assert only(edited("- a\n", edit("replace", "- a", " "))) == (
        "invalid",
        (),
        "missing_content",
    )


def test_part_of_a_line_is_no_target():
    skill = "- Use read_only mode\n- Use read mode\n"
    assert only(edited(skill, edit("delete", "- Use read"))) == (
        "ambiguous",
        (1, 2),
        "matches=2",
    )
    assert only(edited(skill, edit("delete", "read mode"))) == ("not_found", (2,), "mid_line")


def test_inline_edits_change_text_within_a_line():
    skill = "- Use feet and miles\n- Use yards\n"
    candidate = edited(
        skill,
        edit("replace", "feet", "metres", inline=True),
        edit("delete", " and miles", inline=True),
        edit("insert_after", "Use yards", " rarely", inline=True),
        edit("delete", "Use", inline=True),
        edit("replace", "a\nb", "c", inline=True),
        edit("replace", "feet and", "b", inline=True),
        edit("replace", "miles", "b\nc", inline=True),
    )
    assert candidate.text == "- Use metres\n- Use yards rarely\n"
    assert statuses(candidate) == [
        *["applied"] * 3,
        "ambiguous",
        "invalid",
        "conflict",
        "invalid",
    ]


# Several edits at once.


def test_targets_are_those_of_the_parent():
    candidate = edited("- a\n", edit("append", "", "- b"), edit("replace", "- b", "- use feet"))
    assert statuses(candidate) == ["applied", "not_found"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (edit("delete", "- a"), edit("insert_after", "- a", "- c")),
        (edit("insert_after", "- a", "- c"), edit("delete", "- a")),
        (edit("replace", "- a\n- b", "- x"), edit("replace", "- b", "- y")),
        (edit("delete", "- a"), edit("delete", "- a")),
        (edit("delete", "# S\n- a"), edit("append", "", "- z", section="S")),
        (edit("replace", "- a", "- x"), edit("replace", "a", "y", inline=True)),
        (edit("delete", "- a\n- b"), edit("insert_after", "- b", "- y")),
    ],
)
def test_of_two_edits_on_one_text_the_later_is_a_conflict(first, second):
    candidate = edited("# S\n- a\n- b\n", first, second)
    assert statuses(candidate) == ["applied", "conflict"]
    assert candidate.results[1].detail.startswith("with=0:")


def test_edits_side_by_side_do_not_collide():
    candidate = edited(
        "- a\n- b\n- c\n",
        edit("delete", "- b"),
        edit("insert_after", "- a", "- a1"),
        edit("replace", "- c", "- d"),
        edit("insert_after", "- a", "- a2"),
        edit("append", "", "- e"),
        edit("append", "", "- f"),
    )
    assert candidate.text == "- a\n- a1\n- a2\n- d\n- e\n- f\n"
    assert (candidate.added, candidate.removed) == (5, 2)


def test_credit_goes_to_the_applied_edits_alone():
    lost = [edit("delete", f"- x{n}") for n in range(3)]
    candidate = edited("- a\n", edit("append", "", "- good"), *lost)
    assert candidate.applied == ("0",)
    assert candidate.not_applied == ("1", "2", "3")


def test_two_edits_of_one_id_are_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="same id"):
        apply_edits("", [Edit("append", content="a", id="3.0")] * 2)


# Where text goes.


@pytest.mark.parametrize(
    ("skill", "content", "text"),
    [
        ("", "- b", "- b\n"),
        ("- a", "- b", "- a\n- b\n"),
        ("- a\n\n\n", "- b\n\n", "- a\n- b\n\n\n"),
        ("# S\n", "text", "# S\ntext\n"),
        ("- a\n", "text", "- a\n\ntext\n"),
        ("text\n", "---", "text\n\n---\n"),
        ("- a\n  - b\n", "  - c", "- a\n  - b\n  - c\n"),
        ("| a |\n|---|\n", "text", "| a |\n|---|\n\ntext\n"),
        ("| a |\n|---|\n", "| 1 |", "| a |\n|---|\n| 1 |\n"),
        ("# S\n- a\n\n" + SLOW + NOTES, "- b", "# S\n- a\n- b\n\n" + SLOW + NOTES),
        (SLOW + "# S\n", "- b", SLOW + "# S\n- b\n"),
        (SLOW, "- b", "- b\n\n" + SLOW),
        (FRONTMATTER, "- b", FRONTMATTER + "- b\n"),
        (FRONTMATTER + "\n" + SLOW, "b", FRONTMATTER + "\nb\n\n" + SLOW),
        ("```\nx\n```\n", "- b", "```\nx\n```\n- b\n"),
    ],
)
def test_append_goes_after_the_last_text_of_the_body(skill, content, text):
    candidate = edited(skill, edit("append", "", content))
    assert candidate.text == text
    assert candidate.faults == ()


def test_append_to_a_section_stays_in_it():
    skill = "## Steps\n- one\n\n### Detail\n- d\n\nTitle\n===\n"
    grown = edited(skill, edit("append", "", ["two", "three\nmore"], section="Steps"))
    assert grown.text == skill.replace("- one\n", "- one\n- two\n- three\n  more\n")
    deeper = edited(skill, edit("append", "", "### More\n- m", section="Steps"))
    assert deeper.text == skill.replace("- d\n", "- d\n\n### More\n- m\n")
    close = edited("## A\nB\n---\nb\n", edit("append", "", "text", section="A"))
    assert close.text == "## A\ntext\n\nB\n---\nb\n"


@pytest.mark.parametrize(
    "content", ["## Pitfalls\n- x", "# Top", "- y\n\nPitfalls\n---", " ## P"]
)
@pytest.mark.parametrize("op", ["append", "insert_after", "replace"])
def test_content_cannot_open_a_section_beside_the_one_it_goes_into(op, content):
    skill = "## Steps\n- one\n## Pitfalls\n- p\n"
    candidate = edited(skill, edit(op, "- one", content, section="Steps"))
    assert only(candidate)[0::2] == ("invalid", "heading")
    assert candidate.text == skill


def test_a_heading_sign_in_a_code_fence_opens_no_section():
    content = "```\n# comment\n```"
    candidate = edited("## S\n- a\n", edit("append", "", content, section="S"))
    assert candidate.text == f"## S\n- a\n\n{content}\n"


def test_nested_lists_keep_their_indentation():
    skill = "- a\n  - a1\n    text\n- b\n"
    candidate = edited(
        skill, edit("insert_after", "  - a1\n    text", "  - a2\n    - a3\n\n    text")
    )
    assert candidate.text == "- a\n  - a1\n    text\n  - a2\n    - a3\n\n    text\n- b\n"


@pytest.mark.parametrize(
    ("skill", "op", "target", "content", "code"),
    [
        ("```\nx\n```\n", "insert_after", "x", "y", "inside_fence"),
        ("- a\n  ~~~\n  x\n  ~~~\n", "insert_after", "  x", "  y", "inside_fence"),
        ("```py\nx\n```\n", "insert_after", "```py", "y", "inside_fence"),
        ("t\n```py\nx\n```\n", "insert_after", "t\n```py", "y", "inside_fence"),
        ("```py\nx\n```\n", "delete", "```py", "", "breaks_fence"),
        ("```py\nx\n```\n", "replace", "x", "a\n```\nb", "breaks_fence"),
        ("```py\nx\n```\n", "replace", "x\n```", "x", "breaks_fence"),
        ("```\nx", "append", "", "y", "inside_fence"),
        ("- a\n", "append", "", "```\nx", "open_fence"),
        ("- a\n", "replace", "- a", "~~~\nx\n```", "open_fence"),
        ("| a |\n|---|\n| 1 |\n", "insert_after", "| a |", "x", "inside_table"),
        ("| a |\n|---|\n| 1 |\n", "insert_after", "| a |", "| 0 |", "inside_table"),
        ("| a |\n|---|\n| 1 |\n", "insert_after", "|---|", "- x", "inside_table"),
        ("| a |\n|---|\n| 1 |\n", "insert_after", "|---|", "x", "inside_table"),
        ("| a |\n|---|\n| 1 |\n", "delete", "| a |", "", "breaks_table"),
        ("| a |\n|---|\n| 1 |\n", "replace", "|---|", "- x", "breaks_table"),
        ("| a |\n|---|\n| 1 |\n", "replace", "| 1 |", "text", "breaks_table"),
        ("T\nt\n===\n", "insert_after", "T", "x", "inside_heading"),
        (FRONTMATTER, "insert_after", "name: t", "x: y", "frontmatter"),
        (FRONTMATTER, "replace", "description: tables\n---", "description: x", "frontmatter"),
        (FRONTMATTER + "# S\n", "delete", "---\n# S", "", "frontmatter"),
        ("# S\n", "append", "", FRONTMATTER, "frontmatter"),
        ("", "append", "", "---", "frontmatter"),
        ("- a\n---\n- b\n", "delete", "- a", "", "frontmatter"),
        ("# S\n", "append", "", "a\0", "nul"),
        ("# S\n", "append", "", "x\n" + SLOW, "marker"),
        ("# S\n", "replace", "# S", " <!-- APPENDIX_END -->", "marker"),
    ],
)
def test_an_edit_that_would_break_the_structure_is_refused(skill, op, target, content, code):
    candidate = edited(skill, edit(op, target, content))
    assert only(candidate)[0::2] == ("invalid", code), candidate.results
    assert candidate.text == skill


@pytest.mark.parametrize(
    ("skill", "op", "target", "content", "text"),
    [
        ("```\nx\n```\n", "replace", "x", "y\n\n\nz", "```\ny\n\n\nz\n```\n"),
        ("```py\nx\n```\n", "replace", "```py\nx", "```sh\ny", "```sh\ny\n```\n"),
        (
            "t\n```py\nx\n```\n",
            "replace",
            "t\n```py",
            "u\n~~~\n~~~\n```",
            "u\n~~~\n~~~\n```\nx\n```\n",
        ),
        ("```py\nx\n```\nt\n", "delete", "```py\nx\n```", "", "t\n"),
        ("```py\nx\n```\nt\n", "insert_after", "x\n```", "u", "```py\nx\n```\nu\nt\n"),
        ("- a\n  ```\n  x\n  ```\n", "replace", "  x", "  y", "- a\n  ```\n  y\n  ```\n"),
        (
            "| a |\n|---|\n| 1 |\n",
            "insert_after",
            "|---|",
            "| 0 |",
            "| a |\n|---|\n| 0 |\n| 1 |\n",
        ),
        ("| a |\n|---|\n| 1 |\n", "replace", "| a |", "| b |", "| b |\n|---|\n| 1 |\n"),
        ("| a |\n|---|\n| 1 |\n", "delete", "| 1 |", "", "| a |\n|---|\n"),
        ("| a |\n|---|\n| 1 |\n", "insert_after", "| 1 |", "x", "| a |\n|---|\n| 1 |\n\nx\n"),
        ("- a\nt\n", "insert_after", "t", "---", "- a\nt\n\n---\n"),
        (FRONTMATTER, "replace", "name: t", "name: u", FRONTMATTER.replace(": t\n", ": u\n")),
        (FRONTMATTER + "x\n", "delete", FRONTMATTER, "", "x\n"),
        ("# S\n", "replace", "# S", FRONTMATTER + "# S", FRONTMATTER + "# S\n"),
        ("", "append", "", FRONTMATTER, FRONTMATTER),
    ],
)
def test_an_edit_that_keeps_the_structure_is_applied(skill, op, target, content, text):
    candidate = edited(skill, edit(op, target, content))
    assert candidate.text == text, candidate.results
    assert candidate.faults == ()


def test_frontmatter_that_no_longer_parses_is_a_fault_with_its_place():
    skill = "---\nname: t\ndescription: helps with tables\n---\n"
    new = "description: Use when: tables are given"
    candidate = edited(skill, edit("replace", "description: helps with tables", new))
    assert candidate.changed
    assert "line 3, column 22" in candidate.faults[0]
    assert structure_faults(candidate.text) == list(candidate.faults)


# Protected regions.


@pytest.mark.parametrize(
    "target",
    [
        "- rule a\n\n<!-- SLOW_UPDATE_START -->",
        "a\n\n<!-- SLOW_UPDATE_START -->",
        "keep me",
        "keep me  ",
        "keep",
        "<!-- SLOW_UPDATE_END -->",
        "<!-- SLOW_UPDATE_END -->\n- rule b",
        "- rule a\n\n" + SLOW + "- rule b",
    ],
)
@pytest.mark.parametrize("op", ["delete", "replace", "insert_after"])
def test_no_edit_reaches_into_a_region(op, target):
    skill = f"# S\n- rule a\n\n{SLOW}- rule b\n"
    candidate = edited(skill, edit(op, target, "- x"), edit(op, "keep", "x", inline=True))
    assert statuses(candidate) == ["protected", "protected"]
    assert candidate.text == skill


def test_text_in_a_region_does_not_make_the_body_ambiguous():
    candidate = edited(f"{SLOW}# Body\nkeep me\n", edit("replace", "keep me", "x"))
    assert candidate.text == f"{SLOW}# Body\nx\n"


def test_inline_edits_cannot_put_a_marker_together():
    skill = "(<!-- APPENDIX_START -->)\n- a\n"
    candidate = edited(
        skill,
        edit("delete", "(", inline=True),
        edit("delete", ")", inline=True),
        edit("append", "", "- b"),
    )
    assert statuses(candidate) == ["invalid", "invalid", "applied"]
    assert candidate.text == skill + "- b\n"


def write(text: str, name: str = "slow_update") -> list[Edit]:
    return [Edit("write_region", name, text)]


def test_only_its_owner_writes_a_region():
    for owner in (None, "appendix"):
        candidate = apply_edits(SLOW, write("new"), owner)
        assert only(candidate) == ("protected", (), "owner")
        assert candidate.text == SLOW
    assert statuses(apply_edits("", write("x", "body"), "body")) == ["invalid"]


@pytest.mark.parametrize("head", ["# S\r\n", "```\na\n\n\n\nb\n```\n", "# S  \n\n\n", "no end"])
@pytest.mark.parametrize("tail", ["", "\n\n\n- a\r\n", "last"])
def test_writing_a_region_leaves_every_other_byte_alone(head, tail):
    head = head if head.endswith("\n") else head + "\n"
    candidate = apply_edits(head + SLOW + tail, write("new\n\n\n  rule\n"), "slow_update")
    inside = "<!-- SLOW_UPDATE_START -->\nnew\n\n\n  rule\n<!-- SLOW_UPDATE_END -->\n"
    assert candidate.text == head + inside + tail


@pytest.mark.parametrize("skill", ["", "# S\n", "# S\n\n", "no end", "```\na\n\n\n\nb\n```\n"])
def test_an_absent_region_is_made_at_the_end(skill):
    candidate = apply_edits(skill, write("new"), "slow_update")
    assert candidate.text.startswith(skill)
    assert candidate.text.endswith(
        "<!-- SLOW_UPDATE_START -->\nnew\n<!-- SLOW_UPDATE_END -->\n"
    )
    assert candidate.faults == ()


def test_markers_in_generated_text_are_neutralised():
    skill = f"# S\n{SLOW}"
    text = "Rule one. <!-- SLOW_UPDATE_END --> Rule two.\n"
    text += "<!-- SLOW_UPDATE_END -->\n<!-- APPENDIX_START -->"
    candidate = apply_edits(skill, write(text), "slow_update")
    inside = region_text(candidate.text, "slow_update")
    assert inside == "Rule one. SLOW_UPDATE_END Rule two.\nSLOW_UPDATE_END\nAPPENDIX_START"
    assert candidate.text.count("SLOW_UPDATE_END -->") == 1
    assert "neutralised" in candidate.results[0].detail
    assert candidate.faults == ()


def test_a_region_takes_no_open_fence_and_the_same_text_is_no_change():
    assert only(apply_edits(SLOW, write("```\nx"), "slow_update")) == (
        "invalid",
        (),
        "structure",
    )
    same = write("keep me\n\n  - nested\n")
    assert only(apply_edits(SLOW, same, "slow_update")) == ("noop", (), "same")
    assert only(apply_edits("# S\n", write(" \n"), "slow_update")) == ("noop", (), "same")


def test_edits_and_a_region_write_go_into_one_candidate():
    edits = [*write("note", "appendix"), Edit("append", content="- b")]
    candidate = apply_edits("- a\n", edits, "appendix")
    assert (
        candidate.text == "- a\n- b\n\n<!-- APPENDIX_START -->\nnote\n<!-- APPENDIX_END -->\n"
    )


def test_a_region_is_written_once_per_candidate():
    candidate = apply_edits("", [*write("a"), *write("b")], "slow_update")
    assert statuses(candidate) == ["applied", "conflict"]


# Edits from untrusted JSON.


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (None, "not_an_object"),
        ("append x", "not_an_object"),
        ([{"op": "append"}], "not_an_object"),
        ({}, "unknown_op"),
        ({"op": "upsert", "content": "x"}, "unknown_op"),
        ({"op": ["append"], "content": "x"}, "unknown_op"),
        ({"op": "write_region", "target": "appendix", "content": "x"}, "unknown_op"),
        ({"op": "append"}, "wrong_type"),
        ({"op": "append", "content": None}, "wrong_type"),
        ({"op": "append", "content": 3}, "wrong_type"),
        ({"op": "append", "content": {"text": "x"}}, "wrong_type"),
        ({"op": "append", "content": []}, "wrong_type"),
        ({"op": "append", "content": ["x", None]}, "wrong_type"),
        ({"op": "delete", "target": 3}, "wrong_type"),
        ({"op": "delete", "target": "x", "inline": "yes"}, "wrong_type"),
        ({"op": "append", "content": "x", "section": 2}, "wrong_type"),
        ({"op": "append", "content": "x", "file": "../escaped.md"}, "names_a_file"),
        ({"op": "append", "content": "x", "path": "link/out.md"}, "names_a_file"),
        ({"op": "append", "content": "x", "File-Name": "/etc/out.md"}, "names_a_file"),
        ({"op": "append", "content": "x", "targetPath": "out.md"}, "names_a_file"),
    ],
)
def test_an_edit_that_cannot_be_read_still_has_its_row(value, code):
    candidate = edited("# S\n", value, edit("append", "", "- a"))
    assert statuses(candidate) == ["invalid", "applied"]
    assert candidate.results[0].detail.startswith(code + ":")


def test_an_unusable_edit_keeps_what_it_said():
    read = edit_from_untrusted({"op": "replace", "target": "- a", "content": None})
    assert isinstance(read, Unusable)
    assert (read.op, read.target) == ("replace", "- a")


def test_what_a_proposer_claims_is_not_taken_over():
    read = edit_from_untrusted(
        {"op": "append", "content": "x\ud800", "support": 8, "kind": "law", "items": ["a", 3]}
    )
    assert isinstance(read, Edit)
    assert (read.content, read.kind, read.items, read.support) == (
        "x\ufffd",
        "rule",
        ("a",),
        1,
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=5,
)
keys = ("op", "target", "content", "section", "inline", "kind", "items", "reason", "file")
proposals = st.dictionaries(
    st.sampled_from(keys),
    json_values | st.sampled_from(("append", "insert_after", "replace", "delete", "- rule a")),
)


@LAWS
@given(skills(), st.lists(json_values | proposals, max_size=4))
def test_whatever_is_proposed_gets_exactly_one_result(text, values):
    candidate = edited(text, *values)
    assert [result.edit for result in candidate.results] == [
        str(index) for index in range(len(values))
    ]


# Whole rewrites.


def test_a_rewrite_keeps_the_regions_byte_for_byte():
    parent = f"# S\n- a\n{SLOW}- b\n{NOTES}"
    changed = SLOW.replace("keep me", "drop me")
    candidate = rewrite(parent, f"# S\n{changed}- c\n", "5.0")
    assert candidate.text == f"# S\n{SLOW}- c\n\n{NOTES}"
    assert candidate.faults == ()


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("# S\n- a\n", "noop"),
        ("# S\r\n- a", "noop"),
        (" \n", "invalid"),
        ("# S\n<!-- APPENDIX_END -->\n", "invalid"),
        (f"# S\n{NOTES}", "protected"),
    ],
)
def test_a_rewrite_that_cannot_stand_changes_nothing(text, status):
    candidate = rewrite("# S\n- a\n", text, "5.0")
    assert statuses(candidate) == [status]
    assert not candidate.changed


@LAWS
@given(skills(), st.one_of(skills(), any_text))
def test_every_rewrite_keeps_regions_and_traces_each_line(parent, text):
    candidate = rewrite(parent, text, "5.0")
    assert len(candidate.sources) == len(split_lines(candidate.text))
    for name in ("slow_update", "appendix"):
        assert region_text(candidate.text, name) == region_text(parent, name)


# Laws.


@LAWS
@given(skills_and_edits())
def test_refused_edits_change_nothing(drawn):
    text, edits = drawn
    candidate = apply_edits(text, edits)
    assert len(candidate.results) == len(edits)
    kept = [
        e for e, r in zip(edits, candidate.results, strict=True) if r.edit in candidate.applied
    ]
    assert apply_edits(text, kept).text == candidate.text
    if not kept:
        assert candidate.text == text
        assert not candidate.changed


@LAWS
@given(skills_and_edits())
def test_sound_documents_stay_sound_and_regions_survive(drawn):
    text, edits = drawn
    candidate = apply_edits(text, edits)
    if structure_faults(text):
        return
    assert [fault for fault in candidate.faults if "frontmatter" not in fault] == []
    for name in ("slow_update", "appendix"):
        assert region_text(candidate.text, name) == region_text(text, name)


@LAWS
@given(skills_and_edits())
def test_blocks_that_no_edit_touches_are_still_blocks(drawn):
    text, edits = drawn
    if structure_faults(text):
        return
    candidate = apply_edits(text, edits)
    at = {source: line for line, source in enumerate(candidate.sources)}
    touched = {n - 1 for r in candidate.results for n in r.lines if r.edit in candidate.applied}
    new = {(b.kind, b.start) for b in parse(candidate.text).blocks if b.kind != "heading"}
    for block in parse(text).blocks:
        lines = range(block.start, block.end)
        if block.kind != "heading" and not touched & set(range(block.start - 1, block.end + 1)):
            assert [candidate.sources[at[n]] for n in lines] == list(lines)
            assert (block.kind, at[block.start]) in new


@LAWS
@given(skills_and_edits(), st.randoms(use_true_random=False))
def test_the_order_of_edits_on_different_text_does_not_matter(drawn, random):
    text, edits = drawn
    candidate = apply_edits(text, edits)
    points = Counter(
        result.lines[-1:]
        for given_edit, result in zip(edits, candidate.results, strict=True)
        if given_edit.op in ("append", "insert_after") and result.status is EditStatus.APPLIED
    )
    conflict = any(r.status is EditStatus.CONFLICT for r in candidate.results)
    if conflict or any(count > 1 for count in points.values()):
        return
    shuffled = [replace_id(e, str(n)) for n, e in enumerate(edits)]
    random.shuffle(shuffled)
    again = apply_edits(text, shuffled)
    assert again.text == candidate.text
    assert again.sources == candidate.sources
    assert sorted(r.edit for r in again.results) == sorted(r.edit for r in candidate.results)


def replace_id(one: Edit, name: str) -> Edit:
    return Edit(one.op, one.target, one.content, one.section, one.inline, id=name)


@LAWS
@given(
    st.lists(st.sampled_from(("keep", "delete", "replace", "insert")), max_size=12),
    st.booleans(),
)
def test_applying_is_splicing_by_hand(plan, final_end):
    lines = [f"- line {number}" for number in range(len(plan))]
    text = "\n".join(lines) + ("\n" if final_end and lines else "")
    edits, by_hand = [], []
    for line, what in zip(lines, plan, strict=True):
        if what == "delete":
            edits.append(Edit("delete", line))
        elif what == "replace":
            edits.append(Edit("replace", line, f"{line} new\n  more"))
            by_hand += [f"{line} new", "  more"]
        else:
            by_hand.append(line)
        if what == "insert":
            edits.append(Edit("insert_after", line, f"{line} after"))
            by_hand.append(f"{line} after")
    candidate = apply_edits(text, edits)
    assert split_lines(candidate.text) == by_hand
    assert all(result.status is EditStatus.APPLIED for result in candidate.results)
    if final_end and by_hand:
        assert candidate.text.endswith("\n")


def test_forty_edits_of_5000_lines_take_less_than_seconds():
    skill = "".join(f"- rule {n}\n  text\n\n```\nx{n}\n```\n" for n in range(834))
    edits = [Edit("replace", f"- rule {n}", f"- rule {n} new") for n in range(0, 400, 10)]
    edits += [Edit("delete", "- nowhere"), Edit("append", content="- last")]
    start = time.perf_counter()
    candidate = apply_edits(skill, edits)
    assert len(candidate.applied) == 41
    assert candidate.faults == ()
    assert time.perf_counter() - start < 5


# A frozen frontmatter

HEADS = (
    "---\nname: t\ndescription: >-\n  a\n  b # no\n---\n",
    "\ufeff---\r\nname: 't' # c\r\n---\r\n",
)
REWRITES = (
    "# New\n- a\n",
    "---\nname: other\n---\n# New\n",
    "---\nname: t\n---\n\n---\n\ntext\n",
    "\n\n# New\n",
    "---\n",
    "",
)


@given(skills_and_edits(), st.sampled_from(HEADS))
def test_no_edit_changes_or_drops_a_frozen_frontmatter(given_, head):
    text, edits = given_
    parent = head + text.removeprefix(FRONTMATTER)
    candidate = apply_edits(parent, edits, frozen=True)
    assert candidate.text.startswith(head)
    assert frontmatter_text(candidate.text) == frontmatter_text(parent) == head


@given(skills_and_edits())
def test_freezing_refuses_edits_of_the_frontmatter_and_nothing_else(given_):
    text, edits = given_
    frozen, free = apply_edits(text, edits, frozen=True), apply_edits(text, edits)
    if frozen.held:
        return
    assert frozen == free


@pytest.mark.parametrize(
    "edit",
    [
        Edit("replace", target="name: t", content="name: x"),
        Edit("delete", target="name: t"),
        Edit("insert_after", target="name: t", content="extra: 1"),
        Edit("replace", target="me: t", content="me: x", inline=True),
        Edit("replace", target="---\nname: t\n---", content="# T"),
        Edit("delete", target="---\nname: t\n---"),
        Edit("replace", target="---\nname: t\n---\n# S", content="---\nname: x\n---\n# S"),
    ],
)
def test_an_edit_of_a_frozen_frontmatter_is_refused(edit: Edit) -> None:
    parent = "---\nname: t\n---\n# S\n"
    candidate = apply_edits(parent, [edit], frozen=True)
    assert candidate.results[0].detail.startswith("frontmatter: ")
    assert candidate.text == parent
    # What is refused in any case is not held up by the frost.
    free = apply_edits(parent, [edit])
    assert candidate.held == (free.results != candidate.results)


def test_a_frozen_document_without_frontmatter_gets_none() -> None:
    made = "---\nname: x\n---\n# T"
    edit = Edit("replace", target="# T", content=made)
    assert apply_edits("# T\n", [edit], frozen=True).results[0].status is EditStatus.PROTECTED
    assert apply_edits("# T\n", [edit]).text.startswith("---\n")
    hidden = "x\ny\n---\nname: x\n---\n"
    edits = [Edit("delete", target="x"), Edit("delete", target="y")]
    assert apply_edits(hidden, edits, frozen=True).faults
    assert rewrite("# T\n", made + "\n", "0", frozen=True).text == "# T\n"


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("text", REWRITES)
def test_a_rewrite_keeps_a_frozen_frontmatter_byte_for_byte(head: str, text: str) -> None:
    parent = head + "# Old\n"
    candidate = rewrite(parent, text, "0", frozen=True)
    assert candidate.text.startswith(head)
    assert frontmatter_text(candidate.text) == head
    assert len(candidate.sources) == len(split_lines(candidate.text))
    again = rewrite(parent, candidate.text, "0", frozen=True)
    assert again.text == candidate.text


def test_lines_end_as_the_frontmatter_does() -> None:
    parent = "---\r\nname: t\r\n---\r\n# S\r\n- a\r\n"
    assert apply_edits(parent, [Edit("append", content="- b\n- c")]).text == (
        parent + "- b\r\n- c\r\n"
    )
    assert rewrite(parent, "---\nname: t\n---\n# N\n", "0").text == (
        "---\r\nname: t\r\n---\r\n# N\r\n"
    )
    region = Edit("write_region", target="slow_update", content="x")
    text = apply_edits(parent, [region], owner="slow_update").text
    assert "\n" not in text.replace("\r\n", "")

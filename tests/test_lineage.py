"""Every line of every version has exactly one origin, and keeps it while it stays."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skill_texts import NOTES, SLOW, advance, any_text, edits_for, seed_lineage, skills

from skilltrail.history.ask.blame import Lineage, Origin
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.candidate import composed
from skilltrail.skill.document import split_lines
from skilltrail.skill.edit import Edit
from skilltrail.skill.rewrite import rewrite

SEED = Origin(0)


def grown(text: str, *steps: list[Edit]) -> tuple[list[str], Lineage]:
    """Apply each step's edits to the version before it; return the last lines and lineage."""
    lineage = seed_lineage(text)
    for version, edits in enumerate(steps, start=1):
        candidate = apply_edits(text, edits, "slow_update")
        text, lineage = candidate.text, advance(lineage, candidate, version)
    return split_lines(text), lineage


def test_the_lines_of_a_seed_come_from_version_0():
    assert grown("# S\r\n- a") == (["# S", "- a"], (SEED, SEED))
    assert grown("") == ([], ())


def test_a_line_keeps_its_origin_through_later_edits_above_it():
    lines, lineage = grown(
        "# S\n- a\n",
        [Edit("append", content="- b", id="7.0")],
        [Edit("insert_after", "# S", "- c\n- d", id="9.0"), Edit("delete", "- a", id="9.1")],
    )
    assert lines == ["# S", "- c", "- d", "- b"]
    assert lineage == (SEED, Origin(2, "9.0"), Origin(2, "9.0"), Origin(1, "7.0"))


def test_lines_that_a_replacement_leaves_as_they_are_keep_their_origin():
    target, content = "- a\n- b\n- c", "- a\n- b2\n- c\n- d"
    _, lineage = grown("- a\n- b\n- c\n", [Edit("replace", target, content, id="3.0")])
    assert lineage == (SEED, Origin(1, "3.0"), SEED, Origin(1, "3.0"))


def test_a_moved_line_keeps_its_origin():
    lines, lineage = grown(
        "- a\n- b\n- c\n",
        [Edit("append", content="- d", id="3.0")],
        [Edit("delete", "- a", id="5.0"), Edit("append", content="- a\n- new", id="5.1")],
        [Edit("replace", "- b\n- c", "- c\n- b", id="7.0")],
    )
    assert lines == ["- c", "- b", "- d", "- a", "- new"]
    assert lineage == (SEED, SEED, Origin(1, "3.0"), SEED, Origin(2, "5.1"))


def test_a_line_that_was_gone_and_comes_back_is_new():
    _, lineage = grown(
        "- a\n- b\n",
        [Edit("delete", "- a", id="3.0")],
        [Edit("append", content="- a", id="5.0")],
    )
    assert lineage == (SEED, Origin(2, "5.0"))


def test_an_inline_change_makes_the_line_the_edits_own():
    edits = [Edit("replace", "feet", "metres", inline=True, id="3.0")]
    assert grown("- use feet\n- b\n", edits)[1] == (Origin(1, "3.0"), SEED)


def test_a_region_write_keeps_the_guidance_it_repeats():
    write = Edit("write_region", "slow_update", "keep me\nnew", id="4.0")
    lines, lineage = grown("# S\n" + SLOW, [write])
    assert lines[2:4] == ["keep me", "new"]
    assert lineage == (SEED, SEED, SEED, Origin(1, "4.0"), SEED)


def test_a_rewrite_maps_unchanged_and_moved_lines_to_their_origin():
    parent = f"# S\n- a\n- b\n{NOTES}"
    candidate = rewrite(parent, f"# S\n- b\n- new\n{NOTES}- a\n", "6.0")
    lineage = advance(seed_lineage(parent), candidate, 1)
    assert lineage == (SEED, SEED, Origin(1, "6.0"), SEED, SEED, SEED, SEED)
    assert (candidate.added, candidate.removed) == (2, 1)


def test_two_changes_in_a_row_trace_to_the_first_parent():
    first = apply_edits("- a\n- b\n", [Edit("replace", "- a", "- x", id="3.0")])
    second = apply_edits(first.text, [Edit("append", content="- c", id="4.0")])
    both = composed(first, second)
    assert advance(seed_lineage("- a\n- b\n"), both, 1) == (
        Origin(1, "3.0"),
        SEED,
        Origin(1, "4.0"),
    )
    assert both.applied == ("3.0", "4.0")
    with pytest.raises(ValueError, match="does not start"):
        composed(second, first)


@settings(max_examples=60, deadline=None)
@given(st.one_of(skills(), any_text), st.data())
def test_every_line_of_every_version_has_exactly_one_origin(text, data):
    lineage = seed_lineage(text)
    written: dict[Origin, set[str]] = {SEED: set(split_lines(text))}
    for version in (1, 2, 3):
        candidate = apply_edits(text, data.draw(edits_for(text)))
        lineage = advance(lineage, candidate, version)
        lines = split_lines(candidate.text)
        assert len(lineage) == len(lines)
        kept = [source for source in candidate.sources if isinstance(source, int)]
        assert len(set(kept)) == len(kept)
        for line, source, origin in zip(lines, candidate.sources, lineage, strict=True):
            if isinstance(source, str):
                assert source in candidate.applied
                assert origin == Origin(version, source)
                written.setdefault(origin, set()).add(line)
            assert line in written[origin]
        text = candidate.text

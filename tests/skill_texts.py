"""Skill documents and edits for property tests: orderly ones, broken ones, any text at all."""

from __future__ import annotations

from hypothesis import strategies as st

from skilltrail.history.ask.blame import Lineage, Origin
from skilltrail.skill.candidate import Candidate
from skilltrail.skill.document import split_lines
from skilltrail.skill.edit import Edit

SLOW = "<!-- SLOW_UPDATE_START -->\nkeep me\n\n  - nested\n<!-- SLOW_UPDATE_END -->\n"
NOTES = "<!-- APPENDIX_START -->\n- note\n<!-- APPENDIX_END -->\n"

BLOCKS = (
    "# Skill\n",
    "## Steps\n",
    "## Pitfalls\n",
    "### Detail\n",
    "Title\n=====\n",
    "\n",
    "- rule a\n",
    "- rule b  \n",
    "  - nested\n\t- tabbed\n",
    "1. first\n2. second\n",
    "Some text\nover two lines\n",
    "```\ncode\n\n\n- rule a\n```\n",
    "~~~~py\n```\nx = 1\n~~~~\n",
    "- item\n  ```\n  code\n  ```\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n",
    "> quoted\n> ```\n> x\n> ```\n",
    "한국어 규칙\n",
    "قاعدة one line ⚠️ می\u200cخواهم 👩\u200d🔧\n",
    "Never write <!-- SLOW_UPDATE_END --> yourself.\n",
    "---\n",
)
FRONTMATTER = "---\nname: t\ndescription: tables\n---\n"

any_text = st.text(max_size=60)
line_soup = st.lists(
    st.sampled_from(
        ["", " ", "a", "- a", "```", "~~~", "| a |", "|---|", "---", "===", "# H", "\r", "\0"]
        + ["قاعدة\u2028one line\x0cstill"]
        + SLOW.splitlines()
        + NOTES.splitlines()
    ),
    max_size=14,
).map("\n".join)


@st.composite
def skills(draw: st.DrawFn) -> str:
    """Draw a well-formed document: blocks in any order, regions at most once each."""
    blocks = draw(st.lists(st.sampled_from(BLOCKS), max_size=9))
    for region in (SLOW, NOTES):
        if draw(st.booleans()):
            at = draw(st.integers(0, len(blocks)))
            blocks.insert(at, region)
    head = FRONTMATTER if draw(st.booleans()) else "\n"
    return head + "\n".join(blocks)


CONTENTS = (
    "- new",
    "- new\n  - deeper\n",
    "text",
    "```\nopen",
    "```\nclosed\n```",
    "---",
    "| 5 | 6 |",
    "# Top",
    "#### Low\ntext",
    "  \n ",
    "- rule a",
    "<!-- SLOW_UPDATE_END -->",
    "---\nname: x\n---\ntext",
    "- rule a\n\n- other\r\n",
    "\0",
)


@st.composite
def edits_for(draw: st.DrawFn, text: str) -> list[Edit]:
    """Draw edits whose targets mostly stand in `text`, some across several lines."""
    lines = split_lines(text)
    edits = []
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, max(len(lines) - 1, 0)))
        size = draw(st.sampled_from((1, 1, 1, 2, 3, 5)))
        stray = draw(st.booleans()) and draw(st.booleans())
        edits.append(
            Edit(
                op=draw(st.sampled_from(("append", "insert_after", "replace", "delete"))),
                target="- ghost" if stray else "\n".join(lines[start : start + size]),
                content=draw(st.sampled_from(CONTENTS)),
                section=draw(st.sampled_from((None, None, None, "Steps", "Nowhere"))),
                inline=draw(st.sampled_from((False, False, False, True))),
            )
        )
    return edits


@st.composite
def skills_and_edits(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    text = draw(st.one_of(skills(), skills(), line_soup, any_text))
    return text, draw(edits_for(text))


def seed_lineage(text: str) -> Lineage:
    """Return where the lines of a seed skill come from: version 0."""
    return (Origin(0),) * len(split_lines(text))


def advance(lineage: Lineage, candidate: Candidate, version: int) -> Lineage:
    """Return where the lines of a candidate come from, whose parent has `lineage`."""
    assert len(lineage) == len(split_lines(candidate.parent))
    return tuple(
        lineage[source] if isinstance(source, int) else Origin(version, source)
        for source in candidate.sources
    )

"""What makes a document unusable, and that orderly ones pass."""

from __future__ import annotations

import json
import shutil
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skill_texts import FRONTMATTER, NOTES, SLOW, any_text, line_soup, skills

from skilltrail.core.hidden import UNSEEN
from skilltrail.history.log.words import visible
from skilltrail.report.page import script
from skilltrail.report.page import shown as page_text
from skilltrail.runtime.console import safe
from skilltrail.skill.document import parse
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


UNSEEN_SAMPLE = (
    "\x1b\x7f\x85\r\x0c\xad\u034f\u061c\u115f\u17b4\u180b\u200b\u200c\u200d\u200e\u2028\u202e"
    "\u2060\u2066\u206f\u2800\u3164\ufe00\ufe0e\ufe0f\ufeff\uffa0\ufff9\U0001bca0\U0001d173"
    "\U00013430\U000e0001\U000e0041\U000e0100\U000e01ef"
)
FORMAT_BUT_SEEN = set("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2") | {
    "\U000110bd",
    "\U000110cd",
}


@pytest.mark.parametrize("char", UNSEEN_SAMPLE)
def test_a_character_that_nobody_sees_is_refused_and_spelled_out(char: str) -> None:
    text = f"# Skill\n- Copy the answer{char} from the text.\n"
    (fault,) = structure_faults(text)
    assert fault == f"line 2 holds what nobody sees: U+{ord(char):04X}"
    shown = f"\\u{{{ord(char):x}}}"
    assert shown in safe(text)
    assert shown in page_text(text)
    assert shown in visible(text)


@given(st.text(st.characters(categories=["Cc", "Cf", "Zl", "Zp"]), min_size=1, max_size=4))
def test_no_control_or_format_character_that_does_not_show_passes(odd: str) -> None:
    odd = "".join(char for char in odd if char not in FORMAT_BUT_SEEN | {"\t", "\n"})
    assert bool(structure_faults(f"a{odd}b")) == bool(odd)


@pytest.mark.parametrize(
    "line",
    ["⚠️ Mind the units", "1️⃣ First", "👨\u200d👩\u200d👧 and 🏳️\u200d🌈"]
    + ["می\u200cخواهم", "क्\u200dष", "한국어 ü ﷺ"],
)
def test_pictures_and_joined_scripts_are_text(line: str) -> None:
    assert structure_faults(line + "\n") == []


def test_hidden_text_in_the_place_of_a_picture_is_refused() -> None:
    assert structure_faults("⚠" + "\ufe0f" * 3)
    assert structure_faults("⚠" + "".join(chr(0xE0100 + b) for b in b"send"))
    assert structure_faults("\U0001f3f4" + "".join(chr(0xE0000 + b) for b in b"send"))


def test_the_page_and_python_know_the_same_hidden_characters() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    code = (
        script(("dom.js",)).removesuffix("})();")
        + """
        const found = [];
        for (let n = 0; n < 0x110000; n++) {
          if (n >= 0xd800 && n <= 0xdfff) continue;
          if (plain(`a${String.fromCodePoint(n)}b`).startsWith("a\\\\u{")) found.push(n);
        }
        console.log(JSON.stringify(found));
    })();"""
    )
    told = subprocess.run([node, "-e", code], capture_output=True, check=True, timeout=60)
    points = (n for n in range(0x110000) if not 0xD800 <= n <= 0xDFFF)
    ours = [n for n in points if UNSEEN.search(f"a{chr(n)}b")]
    assert json.loads(told.stdout) == ours


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


@pytest.mark.parametrize(
    "unit",
    [
        "\n",
        " ",
        "# a\n",
        "## a\n# b\n",
        "a\n=\n",
        "```\n",
        "|a|\n|-|\n",
        ">",
        "- ",
        "[",
        "\u200b",
    ]
    + ["<!-- SLOW_UPDATE_START -->\n", SLOW, "<!-- APPENDIX_END -->\n", "a\u0315\u0316"],
)
def test_the_time_a_document_takes_grows_with_its_length(unit: str) -> None:
    begin = time.process_time()
    structure_faults(unit * (100_000 // len(unit)))
    assert time.process_time() - begin < 5


def test_a_hundred_thousand_headings_are_read_in_seconds() -> None:
    begin = time.process_time()
    document = parse("".join(f"{'#' * (1 + n % 6)} h{n}\n" for n in range(100_000)))
    assert time.process_time() - begin < 20
    last = document.sections[-1]
    assert (last.start, last.end, last.own_end) == (99_999, 100_000, 100_000)
    assert document.sections[1].end == 6  # the next heading of level 1 or 2

"""What reaches a terminal is safe, and no console can stop a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.core.hidden import UNSEEN
from skilltrail.runtime.console import safe

ROOT = Path(__file__).resolve().parents[1]
SHOW = """
from skilltrail.runtime.console import complain, emit, emit_json, say, table
from skilltrail.core.errors import UsageError
text = "- a \\u2192 b \\u2014 caf\\u00e9 \\ud55c\\uad6d\\uc5b4 \\x1b[31mred\\x07 \\u202e"
emit(text)
emit_json({"text": text})
say(text)
table(("what", "score"), [(text, 1)], right=("score",))
complain(UsageError(text))
"""


def show(code: str = SHOW, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONUTF8": "0", **env},
        capture_output=True,
    )


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8", "euc-kr"])
def test_a_console_that_lacks_a_character_shows_a_replacement(encoding: str) -> None:
    """Case encoding-03: an arrow in progress output crashed a legacy console."""
    done = show(PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    for stream in (done.stdout, done.stderr):
        assert "- a " in stream.decode(encoding)
        assert b"\x1b" not in stream
        assert b"\x07" not in stream


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_json_on_stdout_loses_nothing_whatever_the_console(encoding: str) -> None:
    code = (
        'from skilltrail.runtime.console import emit_json; emit_json({"t": "\\u2192 \\ud55c"})'
    )
    done = show(code, PYTHONIOENCODING=encoding)
    assert json.loads(done.stdout.decode(encoding)) == {"t": "\u2192 \ud55c"}


def test_a_document_on_a_pipe_keeps_its_bytes() -> None:
    code = 'import skilltrail.runtime.console as c; c.emit_exact("\\u2192 \\x1b[0m\\r\\n")'
    assert show(code, PYTHONIOENCODING="cp1252").stdout == "\u2192 \x1b[0m\r\n".encode()


def test_colours_and_markup_of_other_peoples_text_are_plain_words() -> None:
    code = 'from skilltrail.runtime.console import say; say("[bold red]x[/] \\x1b]8;;http://a\\x07")'
    done = show(code, FORCE_COLOR="1", PYTHONIOENCODING="utf-8")
    assert b"[bold red]x[/]" in done.stderr
    assert b"\x1b]8" not in done.stderr


def test_a_secret_is_hidden_in_errors() -> None:
    code = (
        "from skilltrail.runtime.console import complain\n"
        "from skilltrail.core.errors import UsageError\n"
        "complain(UsageError('key sk-abcdefghijklmnopqrstuvwxyz and hunter2hunter2'))"
    )
    done = show(code, MY_API_KEY="hunter2hunter2")
    assert b"abcdefghij" not in done.stderr
    assert b"hunter2" not in done.stderr


@given(st.text())
def test_safe_text_holds_no_control_character_and_keeps_the_rest(text: str) -> None:
    shown = safe(text)
    assert UNSEEN.search(shown) is None
    shown.encode("utf-8")
    if UNSEEN.search(text.replace("\r\n", "\n")) is None and not any(
        0xD800 <= ord(one) <= 0xDFFF for one in text
    ):
        assert shown == text.replace("\r\n", "\n")

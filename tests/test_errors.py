"""Errors say what was asked, what was found and what to do, each as a sentence does."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from report_world import Project, make_project

from skilltrail.core import errors
from skilltrail.core.errors import SkilltrailError, UsageError
from skilltrail.core.hidden import HIDDEN, spelled_block, spelled_out
from skilltrail.history.log.words import visible
from skilltrail.runtime.console import safe

ROOT = Path(__file__).resolve().parents[1]
NAMES = {name for name, kind in vars(errors).items() if isinstance(kind, type)} | {
    "ModelError",
    "ModelConfigError",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("errors"), {"epochs": 1, "batch_size": 4})


def skilltrail(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "skilltrail", *args],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "NO_COLOR": "1"},
        capture_output=True,
        encoding="utf-8",
    )


def remedies() -> Iterator[tuple[str, str]]:
    """Yield (place, beginning) of every remedy in the code that begins with plain text."""
    for path in sorted((ROOT / "skilltrail").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or len(node.args) < 3:
                continue
            called = node.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            text = node.args[2]
            if isinstance(text, ast.JoinedStr) and text.values:
                text = text.values[0]
            if name in NAMES and isinstance(text, ast.Constant) and text.value:
                yield f"{path.name}:{node.lineno}", str(text.value)


def test_an_error_is_one_message_of_sentences() -> None:
    assert str(UsageError("asked", "found", "Do it")) == "asked: found. Do it."
    assert str(UsageError("asked")) == "asked."
    assert str(SkilltrailError("asked.", "", "Do it.")) == "asked. Do it."


def test_a_remedy_begins_as_a_sentence_and_a_command_stands_in_backticks() -> None:
    found = list(remedies())
    assert len(found) > 100
    assert [(place, text) for place, text in found if text[0].islower()] == []


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("audit --patch p99", "patch 'p99': the log has no such patch. `skilltrail log --type"),
        ("audit --patch 99.0", "patch 'p99': the log has no such patch"),
        ("audit --patch p0", "patch 'p0': the log has no such patch"),
        ("audit --version 99", "version 99: the log holds 0 to "),
        ("audit --line 999", " lines. `skilltrail blame` numbers them."),
        ("audit --text zzz", "Quote a part of one line"),
        (
            "diff v0 nofile.md",
            "skill 'nofile.md': no file, version, run, DVC experiment or git",
        ),
        ("log --run nope", "log 'nope': no file, run, DVC experiment or git revision with a"),
        ("adopt live.md --skill nofile.md", "Name a file, vN, seed, best, last or RUN:vN"),
    ],
)
def test_what_is_not_there_is_named_with_the_way_to_what_is(
    project: Project, command: str, told: str
) -> None:
    done = skilltrail(project.folder, *command.split())
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize("place", [".skilltrail", ".skilltrail/store.db"])
def test_a_file_in_the_place_of_the_store_is_one_clear_error(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text("a letter to my aunt, of some length\n", encoding="utf-8")
    for action in ("stats", "retry-missing"):
        done = skilltrail(tmp_path, "store", action)
        assert done.returncode == 1
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
        assert "Traceback" not in done.stderr
    assert (tmp_path / place).read_text("utf-8").startswith("a letter")


def test_hidden_characters_are_spelled_the_same_wherever_text_is_shown() -> None:
    text = "a\x1b[31m \u202eb\x07\x9f"
    assert spelled_out(text) == visible(text) == spelled_block(text) == safe(text)
    assert HIDDEN.search(safe(text)) is None

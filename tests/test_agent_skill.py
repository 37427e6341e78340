"""The skill that teaches an agent this tool: it has the form of one, its commands work."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from skilltrail.cli.commands import COMMANDS
from skilltrail.cli.main import run

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "skills/skilltrail/SKILL.md").read_text(encoding="utf-8")


def blocks() -> list[str]:
    found = re.findall(r"^```\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    return [line for block in found for line in block.splitlines()]


def test_it_has_the_frontmatter_that_agents_read() -> None:
    told = YAML(typ="safe").load(TEXT.split("---\n")[1])
    assert told["name"] == "skilltrail"
    assert 50 < len(told["description"]) <= 1024


def test_every_command_it_names_exists() -> None:
    named = set(re.findall(r"skilltrail ([a-z][a-z-]*)", TEXT.split("---\n", 2)[2]))
    known = {command.name for command in COMMANDS}
    assert {name for name in named if f"`skilltrail {name}" in TEXT} <= known


def test_its_commands_run_on_the_reference_run(
    reference_clone: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["rebuild"]) == 0
    tried = [line for line in blocks() if line.startswith("skilltrail")]
    for line in tried:
        capfd.readouterr()
        _, *args = shlex.split(line)
        # A fresh clone has no recorded calls: `verify` says so, `doctor` may.
        assert run(args) in ((0, 1, 3) if args[0] in ("doctor", "verify") else (0,)), line
        assert capfd.readouterr().out, line
    assert len(tried) > 8


def test_it_is_written_where_agents_look_and_over_nobodys_text(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", "--agent-skill", str(tmp_path)]) == 0
    path = tmp_path / "skilltrail/SKILL.md"
    assert path.read_text(encoding="utf-8") == TEXT
    path.write_text("mine")
    assert run(["export", "--agent-skill", str(tmp_path)]) == 2
    assert path.read_text() == "mine"
    assert "holds another text" in capfd.readouterr().err

"""The README tells the truth: its figures, commands and links are those of the repository.

The links of every other page are looked at too.
"""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from skilltrail.cli.commands import COMMANDS
from skilltrail.cli.main import run

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "skilltrail").rglob("README.md")),
    *sorted((ROOT / "recipes").rglob("*.md")),
]


def test_the_table_of_the_result_is_the_reference_run() -> None:
    scores = json.loads((ROOT / "reports/out/metrics.json").read_text(encoding="utf-8"))
    selection, test = scores["selection"], scores["test"]
    assert f"| {selection['seed']:.3f} | {selection['best']:.3f} | (chosen on it) |" in README
    gain = f"{test['gain']:+.3f} ({test['gain_low']:+.3f} to {test['gain_high']:+.3f})"
    assert f"| {test['seed']:.3f} | {test['best']:.3f} | {gain} |" in README


def test_every_command_it_names_exists() -> None:
    named = set(re.findall(r"`skilltrail ([a-z][a-z-]*)", README))
    assert named - {command.name for command in COMMANDS} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    inside = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    assert [link for link in inside if not (page.parent / link).exists()] == []


def test_the_questions_of_the_history_page_are_answered_on_the_reference_run(
    reference_clone: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """In a clone of what is committed, as a reader has it."""
    page = (ROOT / "docs/history.md").read_text(encoding="utf-8")
    table = page.split("## Ask")[1].split("\n| question")[1].split("\n\n")[0]
    commands = re.findall(r"`((?:skilltrail|git) [^`]+)`", table)
    assert len(commands) > 15
    assert run(["rebuild"]) == 0
    for command in commands:
        name, *args = shlex.split(command)
        capfd.readouterr()
        if name == "skilltrail":
            assert run(args) in (0, 3), command
        else:
            args = ["-c", "core.pager=cat", *args]
            subprocess.run(["git", *args], cwd=reference_clone, check=True)
        wrote = capfd.readouterr().out
        assert wrote, command
        if "diff" in command:
            assert "+- Answer with the shortest words" in wrote

"""Journeys of a new user, typed as in `tests/journeys/`, against a model on loopback.

A line `#> text` says what a person must have seen by then.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault_server import FaultServer
from tests.skill_server import ITEMS, says

JOURNEYS = Path(__file__).resolve().parent / "journeys"
FIRST = "own_csv"
# These begin where the first one ends.
LATER = ("why_this_line", "lr_seeds", "second_clone", "two_people", "in_ci", "two_targets")


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer(say=says) as one:
        yield one


def new_folder(place: Path) -> Path:
    """Return a folder with a person's own data and skill in it, and nothing else."""
    folder = place / "my prices"
    folder.mkdir()
    with (folder / "prices.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Question", "Expected"])
        writer.writerows([one["question"], one["answer"]] for one in ITEMS)
    (folder / "SKILL.md").write_text(
        "---\nname: prices\ndescription: Tells prices.\n---\n\n# Prices\n", "utf-8"
    )
    return folder


def travel(name: str, folder: Path, server: FaultServer) -> str:
    """Type a journey in a folder and return all that a person saw."""
    script = (JOURNEYS / f"{name}.sh").read_text("utf-8")
    tools = folder.parent / "bin"
    tools.mkdir(exist_ok=True)
    for tool, module in (("skilltrail", "-m skilltrail"), ("dvc", "-m dvc"), ("python", "")):
        (tools / tool).write_text(
            f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n', "utf-8"
        )
        (tools / tool).chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(JOURNEYS.parents[1]),
        "SERVER": f"{server.url}/v1",
        "PLACE": str(folder.parent),
        "RECIPES": str(JOURNEYS.parents[1] / "recipes"),
    }
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, env=env, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, encoding="utf-8", timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\nexit {done.returncode}"
    missing = [line[3:] for line in script.splitlines()
               if line.startswith("#> ") and line[3:] not in done.stdout]  # fmt: skip
    assert missing == [], done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def trained(server: FaultServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace in which the first journey ends."""
    folder = new_folder(tmp_path_factory.mktemp("first"))
    travel(FIRST, folder, server)
    return folder


def test_a_csv_of_ones_own_becomes_a_trained_skill_in_two_commands(trained: Path) -> None:
    typed = (JOURNEYS / f"{FIRST}.sh").read_text("utf-8").splitlines()
    commands = [line for line in typed if line and not line.startswith("#")]
    assert [line.split()[0] for line in commands] == ["skilltrail", "dvc", "skilltrail"]
    assert "currency" in (trained / "skills" / "best_skill.md").read_text("utf-8")


@pytest.mark.parametrize("name", ["own_skill", "own_scorer"])
def test_a_journey_from_an_empty_folder(name: str, server: FaultServer, tmp_path: Path) -> None:
    travel(name, new_folder(tmp_path), server)


@pytest.mark.parametrize("name", LATER)
def test_a_journey_that_goes_on_from_a_trained_skill(
    name: str, trained: Path, server: FaultServer, tmp_path: Path
) -> None:
    folder = tmp_path / "my prices"
    shutil.copytree(trained, folder, symlinks=True)
    travel(name, folder, server)


def test_every_journey_is_taken() -> None:
    named = {FIRST, "own_skill", "own_scorer", *LATER}
    assert {path.stem for path in JOURNEYS.glob("*.sh")} == named

"""The recipes run as they stand, on the embedded model, in a clone with few items."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from skilltrail.models.backends.weights import PACKAGE

ROOT = Path(__file__).resolve().parents[1]
LIMITS = "-S data.limit.train=8 -S data.limit.selection=4 -S data.limit.test=4"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in (PACKAGE, "xllamacpp", "dvc"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: run `make setup`")
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("recipes run in a clone, and this is no git repository")
    folder = tmp_path_factory.mktemp("recipes") / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    shutil.copytree(ROOT / "recipes", folder / "recipes", dirs_exist_ok=True)
    return folder


def run(clone: Path, name: str) -> str:
    """Run a recipe from the params of HEAD and return what it says."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DVC_", "GIT_"))}
    kept["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    for who in ("AUTHOR", "COMMITTER"):
        kept |= {f"GIT_{who}_NAME": "T", f"GIT_{who}_EMAIL": "t@example.org"}
    subprocess.run(["git", "checkout", "--quiet", "--", "params.yaml"], cwd=clone, check=True)
    done = subprocess.run(
        ["sh", f"recipes/{name}.sh"],
        cwd=clone,
        env=kept | {"LIMITS": LIMITS},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def first(clone: Path) -> str:
    return run(clone, "first_run")


def test_a_first_run_shows_what_it_made_of_the_seed_skill(first: str, clone: Path) -> None:
    assert (clone / "skills/best_skill.md").is_file()
    refs = subprocess.run(
        ["git", "for-each-ref", "--format=%(refname)", "refs/evolution-versions/first"],
        cwd=clone,
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout.split()
    assert len(refs) > 1
    assert "\n+" in first


def test_what_was_taken_out_came_back_or_not(first: str, clone: Path) -> None:
    said = run(clone, "come_back")
    if "accepted nothing" not in said:
        assert "Taken out: " in said
        assert "Why text" in said or "Nobody proposed it again." in said


def test_four_schedules_give_four_curves_in_one_picture(first: str, clone: Path) -> None:
    said = run(clone, "schedules")
    names = [f"lr-{name}" for name in ("constant", "linear", "cosine", "autonomous")]
    assert all(name in said for name in names)
    picture = (clone / "plots/schedules.svg").read_text(encoding="utf-8")
    assert picture.count("<path d=") == 4
    assert all(name in picture for name in names)

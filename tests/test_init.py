"""`skilltrail init`: a workspace in anybody's repository, which overwrites nothing there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skilltrail.core.errors import UsageError
from skilltrail.envs.registry import environment_names
from skilltrail.runtime.template import (
    LIBRARY,
    Library,
    init_workspace,
    installed_pipeline,
    require_library,
    upgrade_workspace,
)

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """An empty repository in a folder with a blank in its name."""
    folder = tmp_path / "my project"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
    return folder


def files(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


def test_an_empty_repository_gets_a_workspace_and_its_example(repository: Path) -> None:
    written = init_workspace(repository, "textqa")
    assert {"dvc.yaml", "params.yaml", "stages/train.py", "data/textqa/train.jsonl"} <= set(
        written
    )
    assert set(written) <= files(repository)
    assert (repository / ".dvc" / "config").is_file()


def test_the_pipeline_depends_on_the_library_by_one_tracked_file(
    repository: Path,
) -> None:
    init_workspace(repository, None)
    pipeline = (repository / "dvc.yaml").read_text("utf-8")
    assert pipeline.count(f"- {LIBRARY.as_posix()}") == 4
    assert "skilltrail/core" not in pipeline
    assert "- schemas" not in pipeline
    done = subprocess.run(
        [sys.executable, "-m", "dvc", "status", "--json"], cwd=repository, capture_output=True
    )
    assert json.loads(done.stdout)["split"], done.stderr


def test_every_environment_has_the_folder_that_dvc_tracks_for_it(repository: Path) -> None:
    init_workspace(repository, None)
    for env in environment_names():
        assert (repository / f"data/{env}/README.md").is_file()
    params = repository / "params.yaml"
    params.write_text(params.read_text("utf-8").replace("env: textqa", "env: qa"), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "dvc", "status", "split"], cwd=repository, capture_output=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("standing", ["dvc.yaml", "data/mine.csv", "stages/mine.py"])
def test_what_stands_there_is_never_written_over(repository: Path, standing: str) -> None:
    path = repository / standing
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine", "utf-8")
    with pytest.raises(UsageError, match=r"already there.*--dir"):
        init_workspace(repository, None)
    assert files(repository) == {standing}
    assert path.read_text("utf-8") == "mine"


def test_a_subfolder_takes_the_workspace_where_the_top_is_taken(repository: Path) -> None:
    (repository / "data").mkdir()
    (repository / "README.md").write_text("mine", "utf-8")
    command = [sys.executable, "-m", "skilltrail", "init", "--dir", "training", "--json"]
    done = subprocess.run(
        command,
        cwd=repository,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["folder"] == "training"
    assert (repository / "training" / "dvc.yaml").is_file()
    assert (repository / "training" / ".dvc").is_dir()
    assert (repository / "README.md").read_text("utf-8") == "mine"


def test_a_readme_and_git_files_of_ones_own_are_kept(repository: Path) -> None:
    for name in ("README.md", ".gitignore", ".gitattributes"):
        (repository / name).write_text("mine", "utf-8")
    init_workspace(repository, None)
    assert (repository / "README.md").read_text("utf-8") == "mine"
    assert (repository / "SKILLTRAIL.md").is_file()
    ignored = (repository / ".gitignore").read_text("utf-8").splitlines()
    assert ignored[0] == "mine"
    assert ".skilltrail/" in ignored
    attributes = (repository / ".gitattributes").read_text("utf-8").splitlines()
    assert attributes[0] == "mine"
    assert not [line for line in attributes if line.startswith("* ")]


def test_outside_a_repository_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="git init"):
        init_workspace(tmp_path, None)
    assert files(tmp_path) == set()


def test_another_library_is_refused_until_the_workspace_is_upgraded(repository: Path) -> None:
    init_workspace(repository, None)
    require_library(repository)
    here = Library.here()
    Library("0.0.1", "f" * 64, here.pages).write(repository)
    with pytest.raises(UsageError, match=r"0\.0\.1.*init --upgrade"):
        require_library(repository)
    done = upgrade_workspace(repository)
    assert (done.written, done.left) == ((), ())
    require_library(repository)


def test_an_upgrade_writes_untouched_pages_and_leaves_edited_ones(
    repository: Path,
) -> None:
    init_workspace(repository, None)
    here, page = Library.here(), repository / "stages" / "train.py"
    right = page.read_text("utf-8")
    page.write_text("mine", "utf-8")
    (repository / "stages" / "split.py").unlink()
    done = upgrade_workspace(repository)
    assert (done.written, done.left) == (("stages/split.py",), ("stages/train.py",))
    assert page.read_text("utf-8") == "mine"
    assert page.with_name("train.py.new").read_text("utf-8") == right
    assert Library.of(repository) == here


def test_a_clone_of_the_project_needs_no_such_file() -> None:
    assert Library.of(ROOT) is None
    require_library(ROOT)


def test_a_damaged_file_is_named(repository: Path) -> None:
    init_workspace(repository, None)
    (repository / LIBRARY).write_text("[" * 3000, "utf-8")
    with pytest.raises(UsageError, match=r"library\.json.*damaged.*--upgrade"):
        require_library(repository)
    upgrade_workspace(repository)
    require_library(repository)


def test_a_clone_of_the_project_is_not_upgraded() -> None:
    with pytest.raises(UsageError, match="dvc repro"):
        upgrade_workspace(ROOT)
    assert not (ROOT / LIBRARY).exists()


def test_a_refused_subfolder_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="git init"):
        init_workspace(tmp_path / "training", None)
    assert not (tmp_path / "training").exists()


def test_every_stage_of_the_template_names_the_library_once() -> None:
    text = installed_pipeline((ROOT / "dvc.yaml").read_text("utf-8"))
    assert text.count(LIBRARY.as_posix()) == 4


def test_an_upgrade_brings_the_rules_by_which_two_runs_are_merged(repository: Path) -> None:
    init_workspace(repository, None)
    path = repository / ".gitattributes"
    whole = path.read_text("utf-8")
    earlier = [line for line in whole.splitlines() if not line.endswith(" -merge")]
    path.write_text("*.mine text\n" + "\n".join(earlier) + "\n", "utf-8")
    assert upgrade_workspace(repository).written == (".gitattributes",)
    now = path.read_text("utf-8").splitlines()
    assert now[0] == "*.mine text"
    assert set(now[1:]) == set(whole.splitlines())
    assert upgrade_workspace(repository).written == ()

"""Doctor and preflight: what a run would miss, and what a killed experiment left."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from skilltrail.cli.checks import OK, WARNING, git_check, store_check
from skilltrail.core.errors import UsageError
from skilltrail.params.fields import Params
from skilltrail.runtime.preflight import input_paths, left_behind, refuse_left_behind
from skilltrail.store.place import Place


def git(folder: Path, *args: str) -> str:
    who = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
    done = subprocess.run(
        ["git", *who, *args], cwd=folder, capture_output=True, encoding="utf-8", check=True
    )
    return done.stdout.strip()


def write(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x\n", encoding="utf-8", newline="\n")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "main"
    write(
        root,
        "dvc.yaml",
        "skilltrail/method/loop.py",
        "data/textqa/a.jsonl",
        "skills/seeds/textqa.md",
    )
    (root / ".gitignore").write_text("big/\n__pycache__/\n", encoding="utf-8")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "a")
    return root


# --- inputs that git does not track ---


def test_a_new_script_that_git_does_not_track_is_listed_before_queueing(
    repository: Path,
) -> None:
    """Case dvc-06: the queued experiment would fail for want of it."""
    write(repository, "stages/score.py", "stages/__pycache__/score.pyc", "notes.txt")
    write(repository, "reports/out/metrics.json")
    assert left_behind(repository, input_paths(Params())) == ["stages/score.py"]


def test_an_untracked_file_in_a_tracked_folder_is_listed(repository: Path) -> None:
    write(repository, "data/textqa/b.jsonl")
    assert left_behind(repository, input_paths(Params())) == ["data/textqa/b.jsonl"]


def test_files_that_git_ignores_count_unless_dvc_tracks_them(repository: Path) -> None:
    write(repository, "big/items.jsonl")
    paths = input_paths(params_with_path("big/items.jsonl"))
    assert left_behind(repository, paths) == ["big/items.jsonl"]
    write(repository, "big.dvc")
    git(repository, "add", "big.dvc")
    assert left_behind(repository, paths) == []


def test_a_relative_path_out_of_the_project_is_not_found_elsewhere(repository: Path) -> None:
    write(repository.parent, "items.jsonl")
    assert left_behind(repository, ["../items.jsonl"]) == ["../items.jsonl"]
    assert left_behind(repository, [str(repository.parent / "items.jsonl")]) == []


def test_an_added_file_travels(repository: Path) -> None:
    write(repository, "stages/score.py")
    git(repository, "add", "stages/score.py")
    assert left_behind(repository, input_paths(Params())) == []


def test_a_run_in_a_temporary_workspace_is_refused_with_the_list(repository: Path) -> None:
    write(repository, "data/textqa/b.jsonl")
    temporary = Place(repository, repository / ".dvc/tmp/exps/tmp1", experiment="calm-lynx")
    with pytest.raises(UsageError, match=r"data/textqa/b\.jsonl.*git add"):
        refuse_left_behind(temporary, Params())
    refuse_left_behind(Place(repository, repository), Params())


def params_with_path(path: str) -> Params:
    base = Params()
    return replace(base, data=replace(base.data, path=path))


# --- store and HEAD ---


def test_a_file_in_the_place_of_the_store_is_a_fault(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path)
    assert store_check(place).verdict == "ok"
    place.state.write_text("", encoding="utf-8")
    assert store_check(place).verdict == "fault"


def test_a_head_on_no_branch_is_warned_of(repository: Path) -> None:
    assert git_check(repository).verdict == OK
    git(repository, "switch", "-q", "--detach")
    found = git_check(repository)
    assert (found.verdict, found.remedy) == (WARNING, "`git switch main`")


def test_a_path_outside_of_the_project_hides_no_other(repository: Path) -> None:
    write(repository.parent, "items.jsonl")
    write(repository, "data/textqa/b.jsonl")
    paths = [str(repository.parent / "items.jsonl"), "data/textqa"]
    assert left_behind(repository, paths) == ["data/textqa/b.jsonl"]

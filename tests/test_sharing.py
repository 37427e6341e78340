"""Two people, one remote: sharing under a name of one's own, and two runs in one merge.

The page `docs/sharing.md` is run as it stands, in two clones of one bare repository, with the
embedded model on few items.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from history_world import World
from test_pipeline import clean_env, git

from skilltrail.core.errors import UsageError
from skilltrail.history.git.branch import SideBranch
from skilltrail.history.git.merging import GENERATED
from skilltrail.history.git.repository import Git, GitError
from skilltrail.history.git.sharing import Exchanged, fetch, share
from skilltrail.models.backends.weights import PACKAGE

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/sharing.md").read_text(encoding="utf-8")
FEW = (
    ("train: 0", "train: 8"), ("selection: 0", "selection: 4"), ("test: 0", "test: 4"),
    ("epochs: 12", "epochs: 1"), ("batch_size: 20", "batch_size: 4"),
)  # fmt: skip


# --- refs, with runs made of arithmetic ---


def door(folder: Path) -> Git:
    found = Git.find(folder)
    assert found is not None
    return found


def train(folder: Path, label: str, live: Path, **params: object) -> str:
    """Make a small run whose commits go to `label`; return its tip."""
    chosen = {"epochs": 1, "batch_size": 4, "lr": 3, "lr_schedule": "constant"} | params
    side = SideBranch(door(folder), label, every_s=0.0)
    World(n_train=8, n_selection=4, params=chosen).run(live, side)
    assert side.tip is not None
    return side.tip


@pytest.fixture
def clones(tmp_path: Path) -> tuple[Path, Path]:
    """Two clones of one bare repository that holds a commit."""
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "hub.git")
    for name in ("anna", "bob"):
        git(tmp_path, "clone", "-q", "hub.git", name)
        git(tmp_path / name, "config", "user.name", name)
        git(tmp_path / name, "config", "user.email", f"{name}@example.org")
    anna = tmp_path / "anna"
    git(anna, "commit", "-q", "--allow-empty", "-m", "First")
    git(anna, "push", "-q", "origin", "HEAD:main")
    return anna, tmp_path / "bob"


def outcomes(rows: list[Exchanged]) -> dict[str, str]:
    return {row.name: row.outcome for row in rows if not row.is_version}


def test_both_have_a_run_of_one_name_and_neither_is_in_the_others_way(
    clones: tuple[Path, Path], tmp_path: Path
) -> None:
    anna, bob = clones
    hers = train(anna, "main", tmp_path / "a", lr=1)
    his = train(bob, "main", tmp_path / "b", lr=2)
    assert outcomes(share(door(anna), None, "anna")[1]) == {"main": "new"}
    assert outcomes(share(door(bob), None, "bob")[1]) == {"main": "new"}
    assert outcomes(fetch(door(anna), None)[1]) == {"bob/main": "new"}
    assert outcomes(fetch(door(bob), None)[1]) == {"anna/main": "new"}
    refs = door(anna).refs("refs/evolution/")
    assert refs == {"refs/evolution/main": hers, "refs/evolution/bob/main": his}
    assert door(anna).refs("refs/evolution-versions/bob/main/v0")
    assert door(bob).refs("refs/evolution/anna/main") == {"refs/evolution/anna/main": hers}


def test_what_came_from_another_is_not_passed_on_as_ones_own(
    clones: tuple[Path, Path], tmp_path: Path
) -> None:
    anna, bob = clones
    train(anna, "main", tmp_path / "a")
    share(door(anna), None, "anna")
    fetch(door(bob), None)
    train(bob, "main", tmp_path / "b", lr=1)
    assert outcomes(share(door(bob), None, "bob")[1]) == {"main": "new"}
    on_remote = set(door(tmp_path / "hub.git").refs("refs/evolution/"))
    assert on_remote == {"refs/evolution/anna/main", "refs/evolution/bob/main"}


def test_a_run_that_goes_on_moves_forward_and_a_second_time_nothing_moves(
    clones: tuple[Path, Path], tmp_path: Path
) -> None:
    anna, bob = clones
    tip = train(anna, "main", tmp_path / "a", epochs=2)
    whole = door(anna).history(tip)
    git(anna, "update-ref", "refs/evolution/main", whole[-9])
    share(door(anna), None, "anna")
    fetch(door(bob), None)
    git(anna, "update-ref", "refs/evolution/main", tip)
    assert outcomes(share(door(anna), None, None)[1]) == {"main": "moved"}
    assert outcomes(fetch(door(bob), None)[1]) == {"anna/main": "moved"}
    assert door(bob).refs("refs/evolution/") == {"refs/evolution/anna/main": tip}
    assert outcomes(share(door(anna), None, None)[1]) == {"main": "same"}
    assert outcomes(fetch(door(bob), None)[1]) == {"anna/main": "same"}
    assert not door(bob).refs("refs/evolution-arriving/")


def test_two_clones_under_one_name_are_told_apart_and_nothing_is_overwritten(
    clones: tuple[Path, Path], tmp_path: Path
) -> None:
    anna, laptop = clones
    hers = train(anna, "main", tmp_path / "a", lr=1)
    train(laptop, "main", tmp_path / "b", lr=2)
    share(door(anna), None, "anna")
    rows = share(door(laptop), None, "anna")[1]
    assert {row.outcome for row in rows} == {"refused"}
    hub = door(tmp_path / "hub.git")
    assert hub.refs("refs/evolution/") == {"refs/evolution/anna/main": hers}


def test_a_run_that_was_rewritten_on_the_remote_does_not_replace_what_is_here(
    clones: tuple[Path, Path], tmp_path: Path
) -> None:
    anna, bob = clones
    first = train(anna, "main", tmp_path / "a", lr=1)
    share(door(anna), None, "anna")
    fetch(door(bob), None)
    other = train(anna, "again", tmp_path / "c", lr=2)
    git(anna, "push", "-q", "--force", "origin", f"{other}:refs/evolution/anna/main")
    rows = fetch(door(bob), None)[1]
    assert outcomes(rows) == {"anna/main": "refused"}
    assert door(bob).refs("refs/evolution/") == {"refs/evolution/anna/main": first}


def test_a_run_of_ones_own_in_the_way_of_anothers_name_keeps_its_own(
    clones: tuple[Path, Path], tmp_path: Path
) -> None:
    anna, bob = clones
    train(anna, "main", tmp_path / "a", lr=1)
    share(door(anna), None, "anna")
    own = train(bob, "anna", tmp_path / "b", lr=2)
    assert outcomes(fetch(door(bob), None)[1]) == {"anna-2/main": "new"}
    assert outcomes(fetch(door(bob), None)[1]) == {"anna-2/main": "same"}
    assert door(bob).refs("refs/evolution/anna") == {"refs/evolution/anna": own}
    assert outcomes(share(door(bob), None, "bob")[1]) == {"anna": "new"}


def test_an_evaluation_made_here_of_anothers_run_does_not_stand_in_the_way_of_his_own(
    clones: tuple[Path, Path], tmp_path: Path
) -> None:
    anna, bob = clones
    tip = train(anna, "main", tmp_path / "a")
    share(door(anna), None, "anna")
    fetch(door(bob), None)
    trees = {}
    for person in (anna, bob):
        made = git(
            person, "commit-tree", "-p", tip, "-m", person.name, f"{tip}^{{tree}}"
        ).strip()
        trees[person.name] = made
    git(anna, "update-ref", "refs/evolution-evaluations/main/1", trees["anna"])
    git(bob, "update-ref", "refs/evolution-evaluations/anna/main/1", trees["bob"])
    share(door(anna), None, None)
    assert outcomes(fetch(door(bob), None)[1]) == {"anna/main": "same", "anna/main/2": "new"}
    assert outcomes(fetch(door(bob), None)[1]) == {"anna/main": "same", "anna/main/2": "same"}
    assert door(bob).refs("refs/evolution-evaluations/") == {
        "refs/evolution-evaluations/anna/main/1": trees["bob"],
        "refs/evolution-evaluations/anna/main/2": trees["anna"],
    }
    assert outcomes(share(door(bob), None, "bob")[1]) == {}


@pytest.mark.parametrize("name", ["", "a/b", "a b", "..", "x\u202ey", "-", "a~1"])
def test_a_name_that_git_cannot_use_is_refused_before_anything_is_sent(
    clones: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    anna, _ = clones
    train(anna, "main", tmp_path / "a")
    with pytest.raises(UsageError, match=r"share\.as|under which name"):
        share(door(anna), None, name)
    assert not door(tmp_path / "hub.git").refs("refs/evolution")


def test_without_a_name_or_a_remote_the_command_says_what_to_type(
    clones: tuple[Path, Path], tmp_path: Path
) -> None:
    anna, bob = clones
    train(anna, "main", tmp_path / "a")
    with pytest.raises(UsageError, match="share --as NAME"):
        share(door(anna), None, None)
    share(door(anna), None, "anna")
    fetch(door(bob), None)
    with pytest.raises(UsageError, match="somebody else"):
        share(door(bob), None, "anna")
    git(bob, "remote", "remove", "origin")
    with pytest.raises(UsageError, match="git remote add origin"):
        fetch(door(bob), None)
    with pytest.raises(GitError, match="git remote -v"):
        fetch(door(bob), "../nowhere.git")


def test_refs_that_stand_under_nobodys_name_are_left_where_they_are(
    clones: tuple[Path, Path], tmp_path: Path
) -> None:
    anna, bob = clones
    tip = train(anna, "main", tmp_path / "a")
    git(anna, "push", "-q", "origin", f"{tip}:refs/evolution/main")
    assert fetch(door(bob), None)[1] == []
    assert not door(bob).refs("refs/evolution")


# --- the page, with the embedded model ---


def blocks() -> list[tuple[str, list[str]]]:
    """Return (person, command lines) of each block of the page."""
    found = re.findall(r"```sh\n# (anna|bob)\n(.*?)```", PAGE, re.DOTALL)
    return [(person, text.strip().split("\n")) for person, text in found]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run the page; return what each command printed, by `person: command`."""
    for package in (PACKAGE, "xllamacpp", "dvc"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: run `make setup`")
    place = tmp_path_factory.mktemp("two people")
    git(place, "clone", "-q", "--bare", str(ROOT), "hub.git")
    git(place / "hub.git", "update-ref", "refs/heads/main", "HEAD")
    git(place / "hub.git", "symbolic-ref", "HEAD", "refs/heads/main")
    git(place, "clone", "-q", "hub.git", "anna")
    params = (place / "anna/params.yaml").read_text("utf-8")
    for before, after in FEW:
        assert before in params
        params = params.replace(before, after, 1)
    (place / "anna/params.yaml").write_text(params, "utf-8", newline="\n")
    git(place / "anna", "commit", "-q", "-a", "-m", "Few items, for a test")
    git(place / "anna", "push", "-q", "origin", "HEAD:main")
    git(place, "clone", "-q", "hub.git", "bob")
    environ = clean_env() | {"PYTHONPATH": str(ROOT)}
    told: dict[str, str] = {}
    for person, lines in blocks():
        for line in lines:
            command, _, expected = line.partition("  # ")
            done = subprocess.run(
                ["sh", "-c", command],
                cwd=place / person,
                env=environ,
                capture_output=True,
                encoding="utf-8",
            )
            assert done.returncode == (1 if expected else 0), (
                f"{line}\n{done.stdout}{done.stderr}"
            )
            told[f"{person}: {command}"] = done.stdout + done.stderr
    told["place"] = str(place)
    return told


def test_the_page_on_sharing_runs_as_it_stands(said: dict[str, str]) -> None:
    assert "anna: skilltrail share origin --as anna" in said
    assert len(said) > 30


def test_runs_compare_and_audit_see_the_other_persons_runs(said: dict[str, str]) -> None:
    assert "bob/lr-8" in said["anna: skilltrail runs"]
    compared = said["anna: skilltrail compare --group-by lr"]
    assert re.search(r"^2 .*\n8 ", compared, re.MULTILINE), compared
    assert "version 0" in said["anna: skilltrail audit --run bob/lr-8 --version 0"].lower()


def test_a_merge_of_two_runs_leaves_no_conflict_marks_in_what_a_run_wrote(
    said: dict[str, str],
) -> None:
    merged = said["bob: git merge origin/lr-2"]
    unmerged = set(re.findall(r"Merge conflict in (\S+)", merged))
    assert unmerged <= {*GENERATED, "params.yaml"}
    assert {"skills/events.jsonl", "dvc.lock", "params.yaml"} <= unmerged


def test_doctor_prints_the_command_that_solves_the_merge(said: dict[str, str]) -> None:
    command = next(name for name in said if name.startswith("bob: git checkout MERGE_HEAD"))
    assert command.removeprefix("bob: ") in said["bob: skilltrail doctor"]
    assert "git checkout HEAD -- dvc.lock" in said["bob: skilltrail doctor"]


def test_after_the_merge_the_workspace_is_the_others_run_and_nothing_runs_again(
    said: dict[str, str],
) -> None:
    place = Path(said["place"])
    assert "Running stage" not in said["bob: dvc repro"]
    for name in GENERATED:
        assert (place / "anna" / name).read_bytes() == (place / "bob" / name).read_bytes(), name
    assert "OK" in said["bob: skilltrail verify"]


def test_in_a_new_workspace_the_same_files_are_merged_whole(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "skilltrail", "init", "--dir", "deep/er", "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["folder"] == "deep/er"
    for name in GENERATED:
        said = git(tmp_path, "check-attr", "merge", f"deep/er/{name}")
        assert said.strip().endswith("merge: unset"), said

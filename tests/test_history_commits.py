"""Every event is a commit on a side branch, with the same hash wherever it is made."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from history_world import World
from hypothesis import given, settings
from hypothesis import strategies as st

from skilltrail.core.canon import text_digest
from skilltrail.history.git.branch import SideBranch
from skilltrail.history.git.commits import commits_of
from skilltrail.history.git.opening import label_of, open_side_branch
from skilltrail.history.git.ref_names import RUNS, Placement, place, ref_label, run_refs
from skilltrail.history.git.repository import Git
from skilltrail.history.log.events import Event
from skilltrail.history.log.recorder import ProjectionError, Recorder

SMALL = {"epochs": 1, "batch_size": 4, "lr": 3}


def git(folder: Path, *args: str, **environ: str) -> str:
    done = subprocess.run(
        ["git", *args], cwd=folder, env=os.environ | environ, capture_output=True, check=True
    )
    return done.stdout.decode()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[Event]]:
    """The events of two runs that differ in `lr` only."""
    folder = tmp_path_factory.mktemp("runs")
    return {
        lr: World(n_train=16, n_selection=6, params=SMALL | {"lr": lr})
        .run(folder / str(lr))
        .events
        for lr in (1, 3)
    }


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one commit, a staged and an unstaged change, and a stash."""
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "config", "user.name", "A Person")
    git(tmp_path, "config", "user.email", "person@example.com")
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8", newline="\n")
    git(tmp_path, "add", "a.txt")
    git(tmp_path, "commit", "-q", "-m", "First")
    (tmp_path / "a.txt").write_text("stashed\n", encoding="utf-8", newline="\n")
    git(tmp_path, "stash")
    (tmp_path / "b.txt").write_text("staged\n", encoding="utf-8", newline="\n")
    git(tmp_path, "add", "b.txt")
    (tmp_path / "a.txt").write_text("changed\n", encoding="utf-8", newline="\n")
    return tmp_path


def project(folder: Path, events: Sequence[Event], label: str = "main") -> SideBranch:
    door = Git.find(folder)
    assert door is not None
    branch = SideBranch(door, label, every_s=0.0)
    branch.close(events)
    return branch


def own_state(repo: Path) -> dict[str, str]:
    """Everything that is the user's."""
    return {
        "head": git(repo, "rev-parse", "HEAD") + git(repo, "symbolic-ref", "HEAD"),
        "status": git(repo, "status", "--porcelain=v2", "--branch"),
        "stash": git(repo, "stash", "list"),
        "branches": git(repo, "for-each-ref", "refs/heads", "refs/tags", "refs/stash"),
        "index": text_digest((repo / ".git/index").read_bytes().hex()),
        "file": (repo / "a.txt").read_text(encoding="utf-8"),
    }


def test_git_gives_the_commits_the_hashes_that_were_computed(
    repo: Path, runs: dict[int, list[Event]]
) -> None:
    branch = project(repo, runs[3])
    shown = git(repo, "log", "--reverse", "--format=%H", "evolution/main").split()
    assert shown == [commit.sha for commit in commits_of(runs[3])]
    assert shown[-1] == branch.tip
    assert "notice" not in git(repo, "fsck", "--full", "--strict")


def test_a_tree_holds_the_event_and_the_documents(
    repo: Path, runs: dict[int, list[Event]]
) -> None:
    project(repo, runs[3])
    shas = git(repo, "log", "--reverse", "--format=%H", "evolution/main").split()
    door = Git.find(repo)
    assert door is not None
    lines = list(door.files(shas, "event.json"))
    assert lines == [event.line + b"\n" for event in runs[3]]
    for sha, event in list(zip(shas, runs[3], strict=True))[4:14]:
        names = git(repo, "ls-tree", "--name-only", sha).split()
        on_trial = event.type in ("candidate.built", "gate.judged")
        assert ("candidate.md" in names) == on_trial
    versioned = [event for event in runs[3] if event.type == "skill.versioned"]
    for event in versioned:
        ref = f"evolution-versions/main/v{event.data['version']}"
        assert text_digest(git(repo, "show", f"{ref}:skill.md")) == event.data["digest"]
    last = git(repo, "log", "-1", "--format=%(trailers:key=Event,valueonly)", "evolution/main")
    assert last.strip() == runs[3][-1].id


def test_nothing_of_the_user_is_touched(repo: Path, runs: dict[int, list[Event]]) -> None:
    before = own_state(repo)
    project(repo, runs[1])
    project(repo, runs[3])
    assert own_state(repo) == before


def test_two_repositories_get_the_same_tip(
    tmp_path: Path, runs: dict[int, list[Event]]
) -> None:
    tips = []
    for name in "ab":
        folder = tmp_path / name
        folder.mkdir()
        git(folder, "init", "-q", "-b", "trunk")
        project(folder, runs[3])
        tips.append(git(folder, "rev-parse", "evolution/main"))
    assert tips[0] == tips[1]


def test_runs_that_differ_in_lr_share_commits_up_to_the_first_budget(
    repo: Path, runs: dict[int, list[Event]]
) -> None:
    assert project(repo, runs[1]).name == "main"
    assert project(repo, runs[3]).name == "main-2"
    fork = git(repo, "merge-base", "evolution/main", "evolution/main-2").strip()
    children = git(repo, "log", "--format=%P %s", "--glob=refs/evolution/*").splitlines()
    after = [line.split(" ", 1)[1] for line in children if line.startswith(fork)]
    assert len(after) == 2
    assert all(line.startswith("budget:") for line in after)


def test_telling_a_run_again_changes_no_ref(repo: Path, runs: dict[int, list[Event]]) -> None:
    for lr in (1, 3):
        project(repo, runs[lr])
    before = git(repo, "for-each-ref")
    for lr in (3, 1):
        project(repo, runs[lr])
    assert git(repo, "for-each-ref") == before


@settings(max_examples=8, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=4))
def test_however_the_log_is_cut_into_batches_the_refs_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, runs: dict[int, list[Event]], cuts: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    git(folder, "init", "-q", "-b", "main")
    for cut in sorted(cuts):
        project(folder, runs[3][:cut])  # each batch by a new process, so to say
    project(folder, runs[3])
    whole = {f"{RUNS}main": [commit.sha for commit in commits_of(runs[3])][-1]}
    door = Git.find(folder)
    assert door is not None
    assert door.refs(RUNS) == whole


def test_a_run_that_was_stopped_moves_its_ref_forward(
    repo: Path, runs: dict[int, list[Event]]
) -> None:
    project(repo, runs[1])
    half = project(repo, runs[3][:30])
    whole = project(repo, runs[3])
    assert (half.name, whole.name) == ("main-2", "main-2")


def test_deleted_refs_come_back_with_the_same_hashes(
    repo: Path, runs: dict[int, list[Event]]
) -> None:
    project(repo, runs[3])
    before = git(repo, "for-each-ref")
    for line in before.splitlines():
        ref = line.split("\t")[1]
        if ref.startswith("refs/evolution"):
            git(repo, "update-ref", "-d", ref)
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "-q", "--prune=now")
    project(repo, runs[3])
    assert git(repo, "for-each-ref") == before


def test_a_ref_deleted_while_the_run_goes_on_comes_back(
    repo: Path, runs: dict[int, list[Event]]
) -> None:
    door = Git.find(repo)
    assert door is not None
    branch = SideBranch(door, "main", every_s=0.0)
    branch.flush(runs[3][:30])
    git(repo, "update-ref", "-d", "refs/evolution/main")
    branch.close(runs[3])
    assert git(repo, "rev-parse", "evolution/main").strip() == branch.tip


def test_hooks_signing_and_identity_of_the_user_are_not_used(
    repo: Path, runs: dict[int, list[Event]]
) -> None:
    hooks = repo / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("reference-transaction", "post-commit", "pre-commit", "commit-msg"):
        hook = hooks / name
        hook.write_text("#!/bin/sh\ntouch hooked\nexit 1\n", encoding="utf-8", newline="\n")
        hook.chmod(0o755)
    git(repo, "config", "commit.gpgSign", "true")
    git(repo, "config", "--unset", "user.name")
    git(repo, "config", "user.useConfigOnly", "true")
    project(repo, runs[1])
    assert not (repo / "hooked").exists()
    assert not (repo / ".git/hooked").exists()


def test_a_linked_worktree_writes_to_the_one_repository(
    repo: Path, runs: dict[int, list[Event]]
) -> None:
    tree = repo.parent / f"{repo.name}-tree"
    git(repo, "worktree", "add", "-q", "-b", "side", str(tree))
    door = Git.find(tree)
    assert door is not None
    assert label_of(door, None) == "side"
    project(tree, runs[1], "side")
    assert git(repo, "rev-parse", "evolution/side") == git(tree, "rev-parse", "evolution/side")


def test_a_project_in_a_sub_folder_and_a_bare_repository_work(
    tmp_path: Path, repo: Path, runs: dict[int, list[Event]]
) -> None:
    deep = repo / "some" / "project"
    deep.mkdir(parents=True)
    assert project(deep, runs[1]).name == "main"
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    assert project(tmp_path / "bare.git", runs[1]).name == "main"


def test_git_variables_of_a_surrounding_command_do_not_lead_elsewhere(
    repo: Path,
    runs: dict[int, list[Event]],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = tmp_path_factory.mktemp("other")
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other / ".git/objects"))
    project(repo, runs[1])
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.delenv(name)
    assert "evolution/main" in git(repo, "for-each-ref")
    assert git(other, "for-each-ref") == ""


def test_a_lock_that_goes_away_is_waited_for(repo: Path, runs: dict[int, list[Event]]) -> None:
    lock = repo / ".git/refs/evolution/main.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    threading.Timer(0.3, lock.unlink).start()
    branch = project(repo, runs[1])
    assert git(repo, "rev-parse", "evolution/main").strip() == branch.tip


def test_a_lock_that_stays_is_named_and_the_log_is_safe(
    repo: Path, runs: dict[int, list[Event]]
) -> None:
    lock = repo / ".git/refs/evolution/main.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    door = Git.find(repo)
    assert door is not None
    waits: list[float] = []
    branch = SideBranch(door, "main", attempts=4, sleep=waits.append)
    with pytest.raises(ProjectionError, match=r"lock.*event log is safe"):
        branch.close(runs[1])
    assert len(waits) == 3
    lock.unlink()
    branch.close(runs[1])
    assert git(repo, "rev-parse", "evolution/main").strip() == branch.tip


def test_two_writers_of_one_label_both_land(repo: Path, runs: dict[int, list[Event]]) -> None:
    threads = [threading.Thread(target=project, args=(repo, runs[lr])) for lr in (1, 3, 1, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tips = {list(commits_of(runs[lr]))[-1].sha for lr in (1, 3)}
    door = Git.find(repo)
    assert door is not None
    assert set(door.refs(RUNS).values()) == tips
    git(repo, "fsck", "--full", "--strict")


def test_gc_beside_a_writer_does_no_harm(repo: Path, runs: dict[int, list[Event]]) -> None:
    door = Git.find(repo)
    assert door is not None
    branch = SideBranch(door, "main", every_s=0.0)
    for cut in range(8, len(runs[3]), 8):
        gc = subprocess.Popen(["git", "gc", "--auto", "-q"], cwd=repo)
        branch.flush(runs[3][:cut])
        gc.wait()
    branch.close(runs[3])
    git(repo, "fsck", "--full", "--strict")
    assert git(repo, "rev-parse", "evolution/main").strip() == branch.tip


def test_without_git_training_goes_on_and_says_what_is_lost(tmp_path: Path) -> None:
    said: list[str] = []
    found = open_side_branch(tmp_path, None, lambda kind, details: said.append(str(details)))
    assert found is None
    assert "git blame" in said[0]


def test_a_run_commits_as_it_goes(repo: Path, runs: dict[int, list[Event]]) -> None:
    side = open_side_branch(repo, "brave-fox", lambda kind, details: None)
    world = World(n_train=16, n_selection=6, params=SMALL | {"lr": 1})
    recorder: Recorder = world.run(repo / ".skilltrail", side)
    assert recorder.events == runs[1]
    assert "refs/evolution/brave-fox" in git(repo, "for-each-ref")


# Names


def test_the_label_is_the_experiment_else_the_branch_else_detached(repo: Path) -> None:
    door = Git.find(repo)
    assert door is not None
    assert label_of(door, "brave-fox") == "brave-fox"
    assert label_of(door, None) == "main"
    git(repo, "checkout", "-q", "--detach")
    assert label_of(door, None) == "detached"


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("feature/x", "feature/x"),
        ("two words", "two-words"),
        ("a..b", "a-b"),
        (".hidden/x.lock", "hidden/x"),
        ("", "detached"),
        ("@", "detached"),
        ("a@{1}", "a-1}"),
        ("한국어", "한국어"),
    ],
)
def test_a_label_becomes_a_name_that_git_takes(repo: Path, label: str, name: str) -> None:
    assert ref_label(label) == name
    git(repo, "check-ref-format", RUNS + ref_label(label))


@given(st.text(max_size=12))
@settings(max_examples=15, deadline=None)
def test_any_label_becomes_a_name_that_git_takes(label: str) -> None:
    name = ref_label(label)
    subprocess.run(["git", "check-ref-format", (RUNS + name).encode()], check=True)


CHAIN = ["a1", "a2", "a3", "a4"]
INDEX = {sha: at for at, sha in enumerate(CHAIN)}


@pytest.mark.parametrize(
    ("refs", "expected"),
    [
        ({}, Placement(RUNS + "r", 0, None)),
        ({"r": ["a1", "a2"]}, Placement(RUNS + "r", 2, "a2")),
        ({"r": CHAIN}, Placement(RUNS + "r", 4, "a4")),
        ({"r": [*CHAIN, "a5"]}, Placement(RUNS + "r", 4, "a5")),
        ({"r": ["a1", "b2"]}, Placement(RUNS + "r-2", 1, None)),
        ({"r": ["a1", "b2"], "r-2": ["a1", "a2", "a3"]}, Placement(RUNS + "r-2", 3, "a3")),
        ({"r": ["a1", "a2", "b3"], "r-2": ["a1"]}, Placement(RUNS + "r-3", 2, None)),
        ({"r": ["c1"], "r-2": ["d1", "d2"]}, Placement(RUNS + "r-3", 0, None)),
        ({"r/x": ["c1"]}, Placement(RUNS + "r-2", 0, None)),
    ],
)
def test_the_first_name_that_fits_is_taken(
    refs: dict[str, list[str]], expected: Placement
) -> None:
    tips = {RUNS + name: chain[-1] for name, chain in refs.items()}
    histories = {chain[-1]: chain[::-1] for chain in refs.values()}
    wanted = run_refs("r", tips)
    assert place(wanted, CHAIN, INDEX, tips, histories.__getitem__) == expected


def test_a_name_below_another_run_loses_its_slashes() -> None:
    refs = {RUNS + "feature": "c1"}
    wanted = run_refs("feature/x", refs)
    found = place(wanted, CHAIN, INDEX, refs, lambda tip: ["c1"])
    assert found == Placement(RUNS + "feature-x", 0, None)


def test_what_a_killed_import_left_behind_is_no_obstacle(
    repo: Path, runs: dict[int, list[Event]]
) -> None:
    project(repo, runs[3])
    packs = list((repo / ".git/objects/pack").glob("*.pack"))
    git(repo, "update-ref", "-d", "refs/evolution/main")
    for pack in packs:
        pack.with_suffix(".keep").touch()
        pack.with_suffix(".idx").unlink()
    branch = project(repo, runs[3])
    assert git(repo, "rev-parse", "evolution/main").strip() == branch.tip
    assert not list((repo / ".git").glob("fast_import_crash_*"))


def test_a_lock_that_a_killed_git_left_behind_is_removed(
    repo: Path, runs: dict[int, list[Event]]
) -> None:
    lock = repo / ".git/refs/evolution/main.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    os.utime(lock, (1, 1))
    branch = project(repo, runs[1])
    assert git(repo, "rev-parse", "evolution/main").strip() == branch.tip


KILLED = """
import sys
sys.path[:0] = sys.argv[3:]
from pathlib import Path
from history_world import World
from skilltrail.history.git.branch import SideBranch
from skilltrail.history.git.repository import Git
# A batch at every step, so that a kill often meets one.
side = SideBranch(Git.find(Path(sys.argv[1])), "main", every_s=0.0)
World(n_train=16, n_selection=6, params={"epochs": 1, "batch_size": 4, "lr": 3}).run(
    Path(sys.argv[2]), side
)
"""


def test_kills_at_any_moment_leave_a_sound_repository_and_the_same_tip(
    repo: Path, runs: dict[int, list[Event]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = own_state(repo)
    live = tmp_path_factory.mktemp("live")
    here = Path(__file__).resolve().parent
    command = [sys.executable, "-c", KILLED, str(repo), str(live), str(here.parent), str(here)]
    for wait_s in (0.5, 0.7, 0.9, 1.1):
        process = subprocess.Popen(command, start_new_session=True)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for lock in (repo / ".git/refs").rglob("*.lock"):
            os.utime(lock, (1, 1))  # as if a minute had passed
        git(repo, "fsck", "--full", "--strict")
    subprocess.run(command, check=True)
    tip = git(repo, "rev-parse", "evolution/main").strip()
    assert tip == [commit.sha for commit in commits_of(runs[3])][-1]
    assert own_state(repo) == before
    assert git(repo, "for-each-ref", "--format=%(refname)", "refs/evolution").split() == [
        "refs/evolution/main"
    ]


def test_events_that_are_committed_keep_their_bytes_and_nothing_that_was_read(
    repo: Path, runs: dict[int, list[Event]]
) -> None:
    said = [event.said for event in runs[3]]
    project(repo, runs[3])
    assert not any({"data", "said"} & vars(event).keys() for event in runs[3])
    assert [event.said for event in runs[3]] == said

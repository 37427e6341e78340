"""The door to git: any folder name, any environment, no git at all, and what kills leave."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from history_world import World

from skilltrail.cli.main import run
from skilltrail.core.errors import SkilltrailError
from skilltrail.history.git.branch import SideBranch
from skilltrail.history.git.opening import open_side_branch
from skilltrail.history.git.repository import STALE_S, Git, GitError
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import EventLog, read_log

ROOT = Path(__file__).resolve().parents[1]


def git(folder: Path, *args: str) -> str:
    who = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    done = subprocess.run(["git", *who, *args], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode()


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    return folder


def door(folder: Path) -> Git:
    found = Git.find(folder)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    world = World(n_train=8, n_selection=4, params={"epochs": 1, "batch_size": 4})
    return world.run(tmp_path_factory.mktemp("run")).events


@pytest.mark.parametrize(
    "name", ["$HOME", "a ${PATH} b", "~root", "%HOME%", "it's", 'quo"te', "grüße", "-x", "*?["]
)
def test_a_run_is_committed_whatever_its_folder_is_called(
    tmp_path: Path, events: list[Event], name: str
) -> None:
    repo = repository(tmp_path / name / "project")
    side = open_side_branch(repo, None, lambda kind, details: pytest.fail(str(details)))
    assert side is not None
    side.close(events)
    assert len(git(repo, "rev-list", "evolution/main").split()) == len(events)


def test_a_subfolder_a_worktree_and_a_bare_repository_are_found(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    (repo / "a b/c").mkdir(parents=True)
    git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "tree"))
    git(tmp_path, "clone", "-q", "--bare", "repo", "bare.git")
    below, tree = door(repo / "a b/c"), door(tmp_path / "tree")
    assert (below.git_dir, below.prefix) == (repo / ".git", "a b/c/")
    assert (tree.git_dir, tree.own_dir.name, tree.branch()) == (repo / ".git", "tree", "side")
    assert door(tmp_path / "bare.git").git_dir == tmp_path / "bare.git"
    assert Git.find(tmp_path) is None
    assert Git.find(tmp_path / "nowhere") is None


def test_what_a_hook_sets_in_the_environment_leads_nowhere(
    tmp_path: Path, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, other = repository(tmp_path / "repo"), repository(tmp_path / "other")
    for name, value in {
        "GIT_DIR": other / ".git",
        "GIT_WORK_TREE": other,
        "GIT_INDEX_FILE": other / ".git/index",
        "GIT_OBJECT_DIRECTORY": other / ".git/objects",
        "GIT_NAMESPACE": "space",
    }.items():
        monkeypatch.setenv(name, str(value))
    SideBranch(door(repo), "main").close(events)
    monkeypatch.undo()
    assert git(repo, "log", "-1", "--format=%an", "evolution/main").strip() == "skilltrail"
    assert "evolution" not in git(other, "for-each-ref")


def test_a_killed_import_leaves_no_pack_and_one_at_work_keeps_its_own(
    tmp_path: Path, events: list[Event]
) -> None:
    repo = repository(tmp_path / "repo")
    packs = repo / ".git/objects/pack"
    at_work = subprocess.Popen(["git", "fast-import"], cwd=repo, stdin=subprocess.PIPE)
    killed = subprocess.Popen(["git", "fast-import"], cwd=repo, stdin=subprocess.PIPE)
    try:
        for process in (at_work, killed):
            assert process.stdin is not None
            process.stdin.write(b"blob\ndata 3\nabc\n")
            process.stdin.flush()
        deadline_s = time.monotonic() + 20
        while len(list(packs.glob("tmp_pack_*"))) < 2 and time.monotonic() < deadline_s:
            time.sleep(0.02)
        killed.kill()
        killed.wait()
        fresh = list(packs.glob("tmp_pack_*"))
        SideBranch(door(repo), "main").close(events[:2])
        assert set(fresh) <= set(packs.iterdir()), "too fresh to be given up"
        for pack in fresh:
            os.utime(pack, (time.time() - 2 * STALE_S,) * 2)
        SideBranch(door(repo), "main").close(events)
        left = list(packs.glob("tmp_pack_*"))
        assert len(left) == 1
        assert str(left[0]) in {
            os.readlink(link) for link in Path(f"/proc/{at_work.pid}/fd").iterdir()
        }
    finally:
        at_work.kill()
        at_work.communicate()


# --- without a git program ---


@pytest.fixture
def no_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.mark.usefixtures("no_git")
def test_without_a_git_program_the_way_on_is_told(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="git: No such file or directory. Install git"):
        Git.find(tmp_path)
    assert Git.at_hand(tmp_path) is None
    said: list[str] = []
    assert (
        open_side_branch(tmp_path, None, lambda k, details: said.append(str(details))) is None
    )
    assert "Install git" in said[0]


@pytest.mark.parametrize(
    "command",
    ["summary", "doctor --no-probe", "runs", "log", "rebuild", "verify", "fork main:v0",
     "diff HEAD main", "blame", "compare --group-by lr", "params", "plan"],
)  # fmt: skip
def test_no_command_ends_in_a_traceback_without_a_git_program(
    command: str, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "skills", tmp_path / "skills")
    for name in ("dvc.yaml", "params.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "skilltrail", *command.split()],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": str(tmp_path), "NO_COLOR": "1"},
        capture_output=True,
        encoding="utf-8",
    )
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 2, 3)


# --- a log that the system refuses to write ---


def test_a_full_disk_is_one_message_and_leaves_whole_lines(
    tmp_path: Path, events: list[Event]
) -> None:
    """A limit on the size of files stands for the full disk: a write fits in part."""
    code = """
import resource, signal, sys
from pathlib import Path
from skilltrail.core.errors import SkilltrailError
from skilltrail.history.log.log import EventLog, read_log
source, path, room = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
events = read_log(source)
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
log = EventLog.open(path)
try:
    for event in events:
        log.add(event)
except SkilltrailError as error:
    print(error)
log.close()
"""
    source, path = tmp_path / "source.jsonl", tmp_path / "events.jsonl"
    with EventLog.open(source) as log:
        for event in events:
            log.add(event)
    room = source.stat().st_size * 2 // 3
    done = subprocess.run(
        [sys.executable, "-c", code, str(source), str(path), str(room)],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.startswith(f"Cannot write {path}: File too large. Check that")
    kept = read_log(path)
    assert 0 < len(kept) < len(events)
    assert kept == events[: len(kept)]


def test_a_log_in_the_place_of_a_folder_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("", "utf-8")
    with pytest.raises(SkilltrailError, match=r"Cannot write .*run again"):
        EventLog.open(tmp_path / "runs/a/events.jsonl")


def test_what_the_system_refuses_is_one_message_of_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(ROOT / "params.yaml", tmp_path)
    (tmp_path / "dvc.yaml").write_text("stages: {}\n", "utf-8")
    (tmp_path / "skills/events.jsonl").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert run(["log"]) == 1
    assert "Is a directory" in capsys.readouterr().err

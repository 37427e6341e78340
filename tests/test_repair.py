"""What kills, full disks and merges leave: found, said with what fixes it, and fixed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skilltrail.cli.checks import FAULT, OK, git_check, state_checks
from skilltrail.cli.repair.at_work import kind_of, workers
from skilltrail.cli.repair.case import Site
from skilltrail.cli.repair.doctor import findings, fix_all
from skilltrail.core.errors import UsageError
from skilltrail.history.git.repository import Git
from skilltrail.runtime.last_lock import keep_lock
from skilltrail.store.place import Place

ROOT = Path(__file__).resolve().parents[1]
PARAMS = "# mine\nlr: 4\nseed: 1\n"
LOCK = """schema: '2.0'
stages:
  train:
    cmd: python -m stages.train
    outs:
    - path: skills/events.jsonl
      hash: md5
      md5: 0123456789abcdef0123456789abcdef
      size: 9
"""
MARKS = {name: f"refs/exps/exec/EXEC_{name}" for name in ("BASELINE", "MERGE", "HEAD")}


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=folder, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    texts = {"params.yaml": PARAMS, "dvc.lock": LOCK, "notes.md": "one\n"}
    texts |= {"dvc.yaml": "stages: {}\n", ".gitignore": "/.dvc/tmp\n/.skilltrail/\n"}
    for name, text in texts.items():
        write(folder / name, text)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "a run")
    git(folder, "branch", "other")  # two branches are at HEAD
    return folder


def case_of(root: Path, *, yes: bool = False) -> Site:
    return Site(Place(root, root), Git.find(root), ask=lambda question: yes)


def found(root: Path) -> list[str]:
    return [f"{one.what}: {one.found} | {one.remedy}" for one in findings(case_of(root))]


def fixed(root: Path, *, yes: bool = False) -> list[str]:
    return list(fix_all(case_of(root, yes=yes)))


def kept(root: Path, name: str) -> list[str]:
    return [p.read_text("utf-8") for p in (root / ".skilltrail/kept").glob(f"*/{name}")]


def start_experiment(root: Path) -> None:
    """Do to the repository what DVC does before the first stage of `dvc exp run -S lr=8`."""
    import pygit2

    head = git(root, "rev-parse", "HEAD")
    repository = pygit2.Repository(str(root))
    for ref in MARKS.values():
        git(root, "update-ref", ref, head)
    repository.set_head(repository.head.target)
    write(root / "params.yaml", PARAMS.replace("4", "8"))


# --- HEAD ---


def test_a_clean_workspace_has_no_findings(root: Path) -> None:
    assert found(root) == []
    assert fixed(root) == []


def test_head_goes_back_to_the_branch_that_its_log_names_where_two_fit(root: Path) -> None:
    git(root, "switch", "-q", "other")
    start_experiment(root)
    write(root / "notes.md", "two\n")
    git(root, "add", "notes.md")  # as DVC does before it commits an experiment
    assert any("HEAD: a killed experiment left HEAD detached, it was on other" in f
               for f in found(root))  # fmt: skip
    assert "HEAD is on other again" in fixed(root)
    assert git(root, "symbolic-ref", "HEAD") == "refs/heads/other"
    assert git(root, "diff", "--cached") == ""
    assert (root / "notes.md").read_text("utf-8") == "two\n"
    assert git(root, "for-each-ref", "--format=%(refname)", "refs/exps") == MARKS["HEAD"]
    assert [f for f in found(root) if not f.startswith("params")] == []


def test_an_experiment_that_was_run_again_after_a_kill_is_found_its_way_back(
    root: Path,
) -> None:
    """The second one ends well: DVC puts HEAD to where it found it, and takes its marks."""
    import pygit2

    start_experiment(root)
    target = git(root, "rev-parse", "HEAD")
    git(root, "commit", "-q", "-a", "-m", "dvc: commit experiment 12")
    said = f"dvc: Restore HEAD to '{target}'"
    repository = pygit2.Repository(str(root))
    repository.create_reference_direct("HEAD", target, True, message=said)
    for name in ("BASELINE", "MERGE"):
        git(root, "update-ref", "-d", MARKS[name])
    assert "HEAD is on main again" in fixed(root)


def test_where_dvc_had_committed_the_experiment_the_index_follows_the_branch(
    root: Path,
) -> None:
    start_experiment(root)
    git(root, "commit", "-q", "-a", "-m", "dvc: commit experiment 12")
    fixed(root, yes=True)
    assert git(root, "rev-parse", "HEAD") == git(root, "rev-parse", "main")
    assert git(root, "status", "--porcelain") == ""


def test_without_a_log_of_head_and_two_branches_a_person_chooses(root: Path) -> None:
    start_experiment(root)
    (root / ".git/logs/HEAD").unlink()
    with pytest.raises(UsageError, match="`git switch BRANCH`"):
        fixed(root)


@pytest.mark.parametrize("how", ["HEAD", "v1"])
def test_a_head_that_a_person_detached_is_left_alone(root: Path, how: str) -> None:
    git(root, "tag", "v1")
    git(root, "commit", "-q", "--allow-empty", "-m", "more")
    git(root, "checkout", "-q", "--detach", how)
    here = git(root, "rev-parse", "HEAD")
    assert (found(root), fixed(root)) == ([], [])
    for ref in MARKS.values():  # of an experiment that they ran there
        git(root, "update-ref", ref, here)
    if how == "v1":
        fixed(root)
        assert git(root, "rev-parse", "HEAD") == here
        assert git(root, "for-each-ref", "refs/exps/exec/EXEC_MERGE") == ""


# --- params ---


def test_params_of_a_killed_experiment_go_back_after_asking_and_are_kept(root: Path) -> None:
    start_experiment(root)
    (told,) = [line for line in found(root) if line.startswith("params.yaml")]
    assert "lr is 8, 4 there" in told
    assert told.endswith("skilltrail doctor --fix --yes")
    start = (root / "params.yaml").read_text("utf-8")
    assert any("left params.yaml as it is" in line for line in fixed(root))
    assert (root / "params.yaml").read_text("utf-8") == start
    start_experiment(root)
    told = " ".join(fixed(root, yes=True))
    assert "put params.yaml back as main has it" in told
    assert "What you had edited in it yourself is now in .skilltrail/kept/" in told
    assert "git diff --no-index params.yaml .skilltrail/kept/" in told
    assert (root / "params.yaml").read_text("utf-8") == PARAMS
    assert kept(root, "params.yaml") == [start]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"lr: \xff\n", "is not UTF-8"),
        (b"<<<<<<< HEAD\nlr: 4\n=======\nlr: 8\n>>>>>>> other\n", "markers of a merge"),
        (None, "is gone"),
    ],
)
def test_params_that_nothing_can_read_are_said_and_come_from_head(
    root: Path, data: bytes | None, why: str
) -> None:
    path = root / "params.yaml"
    path.unlink() if data is None else path.write_bytes(data)
    (told,) = found(root)
    assert why in told
    assert "nothing runs | skilltrail doctor --fix --yes" in told
    assert any("left params.yaml" in line for line in fixed(root))
    fixed(root, yes=True)
    assert (path.read_text("utf-8"), found(root)) == (PARAMS, [])


def test_params_that_a_person_changed_are_no_finding(root: Path) -> None:
    write(root / "params.yaml", PARAMS.replace("4", "8"))
    assert (found(root), fixed(root, yes=True)) == ([], [])


# --- dvc.lock and dvc.yaml ---

TORN = [LOCK[:at] for at in (0, 1, 8, 16, 30, 60, 100, 130)]
MERGED = f"<<<<<<< HEAD\n{LOCK}=======\n{LOCK}>>>>>>> other\n"


@pytest.mark.parametrize("text", [*TORN, MERGED, "- a\n", "schema: '9'\n"])
def test_what_dvc_refuses_as_its_lock_is_found_and_restored(root: Path, text: str) -> None:
    write(root / "dvc.lock", text)
    dvc = subprocess.run(
        [sys.executable, "-c", READ_LOCK], input=text, capture_output=True, encoding="utf-8"
    )
    refused = dvc.stdout != "read\n"
    assert [line.split(":")[0] for line in found(root)] == ["dvc.lock"] * refused
    if refused:
        assert fixed(root) == ["restored dvc.lock from git"]
        assert (root / "dvc.lock").read_text("utf-8") == LOCK
        assert kept(root, "dvc.lock") == [text]


READ_LOCK = """
import sys
from dvc.schema import COMPILED_LOCKFILE_SCHEMA as schema
from dvc.utils.serialize import parse_yaml
try:
    schema(parse_yaml(sys.stdin.read(), "dvc.lock"))
except Exception:
    sys.exit()
print("read")
"""


def test_a_run_that_is_not_committed_gets_back_the_lock_that_its_last_stage_found(
    root: Path,
) -> None:
    newer = LOCK.replace("size: 9", "size: 10")
    write(root / "dvc.lock", newer)
    keep_lock(Place(root, root))
    write(root / "dvc.lock", newer[:30])
    keep_lock(Place(root, root))  # a torn one, kept by a stage that somebody started by hand
    assert fixed(root) == ["restored dvc.lock from git"]
    write(root / "dvc.lock", newer)
    keep_lock(Place(root, root))
    write(root / "dvc.lock", "")
    assert fixed(root) == ["restored dvc.lock from the copy that the last stage kept"]
    assert (root / "dvc.lock").read_text("utf-8") == newer


def test_after_an_experiment_the_lock_is_that_of_its_branch(root: Path) -> None:
    write(root / ".skilltrail/dvc.lock.last", LOCK.replace("size: 9", "size: 10"))
    start_experiment(root)
    write(root / "dvc.lock", "")
    fixed(root)
    assert (root / "dvc.lock").read_text("utf-8") == LOCK


def test_without_any_good_copy_the_way_on_is_to_delete_it(root: Path) -> None:
    git(root, "rm", "-q", "--cached", "dvc.lock")
    git(root, "commit", "-q", "-m", "no run")
    write(root / "dvc.lock", "stages:\n")
    (told,) = found(root)
    assert told.endswith("| delete dvc.lock, then `dvc repro`")
    assert fixed(root) == []


def test_a_pipeline_in_the_middle_of_a_merge_is_a_persons(root: Path) -> None:
    write(root / "dvc.yaml", "<<<<<<< HEAD\nstages: {}\n=======\n>>>>>>> other\n")
    (told,) = found(root)
    assert told.startswith("dvc.yaml: dvc.yaml holds the markers of a merge")
    assert "`git add dvc.yaml`" in told
    assert fixed(root) == []


# --- locks ---


@pytest.mark.parametrize("name", [".dvc/tmp/rwlock", ".dvc/tmp/exps/rwlock"])
@pytest.mark.parametrize("text", ["", '{"write": {"a', "[" * 3000, "null", "[]"])
def test_a_torn_lock_of_dvc_is_found_and_removed(root: Path, name: str, text: str) -> None:
    write(root / name, text)
    (told,) = found(root)
    assert f"left {name} torn: every dvc command refuses | skilltrail doctor --fix" in told
    assert fixed(root) == [f"removed {name}, which nobody held"]
    assert found(root) == []


def test_a_lock_whose_process_is_gone_blocks_nobody_with_its_number(root: Path) -> None:
    """Another process may have got the number meanwhile: DVC would wait for it."""
    lock = {"write": {"out": {"pid": os.getpid(), "cmd": "dvc repro"}}}
    write(root / ".dvc/tmp/rwlock", json.dumps(lock))
    assert fixed(root) == ["removed .dvc/tmp/rwlock, which nobody held"]


def test_a_lock_of_git_that_nobody_holds_is_removed(root: Path) -> None:
    write(root / ".git/index.lock", "")
    assert "left index.lock: git refuses to write" in found(root)[0]
    assert fixed(root) == ["removed git's index.lock, which nobody held"]


def test_dead_workspaces_and_the_note_of_a_dead_experiment_go(root: Path) -> None:
    for name in ("standalone/tmpabc", "tmpdef"):
        write(root / f".dvc/tmp/exps/{name}/params.yaml", "lr: 8\n")
    write(root / ".dvc/tmp/exps/run/workspace/workspace.run", '{"git_ur')
    told = " ".join(found(root))
    assert "2 workspaces" in told
    assert "workspace.run torn" in told
    fixed(root)
    assert not list((root / ".dvc/tmp/exps").rglob("*.run"))
    assert not list((root / ".dvc/tmp/exps").rglob("params.yaml"))


def test_half_copies_of_outputs_go_and_other_new_files_stay(root: Path) -> None:
    half, mine = (
        root / "reports/out/.YPr4v6k2jJGPs3Yv-FNr1g.tmp",
        root / "reports/out/.mine.tmp",
    )
    write(half, "x")
    write(mine, "x")
    assert "1 half copies of outputs" in found(root)[0]
    assert fixed(root) == ["removed 1 half copies of dvc's"]
    assert (half.exists(), mine.exists()) == (False, True)


# --- what DVC had put aside ---


def test_changes_that_dvc_had_stashed_come_back_and_its_own_stash_goes(root: Path) -> None:
    write(root / ".dvc/tmp/exps/rwlock", json.dumps({"write": {"workspace": {"pid": 9}}}))
    write(root / "notes.md", "mine\n")
    write(root / "params.yaml", PARAMS.replace("seed: 1", "seed: 7"))
    before = git(root, "status", "--porcelain")
    git(root, "stash", "-q")
    import pygit2

    repository = pygit2.Repository(str(root))
    repository.set_head(repository.head.target)
    write(root / "params.yaml", PARAMS.replace("4", "8"))
    git(root, "stash", "push", "-q", "-m", "dvc-exp:12:34:calm-lynx")
    write(root / "params.yaml", PARAMS.replace("4", "8"))
    assert any("uncommitted changes aside" in line for line in found(root))
    fixed(root, yes=True)
    assert git(root, "status", "--porcelain") == before
    assert (root / "params.yaml").read_text("utf-8") == PARAMS.replace("seed: 1", "seed: 7")
    assert git(root, "stash", "list") == ""
    assert git(root, "branch", "--show-current") == "main"


def test_a_stash_of_ones_own_is_left_alone(root: Path) -> None:
    write(root / "notes.md", "mine\n")
    git(root, "stash", "-q")
    assert (found(root), fixed(root)) == ([], [])
    time.sleep(1.1)  # stashes have whole seconds
    write(root / ".dvc/tmp/exps/rwlock", json.dumps({"write": {"workspace": {"pid": 9}}}))
    fixed(root)
    assert git(root, "stash", "list") != ""


def test_an_experiment_that_dvc_left_among_a_persons_stashes_goes_alone(root: Path) -> None:
    write(root / "notes.md", "mine, for later\n")
    git(root, "stash", "-q")
    mine = git(root, "stash", "list", "--format=%H")
    start_experiment(root)
    git(root, "stash", "-q", "-m", "dvc-exp:a:b:calm-lynx")
    git(root, "update-ref", MARKS["MERGE"], "refs/stash")
    assert any("left an experiment among your stashes" in one for one in found(root))
    fixed(root, yes=True)
    assert git(root, "stash", "list", "--format=%H") == mine
    assert found(root) == []


def test_changes_that_only_the_experiments_stash_holds_come_back(root: Path) -> None:
    write(root / "notes.md", "mine\n")
    write(root / "gone.md", "x\n")
    git(root, "add", "gone.md")
    git(root, "commit", "-q", "-m", "gone", "gone.md")
    (root / "gone.md").unlink()
    write(root / "new.md", "new\n")
    git(root, "add", "new.md")
    before = {name: (root / name).exists() for name in ("gone.md", "new.md")}
    stash = git(root, "stash", "create")
    start_experiment(root)
    git(root, "update-ref", MARKS["MERGE"], stash)
    git(root, "reset", "-q", "--hard")  # the forced checkout, before the stash is laid over it
    assert any("uncommitted changes aside" in line for line in found(root))
    fixed(root, yes=True)
    assert (root / "notes.md").read_text("utf-8") == "mine\n"
    assert {name: (root / name).exists() for name in before} == before


def test_what_was_edited_since_is_not_written_over(root: Path) -> None:
    write(root / "notes.md", "mine\n")
    stash = git(root, "stash", "create")
    start_experiment(root)
    git(root, "update-ref", MARKS["MERGE"], stash)
    write(root / "notes.md", "newer\n")
    fixed(root, yes=True)
    assert (root / "notes.md").read_text("utf-8") == "newer\n"


def test_an_experiment_that_never_began_does_not_run_along_with_the_next(root: Path) -> None:
    git(root, "update-ref", "refs/exps/stash", "HEAD")
    assert "the next one would run it along" in found(root)[0]
    fixed(root)
    assert git(root, "for-each-ref", "refs/exps/stash") == ""


# --- a run that is on ---


@pytest.fixture
def stage(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    write(root / "stages/train.py", "import time\nprint(flush=True)\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "stages.train"], cwd=root, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def test_while_a_run_is_on_nothing_is_mended_and_no_switch_is_advised(
    root: Path, stage: subprocess.Popen[bytes]
) -> None:
    start_experiment(root)
    write(root / "dvc.lock", "")
    place, busy = Place(root, root), workers(root)
    assert [one.pid for one in busy] == [stage.pid]
    assert "python -m stages.train" in str(busy[0])
    checks = [git_check(root, busy), *state_checks(place, busy)]
    assert [check.verdict for check in checks] == [OK, OK]
    assert not any("switch" in check.remedy for check in checks)
    with pytest.raises(UsageError, match=f"kill {stage.pid}"):
        fixed(root, yes=True)
    assert (root / "dvc.lock").read_text("utf-8") == ""
    stage.kill()
    stage.wait()
    assert {check.verdict for check in state_checks(place, workers(root))} == {FAULT}


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("/v/bin/python /v/bin/dvc exp run -S lr=8", "dvc"),
        ("python3.11 -m dvc repro", "dvc"),
        ("dvc repro", "dvc"),
        ("python -m stages.train", "stage"),
        ("python -X dev -m stages.report", "stage"),
        ("python -m dvc daemon updater", None),
        ("vim dvc.yaml", None),
        ("grep dvc -r .", None),
        ("python -m skilltrail doctor", None),
        ("git status", "git"),
        ("", None),
    ],
)
def test_who_is_at_work_is_told_by_its_command(command: str, kind: str | None) -> None:
    assert kind_of(command.split()) == kind


# --- stages ---


def test_a_hangup_stops_a_stage_as_ctrl_c_does_but_not_under_nohup(root: Path) -> None:
    write(root / "stages/wait.py", WAITING)
    for before, code in ((signal.SIG_DFL, 75), (signal.SIG_IGN, 0)):
        process = subprocess.Popen(
            [sys.executable, "-m", "stages.wait"],
            cwd=root, env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{root}"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
            preexec_fn=lambda before=before: signal.signal(signal.SIGHUP, before),
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGHUP)
        _, said = process.communicate(timeout=60)
        assert process.returncode == code
        assert ("Stopped by SIGHUP" in said) == (code == 75)
    assert (root / ".skilltrail/dvc.lock.last").read_text("utf-8") == LOCK


WAITING = """
import asyncio
from skilltrail.runtime.command import run_stage

async def main() -> None:
    print("ready", flush=True)
    await asyncio.sleep(3)

run_stage(main)
"""


# --- what a power cut leaves ---


@pytest.mark.parametrize(
    "name",
    ["config", "refs/heads/main", "refs/evolution/main", "refs/evolution-versions/main/v1"],
)
def test_any_lock_of_git_that_nobody_holds_is_found_and_removed(root: Path, name: str) -> None:
    write(root / ".git" / f"{name}.lock", "")
    assert any("a git that is gone left" in one for one in found(root))
    fixed(root)
    assert not (root / ".git" / f"{name}.lock").exists()
    assert found(root) == []


@pytest.mark.parametrize("text", ["", "\0" * 41, "5a1"])
def test_a_branch_that_holds_no_commit_goes_back_to_what_its_log_names(
    root: Path, text: str
) -> None:
    tip = git(root, "rev-parse", "HEAD")
    write(root / ".git/refs/heads/main", text)
    assert any("refs/heads/main of git is empty or damaged" in one for one in found(root))
    assert any("as its log says" in one for one in fixed(root))
    assert git(root, "rev-parse", "main") == tip
    assert found(root) == []


def test_a_side_branch_that_holds_no_commit_goes_since_the_log_makes_it_again(
    root: Path,
) -> None:
    write(root / ".git/refs/evolution/main", "")
    assert any("skilltrail rebuild" in one for one in fixed(root))
    git(root, "update-ref", "refs/evolution/main", "HEAD")
    assert found(root) == []


def test_a_head_that_names_no_branch_is_found_and_put_back(root: Path) -> None:
    git(root, "branch", "-D", "-q", "other")
    write(root / ".git/HEAD", "")
    assert any("git sees no repository here" in one for one in found(root))
    assert fixed(root)[0] == "HEAD is on main again, as its log says"
    assert git(root, "symbolic-ref", "HEAD") == "refs/heads/main"


@pytest.mark.parametrize("length", [0, 40])
def test_a_torn_index_is_made_anew_and_kept(root: Path, length: int) -> None:
    index = root / ".git/index"
    data = index.read_bytes()
    index.write_bytes(data[:length])
    assert any("the index of git is empty or damaged" in one for one in found(root))
    fixed(root)
    assert git(root, "status", "--short", "--", "dvc.yaml", "params.yaml") == ""
    assert [p.read_bytes() for p in (root / ".skilltrail/kept").glob("*/git-index")] == [
        data[:length]
    ]


def test_objects_that_hold_nothing_go(root: Path) -> None:
    tree = git(root, "rev-parse", "HEAD^{tree}")
    path = root / ".git/objects" / tree[:2] / tree[2:]
    path.chmod(0o644)
    path.write_bytes(b"")
    assert any("1 object of git" in one for one in found(root))
    fixed(root)
    assert not path.exists()


@pytest.mark.parametrize("name", ["params.yaml", "dvc.yaml", ".dvc/config"])
@pytest.mark.parametrize("text", ["\0" * 9, "a: [1\n<<<<<<", "[core\n"])
def test_a_file_that_nothing_can_read_is_found_and_comes_from_head_after_asking(
    root: Path, name: str, text: str
) -> None:
    write(root / ".dvc/config", "[core]\n    analytics = false\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "settings")
    good = (root / name).read_text("utf-8")
    write(root / name, text)
    assert [one for one in found(root) if one.startswith(f"{name}: ")]
    assert any(one.startswith(f"left {name}") for one in fixed(root))
    assert (root / name).read_text("utf-8") == text
    fixed(root, yes=True)
    assert (root / name).read_text("utf-8") == good
    assert kept(root, name) == [text]
    assert found(root) == []


def test_a_pipeline_or_params_cut_in_the_middle_are_found(root: Path) -> None:
    write(root / "params.yaml", PARAMS[:9])
    (root / "dvc.yaml").unlink()
    told = " ".join(found(root))
    assert "params.yaml ends in the middle" in told
    assert "dvc.yaml is gone" in told


def test_own_settings_of_dvc_and_a_merged_log_are_a_persons(root: Path) -> None:
    write(root / ".dvc/config.local", "[core\n")
    write(root / "skills/events.jsonl", "<<<<<<< HEAD\n{}\n=======\n>>>>>>> x\n")
    told = found(root)
    assert any(one.startswith(".dvc/config.local") for one in told)
    assert any("skills/events.jsonl holds the markers of a merge" in one for one in told)
    fixed(root, yes=True)
    assert found(root) == told

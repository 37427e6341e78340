"""Try what could hurt a person's repository, and check that nothing did.

    python -m benchmarks.side_branch --kills 20 [--dvc]

In a repository with a stash, a staged change and an unstaged one, a small run of the real loop
(a world made of arithmetic) commits at every step; it is killed (SIGKILL) at random moments and
started again while `git gc --auto` runs beside it. With `--dvc` the same run is also a stage of
DVC: two `dvc exp run --temp` at once, then `dvc exp apply` and `dvc exp remove -A`. After each
part `git fsck --full --strict` is clean; HEAD, index, work tree, status, stashes and branches
are as they were; the ref has the hash of an undisturbed run.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATHS = [str(HERE.parent), str(HERE.parent / "tests")]
RUN = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
from history_world import World
from skilltrail.history.git.branch import SideBranch
from skilltrail.history.git.repository import Git
repo, live, label, lr = sys.argv[1:]
side = SideBranch(Git.find(Path(repo)), label, every_s=0.0)
params = {{"epochs": 4, "batch_size": 4, "lr": int(lr), "lr_schedule": "constant"}}
World(n_train=16, n_selection=6, params=params).run(Path(live), side)
"""
STAGE = """\
stages:
  train:
    cmd: {python} run.py {repo} live ${{name}} ${{lr}} && cp live/events.jsonl events.jsonl
    params: [lr, name]
    outs: [{{events.jsonl: {{cache: false}}}}]
"""


def main() -> int:
    """Run the trial and return 0 when every check holds."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--dvc", action="store_true", help="also try DVC experiments")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="side-branch-") as name:
        folder = Path(name)
        whole = tip_of_undisturbed(folder / "whole")
        killed(
            folder / "killed", folder / "live", asked.kills, random.Random(asked.seed), whole
        )
        if asked.dvc:
            experiments(folder / "dvc")
    return 0


def git(repo: Path, *args: str) -> str:
    """Return what git prints.

    Raises:
        CalledProcessError: it failed.
    """
    done = subprocess.run(["git", *args], cwd=repo, capture_output=True, check=True)
    return done.stdout.decode()


def repository(repo: Path) -> Path:
    """Make a repository with a commit, a stash, a staged change and an unstaged one."""
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    for name, value in (("user.name", "A Person"), ("user.email", "person@example.com")):
        git(repo, "config", name, value)
    (repo / "notes.txt").write_text("one\n", encoding="utf-8", newline="\n")
    (repo / ".gitignore").write_text("/live\n", encoding="utf-8", newline="\n")
    (repo / "run.py").write_text(RUN.format(paths=PATHS), encoding="utf-8", newline="\n")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "First")
    git(repo, "branch", "other")
    for text, then in (("stashed\n", ("stash",)), ("staged\n", ("add", "."))):
        (repo / "notes.txt").write_text(text, encoding="utf-8", newline="\n")
        git(repo, *then)
    (repo / "notes.txt").write_text("unstaged\n", encoding="utf-8", newline="\n")
    return repo


def own_state(repo: Path) -> dict[str, str]:
    """Return all that belongs to the person who works here."""
    asked = {
        "HEAD": ("rev-parse", "HEAD"),
        "on": ("symbolic-ref", "HEAD"),
        "index": ("ls-files", "--stage"),
        "status": ("status", "--porcelain"),
        "stashes": ("stash", "list", "--format=%H %gs"),
        "branches": ("for-each-ref", "refs/heads", "refs/tags"),
        "diff": ("diff",),
    }
    return {name: git(repo, *args) for name, args in asked.items()}


def command(repo: Path, live: Path) -> Sequence[str]:
    return [sys.executable, str(repo / "run.py"), str(repo), str(live), "main", "3"]


def tip_of_undisturbed(repo: Path) -> str:
    repository(repo)
    subprocess.run(command(repo, repo / "live"), check=True)
    return git(repo, "rev-parse", "refs/evolution/main").strip()


def killed(repo: Path, live: Path, kills: int, dice: random.Random, whole: str) -> None:
    """Kill the run again and again, with gc beside it; then let it end."""
    repository(repo)
    before = own_state(repo)
    git(repo, "config", "gc.auto", "1")
    inside = 0
    for _ in range(kills):
        process = subprocess.Popen(command(repo, live), start_new_session=True)
        collector = subprocess.Popen(
            ["git", "gc", "--auto", "--quiet"], cwd=repo, stderr=subprocess.DEVNULL
        )
        wait_for_first_event(process, live)
        time.sleep(dice.uniform(0.0, 0.4))
        inside += process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        collector.wait()
        check(repo, before)
    age_locks(repo)
    subprocess.run(command(repo, live), check=True)
    check(repo, before)
    tip = git(repo, "rev-parse", "refs/evolution/main").strip()
    runs = git(repo, "for-each-ref", "--format=%(refname)", "refs/evolution").split()
    hold(runs == ["refs/evolution/main"] and tip == whole, f"{runs} at {tip}, not {whole}")
    tell(
        f"{kills} kills, {inside} while it ran, gc beside: sound, tip {tip[:12]} as undisturbed"
    )


def wait_for_first_event(process: subprocess.Popen[bytes], live: Path) -> None:
    """Wait until the process is past its imports: it has the log open."""
    stood = (
        (live / "events.jsonl").stat().st_mtime_ns if (live / "events.jsonl").exists() else 0
    )
    end_s = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < end_s:
        log = live / "events.jsonl"
        if log.exists() and log.stat().st_mtime_ns != stood:
            return
        time.sleep(0.01)
        if stood and time.monotonic() > end_s - 18.5:
            return  # it only derives again what stands


def age_locks(repo: Path) -> None:
    """Let a minute pass for locks that a killed git left: nobody holds them any more."""
    for lock in (repo / ".git/refs").rglob("*.lock"):
        os.utime(lock, (1, 1))


def experiments(repo: Path) -> None:
    """Run two experiments at once in temporary workspaces; apply one; remove all."""
    repository(repo)
    stage = STAGE.format(python=sys.executable, repo=repo)
    (repo / "dvc.yaml").write_text(stage, encoding="utf-8", newline="\n")
    (repo / "params.yaml").write_text("lr: 3\nname: a\n", encoding="utf-8", newline="\n")
    dvc(repo, "init", "--quiet")
    git(repo, "add", "dvc.yaml", "params.yaml", ".dvc", ".dvcignore")
    git(repo, "commit", "-q", "-m", "Pipeline")
    before = own_state(repo)
    runs = [
        subprocess.Popen(
            [*DVC, "exp", "run", "--temp", "-n", f"exp-{lr}", "-S", f"lr={lr}"]
            + ["-S", f"name=exp-{lr}"],
            cwd=repo,
            env=without_root(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for lr in (4, 8)
    ]
    said = [run.communicate()[0].decode() for run in runs]
    hold(all(run.returncode == 0 for run in runs), "\n".join(said))
    check(repo, before)
    tips = git(repo, "for-each-ref", "--format=%(refname)", "refs/evolution").split()
    hold(tips == ["refs/evolution/exp-4", "refs/evolution/exp-8"], f"runs {tips}")
    tell("two experiments at once: both runs in the main repository, all else as it was")
    dvc(repo, "exp", "apply", "-q", "exp-8")
    after = own_state(repo)
    kept = ("HEAD", "on", "stashes", "branches")
    hold(all(after[name] == before[name] for name in kept), "exp apply moved a ref")
    git(repo, "fsck", "--full", "--strict")
    dvc(repo, "exp", "remove", "-q", "-A")
    check(repo, after)
    still = git(repo, "for-each-ref", "--format=%(refname)", "refs/evolution").split()
    hold(still == tips, f"runs {still} after exp remove -A")
    tell("exp apply, exp remove -A: sound, both runs are still there")


DVC = (sys.executable, "-m", "dvc")


def dvc(repo: Path, *args: str) -> None:
    subprocess.run([*DVC, *args], cwd=repo, env=without_root(), check=True)


def without_root() -> dict[str, str]:
    """Return this process's environment without a DVC_ROOT of a stage around it."""
    return {name: value for name, value in os.environ.items() if name != "DVC_ROOT"}


def check(repo: Path, before: dict[str, str]) -> None:
    """Hold the repository against what it was."""
    git(repo, "fsck", "--full", "--strict")
    now = own_state(repo)
    changed = [name for name in before if now[name] != before[name]]
    hold(not changed, f"changed: {', '.join(changed)}")


def hold(true: bool, found: str) -> None:
    if not true:
        raise SystemExit(found)


def tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

"""What a killed `dvc exp run` leaves in a repository, and how to put it right.

DVC detaches HEAD while an experiment runs and marks it by refs under `refs/exps/exec/`. After
SIGKILL both stay, and so does the workspace of an experiment started with `--temp`. Nothing
here is touched while a DVC process is at work in the repository.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from skilltrail.core.errors import UsageError

# DVC drops these when an experiment ends well or badly; others stay and harm nobody.
MARKS = ("EXEC_BASELINE", "EXEC_MERGE")
WORKSPACES = ("standalone/tmp*", "tmp*")


@dataclass(frozen=True)
class Leftovers:
    """What lies about.

    Attributes:
        marks: full names of DVC's execution refs.
        branch: the branch that a detached HEAD belongs to; None when HEAD is attached, or
            when no branch or several point at its commit.
        detached: whether HEAD is detached while `marks` say that DVC did it.
        workspaces: folders of experiments that run no more.
        busy: process ids of DVC at work in this repository.
    """

    marks: tuple[str, ...] = ()
    detached: bool = False
    branch: str | None = None
    workspaces: tuple[Path, ...] = ()
    busy: tuple[int, ...] = ()

    @property
    def any(self) -> bool:
        return bool(self.marks or self.workspaces)


def find_leftovers(root: Path) -> Leftovers:
    """Return what killed experiments left in the repository at `root`."""
    marks = [f"refs/exps/exec/{name}" for name in MARKS]
    there = tuple(ref for ref in marks if _git(root, "rev-parse", "-q", "--verify", ref))
    detached = bool(there) and not _git(root, "symbolic-ref", "-q", "HEAD")
    folder = root / ".dvc" / "tmp" / "exps"
    found = {path for pattern in WORKSPACES for path in folder.glob(pattern) if path.is_dir()}
    return Leftovers(
        marks=there,
        detached=detached,
        branch=_branch_of_head(root) if detached else None,
        workspaces=tuple(sorted(found)),
        busy=tuple(dvc_processes(root)),
    )


def clear_leftovers(root: Path, leftovers: Leftovers) -> None:
    """Attach HEAD to its branch again, drop DVC's marks, delete dead workspaces.

    Index, work tree and branches stay as they are.

    Raises:
        UsageError: DVC is at work here, or HEAD's branch cannot be told.
    """
    if leftovers.busy:
        raise UsageError(
            "Clearing what killed experiments left",
            f"dvc is at work in this repository (process {leftovers.busy[0]})",
            "Wait for it to end, or stop it",
        )
    if leftovers.detached and leftovers.branch is None:
        raise UsageError(
            "Attaching HEAD to its branch",
            "no single branch points at HEAD's commit",
            "Choose it yourself: `git switch BRANCH`, then run this again",
        )
    if leftovers.branch is not None:
        _git(root, "symbolic-ref", "HEAD", leftovers.branch)
    for ref in leftovers.marks:
        _git(root, "update-ref", "-d", ref)
    for folder in leftovers.workspaces:
        shutil.rmtree(folder)


def dvc_processes(root: Path) -> list[int]:
    """Return the ids of DVC processes whose working directory lies in `root`."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [Path(word).name for word in process.cmdline()[:4]]
            inside = "dvc" in words and Path(process.cwd()).is_relative_to(root.resolve())
        except (psutil.Error, OSError):
            continue  # ended meanwhile, or another user's
        if inside:
            found.append(process.pid)
    return found


def _branch_of_head(root: Path) -> str | None:
    text = _git(
        root, "for-each-ref", "--points-at", "HEAD", "--format=%(refname)", "refs/heads"
    )
    names = text.split()
    return names[0] if len(names) == 1 else None


def _git(root: Path, *args: str) -> str:
    """Return git's output, "" when it says no."""
    done = subprocess.run(
        ["git", *args], cwd=root, capture_output=True, encoding="utf-8", check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""

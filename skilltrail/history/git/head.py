"""Where HEAD stands and where it came from, as its own log tells.

DVC detaches HEAD while an experiment runs, and writes so into the log of HEAD; when it is
killed, HEAD stays detached, and that log is where the branch still has its name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from skilltrail.history.git.repository import Git

_LEFT = re.compile(r"checkout: moving from (\S+) to (\S+)")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_DVC = ("dvc: ", "commit: dvc: commit experiment")
_LOOKED_AT = 1000


@dataclass(frozen=True)
class Head:
    """HEAD of a work tree.

    Attributes:
        branch: the branch that is checked out; None when HEAD is detached.
        left: the branch that a detached HEAD left, None when nothing tells.
        by_person: it left for another commit, or one that was named, as DVC never does.
        by_dvc: DVC has moved HEAD since.
    """

    branch: str | None
    left: str | None = None
    by_person: bool = False
    by_dvc: bool = False

    @property
    def detached(self) -> bool:
        return self.branch is None


def head_of(git: Git) -> Head:
    """Return where HEAD stands; its log, or a lone branch at its commit, tells a branch."""
    branch = git.branch()
    if branch is not None:
        return Head(branch)
    by_dvc = False
    log = [*_log(git), ("", "")]
    for (commit, line), (before, _) in pairwise(log):
        by_dvc = by_dvc or line.startswith(_DVC)
        match = _LEFT.match(line)
        if match is not None and is_branch(git, match[1]):
            stayed = commit == before and _COMMIT.match(match[2]) is not None
            return Head(None, match[1], not stayed, by_dvc)
    return Head(None, _lone_branch(git), by_dvc=by_dvc)


def is_branch(git: Git, name: str) -> bool:
    """Return whether there is a branch of this name."""
    return git.ask("rev-parse", "--verify", "--quiet", f"refs/heads/{name}") is not None


def attach(git: Git, branch: str) -> None:
    """Let HEAD stand on `branch` again, and the index as that has it; no file changes.

    DVC stages what an experiment changed, and ends one with the same reset of the index.

    Raises:
        GitError: git refused.
    """
    ref = f"refs/heads/{branch}"
    git.here("symbolic-ref", "-m", f"skilltrail: back to {branch}", "HEAD", ref)
    git.here("reset", "--quiet")


def _log(git: Git) -> list[tuple[str, str]]:
    """Return the newest moves of HEAD: the commit it came to, and why."""
    told = git.ask("log", "--walk-reflogs", f"-{_LOOKED_AT}", "--format=%H %gs", "HEAD", "--")
    lines = [] if told is None else told.decode("utf-8", "replace").splitlines()
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def _lone_branch(git: Git) -> str | None:
    told = git.ask(
        "for-each-ref", "--points-at", "HEAD", "--format=%(refname:short)", "refs/heads"
    )
    names = [] if told is None else told.decode().split()
    return names[0] if len(names) == 1 else None

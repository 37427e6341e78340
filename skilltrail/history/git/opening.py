"""Opening a run's side branch: which repository, under which label, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from skilltrail.history.git.branch import SideBranch
from skilltrail.history.git.branches import name_of_run
from skilltrail.history.git.ref_names import DETACHED
from skilltrail.history.git.repository import Git, GitError
from skilltrail.history.log.events import Event
from skilltrail.history.log.recorder import Projection

WITHOUT_GIT = (
    "This project is not in git, so no commits are made: `git log`, `git diff`, `git blame` "
    "and `skilltrail runs` will not know this run. The event log holds all of it; after "
    "`git init` the command `skilltrail rebuild` makes the commits"
)


def open_side_branch(
    root: Path,
    experiment: str | None,
    report: Callable[[str, Mapping[str, Any]], None],
    make: Callable[[Git, str], SideBranch] = SideBranch,
) -> Projection | None:
    """Return the side branch in the repository of `root`, or None after reporting why not.

    Args:
        root: the main repository's project folder (`$DVC_ROOT`).
        experiment: the DVC experiment's name, the first choice as label.
        report: called with (`history.uncommitted`, details) when there is no git.
        make: makes the side branch of a repository under a label.
    """
    try:
        door = Git.find(root)
        if door is None:
            report("history.uncommitted", {"message": WITHOUT_GIT})
            return None
        return make(door, label_of(door, experiment))
    except GitError as error:
        report("history.uncommitted", {"message": str(error)})
        return None


def name_here(root: Path, last: Event, experiment: str | None = None) -> str | None:
    """Return the name of the run whose training ends with `last`, the experiment's or the
    branch's where it has several; None where no commits are at hand."""
    try:
        git = Git.find(root)
        return None if git is None else name_of_run(git, last, label_of(git, experiment))
    except GitError:
        return None


def label_of(git: Git, experiment: str | None) -> str:
    """Return a run's label: the experiment's name, else the branch's, else `detached`."""
    if experiment is not None:
        return experiment
    branch = git.branch()
    return DETACHED if branch is None else branch

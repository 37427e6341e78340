"""A person's uncommitted changes, which DVC puts aside while it prepares an experiment.

Before an experiment DVC stashes them, resets the work tree, makes the experiment's own stash,
and puts them back (`refs/stash`); then it checks out the baseline and lays the experiment's
stash over it (`EXEC_MERGE`, which holds them too). Killed in between, it leaves them there.
They are put back where the work tree still has the baseline's text; nothing newer is lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from skilltrail.cli.repair.case import MERGE, Finding, Repair
from skilltrail.cli.repair.locks import ARGUMENTS, REMEDY
from skilltrail.history.git.repository import Git
from skilltrail.params.read import FILE

EXPERIMENT = "dvc-exp:"  # how the subject of an experiment's own stash begins
QUEUED = "refs/exps/stash"  # an experiment that the next `dvc exp run` would run along
LOCK = "dvc.lock"


class PutAside(Repair):
    """Changes that DVC did not bring back, and the experiment that it did not begin."""

    def findings(self) -> list[Finding]:
        git = self._case.git
        if git is None:
            return []
        stashed = list(self._stashed(git))
        found = []
        if any(is_own for _, is_own in stashed) or self._missing(git):
            told = "a killed dvc put uncommitted changes aside and did not bring them back"
            found.append(Finding("uncommitted changes", told, REMEDY))
        elif stashed:
            told = "a killed dvc left an experiment among your stashes"
            found.append(Finding("stashes", told, REMEDY))
        if git.ask("rev-parse", "--quiet", "--verify", QUEUED) is not None:
            told = "a killed dvc left an experiment prepared: the next one would run it along"
            found.append(Finding("experiments", told, REMEDY))
        return found

    def fix(self) -> list[str]:
        git, done = self._case.git, []
        if git is None:
            return []
        for sha, is_own in list(self._stashed(git)):
            if is_own:
                self._params_of(git, sha)
                done += self._put_back(git, sha, list(_changed(git, sha)))
            git.here("stash", "drop", "--quiet")
        done += self._put_back(git, MERGE, self._missing(git))
        if git.ask("rev-parse", "--quiet", "--verify", QUEUED) is not None:
            git.here("update-ref", "-d", QUEUED)
            done.append("dropped an experiment that was prepared and never began")
        return done

    def _stashed(self, git: Git) -> Iterator[tuple[str, bool]]:
        """Yield the stashes that the killed DVC made, the newest first, and whether each holds
        a person's changes."""
        since = self._case.put_aside_since
        told = git.ask("log", "-g", "--format=%H %ct %gs", "refs/stash", "--")
        merge = git.ask("rev-parse", MERGE) if MERGE in self._case.marks else None
        for line in [] if told is None else told.decode("utf-8", "replace").splitlines():
            sha, made, subject = (*line.split(" ", 2), "")[:3]
            if merge is not None and sha == merge.decode().strip():
                yield sha, False  # libgit2 lays only what is there over a work tree
                continue
            if since is None or int(made) < int(since):
                return
            yield sha, EXPERIMENT not in subject

    def _missing(self, git: Git) -> list[str]:
        """Return the files that differ in EXEC_MERGE and are here as in the baseline."""
        if MERGE not in self._case.marks:
            return []
        return [
            name
            for name in _changed(git, MERGE)
            if name not in (FILE, LOCK) and _is_as_in(git, f"{MERGE}^", name)
        ]

    def _put_back(self, git: Git, sha: str, names: list[str]) -> list[str]:
        back = [name for name in names if _is_as_in(git, f"{sha}^", name)]
        for name in back:
            if git.ask("cat-file", "-e", f"{sha}:./{name}") is None:
                (git.folder / name).unlink(missing_ok=True)  # the change was to delete it
            else:
                git.here("restore", f"--source={sha}", "--worktree", "--", name)
        return [f"put back your uncommitted changes to {', '.join(back)}"] if back else []

    def _params_of(self, git: Git, sha: str) -> None:
        """Let params.yaml be as it was before the experiment's values went in."""
        self._case.params_are_back = True
        if _is_as_in(git, sha, FILE):
            return
        self._case.kept.keep(FILE)
        if git.ask("cat-file", "-e", f"{sha}:./{FILE}") is not None:
            git.here("restore", f"--source={sha}", "--worktree", "--", FILE)


def _changed(git: Git, sha: str) -> Iterator[str]:
    """Yield the files, from the workspace's root, that a stash changes."""
    told = git.ask("diff", "--name-only", "--no-renames", "-z", "--relative", f"{sha}^", sha)
    names = (os.fsdecode(name) for name in (told or b"").split(b"\0") if name)
    yield from (name for name in names if name != ARGUMENTS)


def _is_as_in(git: Git, revision: str, name: str) -> bool:
    """Return whether a file of the work tree is as a revision has it, or absent in both."""
    if git.ask("cat-file", "-e", f"{revision}:./{name}") is None:
        return not (git.folder / name).exists()
    return git.ask("diff", "--quiet", revision, "--", name) is not None

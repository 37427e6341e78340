"""Locks and notes of processes that are gone.

DVC writes its two `rwlock` files and the note on a running experiment in place: killed there,
it leaves half a file, and every later command refuses. Git's locks are files that its death
leaves. All of it has no owner once neither DVC nor git is at work here.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from skilltrail.cli.repair.at_work import git_at_work
from skilltrail.cli.repair.case import Finding, Repair
from skilltrail.cli.repair.rwlock import RWLOCKS, read_lock
from skilltrail.history.log.words import count

RUNNING = ".dvc/tmp/exps/run/workspace"
ARGUMENTS = ".dvc/tmp/repro.dat"  # DVC adds it to the index for a moment
_DRAFT = re.compile(r"\.[\w-]{22}\.tmp\Z", re.ASCII)  # as DVC names them
REMEDY = "skilltrail doctor --fix"


class GitLocks(Repair):
    """Lock files of git that nobody holds: git refuses to work."""

    def findings(self) -> list[Finding]:
        names = ", ".join(path.name for path in self._stale())
        found = f"a git that is gone left {names}: git refuses to write"
        return [Finding("git locks", found, REMEDY)] if names else []

    def fix(self) -> list[str]:
        stale = list(self._stale())
        for path in stale:
            path.unlink(missing_ok=True)
        return [f"removed git's {path.name}, which nobody held" for path in stale]

    def _stale(self) -> Iterator[Path]:
        git = self._case.git
        if git is None:
            return
        folders = {git.own_dir, git.git_dir}
        found = {path for folder in folders for path in folder.glob("*.lock")}
        there = sorted(found | {*(git.git_dir / "refs").rglob("*.lock")})
        if there and not git_at_work(self._case.root):
            yield from (path for path in there if path.exists())


class DvcLocks(Repair):
    """DVC's locks and its note on the experiment that runs here."""

    def findings(self) -> list[Finding]:
        notes = (self._case.root / RUNNING).glob("*.run")
        names = [path.relative_to(self._case.root).as_posix() for path in notes]
        torn = [name for name in (*RWLOCKS, *names) if self._is_torn(name)]
        found = f"a killed dvc left {' and '.join(torn)} torn: every dvc command refuses"
        return [Finding("dvc locks", found, REMEDY)] if torn else []

    def fix(self) -> list[str]:
        root, done = self._case.root, []
        for name in RWLOCKS:
            if self._is_torn(name) or read_lock(root / name) not in ({}, {"read": {}}, None):
                (root / name).unlink(missing_ok=True)
                done.append(f"removed {name}, which nobody held")
        shutil.rmtree(root / RUNNING, ignore_errors=True)
        self._drop_arguments()
        return done

    def _is_torn(self, name: str) -> bool:
        path = self._case.root / name
        return path.is_file() and not isinstance(read_lock(path), dict)

    def _drop_arguments(self) -> None:
        (self._case.root / ARGUMENTS).unlink(missing_ok=True)
        git = self._case.git
        if git is not None and git.ask("ls-files", "--", ARGUMENTS):
            git.here("rm", "--cached", "--quiet", "--force", "--", ARGUMENTS)


class Drafts(Repair):
    """Files that DVC was copying from its cache, under a name of their own."""

    def findings(self) -> list[Finding]:
        number = len(self._left())
        found = f"a killed dvc left {number} half copies of outputs: they look like new files"
        return [Finding("half copies", found, REMEDY)] if number else []

    def fix(self) -> list[str]:
        left = self._left()
        for path in left:
            path.unlink()
        return [f"removed {len(left)} half copies of dvc's"] if left else []

    def _left(self) -> list[Path]:
        git = self._case.git
        told = None if git is None else git.ask("ls-files", "-z", "-o", "--exclude-standard")
        names = map(os.fsdecode, (told or b"").split(b"\0"))
        return [self._case.root / name for name in names if _DRAFT.match(Path(name).name)]


class DeadWorkspaces(Repair):
    """Workspaces of `dvc exp run --temp` and of the queue whose experiment is gone."""

    def findings(self) -> list[Finding]:
        number = len(self._dead())
        left = count(number, "workspace")
        found = f"killed experiments left {left} of their own: they fill the disk"
        return [Finding("experiments", found, REMEDY)] if number else []

    def fix(self) -> list[str]:
        dead = self._dead()
        for folder in dead:
            shutil.rmtree(folder)
        deleted = count(len(dead), "workspace")
        return [f"deleted {deleted} of killed experiments"] if dead else []

    def _dead(self) -> list[Path]:
        folder = self._case.root / ".dvc/tmp/exps"
        found = {*folder.glob("standalone/tmp*"), *folder.glob("tmp*")}
        return sorted(path for path in found if path.is_dir())

"""The one door to git: plumbing commands that touch refs and objects and nothing else.

HEAD, index, work tree, branches and stashes are never named here. Hooks, signing and the
user's identity are not used, and `gc` is never started. Works on the common git directory, so
that a linked worktree, a project in a sub-folder and a bare repository are all the same.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from git import Git, GitCommandError, InvalidGitRepositoryError, NoSuchPathError, Repo

from skilltrail.core.errors import SkilltrailError

_PLAIN = ("-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "maintenance.auto=false")
STALE_S = 60.0
_ALL_LOOSE = 2**31 - 1
# What git says when another process holds a lock or has moved a ref meanwhile.
_BUSY = (".lock", "cannot lock", "unable to lock", "not updating", "exists")


class GitError(SkilltrailError):
    """Git refused or is not there; `busy` when another process was at the same refs."""

    def __init__(self, asked: str, found: str, remedy: str = "", *, busy: bool = False) -> None:
        super().__init__(asked, found, remedy)
        self.busy = busy


class GitDoor:
    """Plumbing on one repository, named by its common git directory."""

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self._git = Git(str(git_dir))

    @staticmethod
    def find(folder: Path) -> GitDoor | None:
        """Return the door to the repository that `folder` is in, or None outside of git."""
        try:
            with Repo(folder, search_parent_directories=True) as repo:
                return GitDoor(Path(repo.common_dir).resolve())
        except (InvalidGitRepositoryError, NoSuchPathError):
            return None

    @staticmethod
    def branch(folder: Path) -> str | None:
        """Return the branch that is checked out in `folder`, or None when HEAD is detached."""
        with Repo(folder, search_parent_directories=True) as repo:
            door = GitDoor(Path(repo.git_dir).resolve())
        try:
            name = door.run("symbolic-ref", "--short", "--quiet", "HEAD")
        except GitError:
            return None
        return name.decode().strip()

    def run(self, *args: str, stdin: bytes | None = None) -> bytes:
        """Return what a git command prints.

        Raises:
            GitError: it failed.
        """
        with self._start(args) as process:
            out, error = process.communicate(stdin)
        if process.returncode != 0:
            raise _failed(args[0], error)
        return out

    @staticmethod
    def prefix(folder: Path) -> str:
        """Return where `folder` lies in its repository: "" at its root, else `some/folder/`."""
        with Repo(folder, search_parent_directories=True) as repo:
            top = repo.working_tree_dir
        if top is None:
            return ""
        relative = folder.resolve().relative_to(Path(top).resolve()).as_posix()
        return "" if relative == "." else f"{relative}/"

    def resolve(self, revision: str) -> str:
        """Return the commit of a revision.

        Raises:
            GitError: there is none.
        """
        name = f"{revision}^{{commit}}"
        return (
            self.run("rev-parse", "--verify", "--quiet", "--end-of-options", name)
            .decode()
            .strip()
        )

    def has(self, commit: str, name: str) -> bool:
        """True when the commit's tree has a file of this name."""
        return bool(self.run("ls-tree", "--name-only", commit, "--", name).strip())

    def object_format(self) -> str:
        """Return `sha1` or `sha256`."""
        return self.run("rev-parse", "--show-object-format").decode().strip()

    def refs(self, *prefixes: str) -> dict[str, str]:
        """Return the commit (or other object) of every ref under `prefixes`."""
        out = self.run("for-each-ref", "--format=%(objectname) %(refname)", *prefixes)
        rows = (line.split(" ", 1) for line in out.decode().splitlines())
        return {name: sha for sha, name in rows}

    def history(self, tip: str) -> list[str]:
        """Return the commits that `tip` holds, newest first."""
        return self.run("rev-list", "--first-parent", tip, "--").decode().split()

    def update_refs(self, commands: Iterable[str]) -> None:
        """Carry out `update-ref --stdin` commands, all or none.

        Raises:
            GitError: a ref was not what a command expects, or is locked.
        """
        lines = "".join(f"{command}\n" for command in commands)
        if lines:
            self.run("update-ref", "--stdin", stdin=lines.encode())

    def drop_stale_locks(self, *prefixes: str) -> None:
        """Remove locks of refs under `prefixes` that a killed git left behind.

        Moving a ref takes milliseconds; a lock of `STALE_S` has no owner any more. Only for
        prefixes that nobody else writes to.
        """
        for prefix in prefixes:
            for lock in (self.git_dir / prefix).rglob("*.lock"):
                if time.time() - lock.stat().st_mtime > STALE_S:
                    lock.unlink(missing_ok=True)

    def fast_import(self, stream: Iterable[bytes], *, loose: bool = False) -> None:
        """Feed a stream to `git fast-import`; refs move only after the whole stream is in.

        `loose` writes no pack: a process that was killed, or one that imports the same at the
        same moment, may stand in the way of a pack of that name.

        Raises:
            GitError: it failed, or a ref would not have moved forward.
        """
        limit = ("-c", f"fastimport.unpackLimit={_ALL_LOOSE}") if loose else ()
        command = ("fast-import", "--quiet", "--done", "--date-format=raw")
        with self._start((*limit, *command)) as process:
            if process.stdin is None:
                raise GitError("git fast-import", "has no input")
            broken = _feed(process.stdin, stream)
            _, error = process.communicate()
            # It leaves a crash report in the user's git directory when a lock is in its way.
            (self.git_dir / f"fast_import_crash_{process.pid}").unlink(missing_ok=True)
        if process.returncode != 0 or broken:
            raise _failed("fast-import", error)

    def files(self, commits: Sequence[str], name: str) -> Iterator[bytes]:
        """Yield the content of file `name` in each of `commits`.

        Raises:
            GitError: a commit has no such file.
        """
        wanted = "".join(f"{commit}:{name}\n" for commit in commits)
        out = self.run("cat-file", "--batch", stdin=wanted.encode())
        at = 0
        for commit in commits:
            end = out.index(b"\n", at)
            head = out[at:end].split(b" ")
            if len(head) != 3 or not head[2].isdigit():
                raise GitError(f"commit {commit[:12]}", f"has no file {name}")
            start, size = end + 1, int(head[2])
            yield out[start : start + size]
            at = start + size + 1

    @contextmanager
    def _start(self, args: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
        command = ["git", f"--git-dir={self.git_dir}", *_PLAIN, *args]
        try:
            started = self._git.execute(
                command,
                as_process=True,
                istream=subprocess.PIPE,
                env=_environment(self.git_dir),
            )
        except GitCommandError as error:
            raise GitError("git", str(error), "Install git") from error
        # GitPython ends the process when its wrapper goes, so the wrapper must outlive its use.
        process: subprocess.Popen[bytes] | None = started.proc
        if process is None:
            raise GitError("git", "did not start")
        yield process


def _environment(git_dir: Path) -> Mapping[str, str]:
    """Keep what a hook or a quarantine set in the environment from leading elsewhere."""
    common = git_dir / "commondir"
    home = git_dir
    if common.exists():
        home = (git_dir / common.read_text(encoding="utf-8").strip()).resolve()
    return {
        "GIT_OBJECT_DIRECTORY": str(home / "objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
        "GIT_NAMESPACE": "",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def _feed(stdin: IO[bytes], stream: Iterable[bytes]) -> bool:
    """Write the stream; True when git closed its end early."""
    try:
        for part in stream:
            stdin.write(part)
    except BrokenPipeError:
        return True
    return False


def _failed(command: str, error: bytes | None) -> GitError:
    words = (error or b"").decode("utf-8", "replace").strip()
    lines = words.splitlines()
    told = [line for line in lines if line.startswith(("fatal:", "error:", "warning:"))]
    busy = any(sign in words.lower() for sign in _BUSY)
    found = next(iter(told or lines), "failed without a word")
    return GitError(f"git {command}", found, busy=busy)

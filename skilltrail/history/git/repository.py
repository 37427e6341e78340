"""The one door to git.

`run` is plumbing on the common git directory: refs and objects and nothing else, so that a
linked worktree, a project in a sub-folder and a bare repository are all the same. `here` and
`ask` are for what belongs to the person who works in a folder (HEAD, index, work tree); of all
commands only `doctor --fix` changes any of that. Hooks, signing and the user's identity are not
used, and `gc` is never started.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import psutil

from skilltrail.history.git.process import PLAIN, GitError, ended, failed

__all__ = ["STALE_S", "Git", "GitError"]

_LOOKS = ("--git-common-dir", "--git-dir", "--show-prefix")
STALE_S = 60.0
_ALL_LOOSE = 2**31 - 1


class Git:
    """Git in one repository.

    Attributes:
        git_dir: the common git directory, where refs and objects are.
        own_dir: the git directory of this work tree, where HEAD and the index are.
        folder: the folder that a person works in.
        prefix: where `folder` lies in the repository: "" at its root, else `some/folder/`.
    """

    def __init__(
        self, git_dir: Path, own_dir: Path | None = None, folder: Path | None = None
    ) -> None:
        self.git_dir = git_dir
        self.own_dir = git_dir if own_dir is None else own_dir
        self.folder = git_dir if folder is None else folder
        self.prefix = ""

    @staticmethod
    def find(folder: Path) -> Git | None:
        """Return git in the repository that `folder` is in, or None outside of one.

        Raises:
            GitError: there is no git program, or it does not get through.
        """
        if not folder.is_dir():
            return None
        # To look for a repository of another owner is safe; work in it may run its programs.
        out, error, code = ended(["-c", "safe.directory=*", "rev-parse", *_LOOKS], folder)
        if code != 0:
            if b"not a git repository" in error:
                return None
            raise failed("rev-parse", error)
        common, own, prefix = os.fsdecode(out).split("\n")[:3]
        git = Git((folder / common).resolve(), (folder / own).resolve(), folder)
        git.prefix = prefix
        return git

    @staticmethod
    def at_hand(folder: Path) -> Git | None:
        """Return what `find` does, None also without git: for what can do without."""
        try:
            return Git.find(folder)
        except GitError:
            return None

    def branch(self) -> str | None:
        """Return the branch that is checked out, or None when HEAD is detached."""
        name = self.ask("symbolic-ref", "--short", "--quiet", "HEAD")
        return None if name is None else name.decode().strip()

    def run(self, *args: str, stdin: bytes | None = None) -> bytes:
        """Return what a git command prints.

        Raises:
            GitError: it failed.
        """
        return self._said([f"--git-dir={self.git_dir}", *args], args[0], stdin)

    def here(self, *args: str, stdin: bytes | None = None) -> bytes:
        """Return what a git command prints in the folder that a person works in.

        Raises:
            GitError: it failed.
        """
        return self._said(args, args[0], stdin)

    def ask(self, *args: str) -> bytes | None:
        """Return what a git command prints in that folder, None when it says no."""
        out, _, code = ended([*PLAIN, *args], self.folder)
        return out if code == 0 else None

    def staged(self, *args: str) -> bytes:
        """Return what a git command prints that reads the index, the one of the commit that a
        hook is asked about where there is one (`git commit FILE` makes its own).

        Raises:
            GitError: it failed.
        """
        index = os.environ.get("GIT_INDEX_FILE")
        kept = {} if index is None else {"GIT_INDEX_FILE": index}
        return self._said(args, args[0], None, kept)

    def _said(
        self,
        args: Sequence[str],
        name: str,
        stdin: bytes | None,
        kept: Mapping[str, str] | None = None,
    ) -> bytes:
        out, error, code = ended([*PLAIN, *args], self.folder, stdin, kept)
        if code != 0:
            raise failed(name, error)
        return out

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
            for lock in filter(_is_stale, (self.git_dir / prefix).rglob("*.lock")):
                lock.unlink(missing_ok=True)

    def drop_stale_packs(self) -> None:
        """Remove the unfinished packs that a killed `git fast-import` left behind.

        A pack that a git process has open is in use, however long it waits for its input.
        """
        packs = (self.git_dir / "objects/pack").glob("tmp_pack_*")
        stale = {str(pack) for pack in packs if _is_stale(pack)}
        for path in stale - (_open_in_git() if stale else set()):
            Path(path).unlink(missing_ok=True)

    def fast_import(self, stream: Iterable[bytes], *, loose: bool = False) -> None:
        """Feed a stream to `git fast-import`; refs move only after the whole stream is in.

        `loose` writes no pack: a process that was killed, or one that imports the same at the
        same moment, may stand in the way of a pack of that name.

        Raises:
            GitError: it failed, or a ref would not have moved forward.
        """
        import git  # a third of a second, which only this needs

        self.drop_stale_packs()
        limit = ("-c", f"fastimport.unpackLimit={_ALL_LOOSE}") if loose else ()
        command = ("fast-import", "--quiet", "--done", "--date-format=raw")
        # A text in place of the path would have its $NAMES expanded.
        started = git.Git(self.git_dir).execute(
            ["git", f"--git-dir={self.git_dir}", *PLAIN, *limit, *command],
            as_process=True,
            istream=subprocess.PIPE,
            env={
                "GIT_OBJECT_DIRECTORY": str(self.git_dir / "objects"),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
                "GIT_NAMESPACE": "",
            },
        )
        # GitPython ends the process when its wrapper goes, so the wrapper must outlive its use.
        process: subprocess.Popen[bytes] | None = started.proc
        if process is None or process.stdin is None:
            raise GitError("git fast-import", "did not start")
        broken = _feed(process.stdin, stream)
        _, error = process.communicate()
        # It leaves a crash report in the user's git directory when a lock is in its way.
        (self.git_dir / f"fast_import_crash_{process.pid}").unlink(missing_ok=True)
        if process.returncode != 0 or broken:
            raise failed("fast-import", error)

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


def _is_stale(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > STALE_S
    except FileNotFoundError:
        return False


def _open_in_git() -> set[str]:
    """Return the files that git processes have open."""
    found: set[str] = set()
    for process in psutil.process_iter():
        try:
            if process.name().startswith("git"):
                found |= {file.path for file in process.open_files()}
        except psutil.Error:
            continue  # ended meanwhile, or another user's
    return found


def _feed(stdin: IO[bytes], stream: Iterable[bytes]) -> bool:
    """Write the stream; True when git closed its end early."""
    try:
        for part in stream:
            stdin.write(part)
    except BrokenPipeError:
        return True
    return False

"""Git as a process: its environment, its end, and its errors."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from skilltrail.core.errors import SkilltrailError

PLAIN = ("-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "maintenance.auto=false")
# A hook or a quarantine sets these, and would lead elsewhere.
_LEADING = frozenset(
    f"GIT_{name}"
    for name in (
        "ALTERNATE_OBJECT_DIRECTORIES", "COMMON_DIR", "DIR", "GRAFT_FILE", "INDEX_FILE",
        "NAMESPACE", "OBJECT_DIRECTORY", "PREFIX", "REPLACE_REF_BASE", "SHALLOW_FILE",
        "WORK_TREE",
    )
)  # fmt: skip
# What git says when another process holds a lock or has moved a ref meanwhile.
_BUSY = (".lock", "cannot lock", "unable to lock", "not updating", "exists")


class GitError(SkilltrailError):
    """Git refused or is not there; `busy` when another process was at the same refs."""

    def __init__(self, asked: str, found: str, remedy: str = "", *, busy: bool = False) -> None:
        super().__init__(asked, found, remedy)
        self.busy = busy


def ended(
    args: Sequence[str],
    folder: Path,
    stdin: bytes | None = None,
    kept: Mapping[str, str] | None = None,
) -> tuple[bytes, bytes, int]:
    """Run git to its end; return what it printed, what it complained of, and its exit code."""
    environ = {name: value for name, value in os.environ.items() if name not in _LEADING}
    environ |= {} if kept is None else kept
    try:
        done = subprocess.run(
            ["git", *args],
            cwd=folder,
            input=b"" if stdin is None else stdin,
            capture_output=True,
            # Words are looked for in what git says; reading must not write the index.
            env=environ | {"LC_ALL": "C", "LANGUAGE": "C", "GIT_OPTIONAL_LOCKS": "0"},
        )
    except OSError as error:
        remedy = "Install git, and see that it is on PATH (`git --version`)"
        raise GitError("The program git", str(error.strerror), remedy) from error
    return done.stdout, done.stderr, done.returncode


def make_repository(folder: Path) -> None:
    """Make an existing folder a git repository, on branch main.

    Raises:
        GitError: git refuses, or is not there.
    """
    _, error, code = ended(["init", "--quiet", "--initial-branch=main"], folder)
    if code != 0:
        words = error.decode("utf-8", "replace").strip()
        raise GitError("`git init`", words, "Fix that, then run it again")


def failed(command: str, error: bytes | None) -> GitError:
    """Return the error that a git command ended in, in its own first words."""
    words = (error or b"").decode("utf-8", "replace").strip()
    lines = words.splitlines()
    told = [line for line in lines if line.startswith(("fatal:", "error:", "warning:"))]
    busy = any(sign in words.lower() for sign in _BUSY)
    found = next(iter(told or lines), "failed without a word")
    return GitError(f"git {command}", found, busy=busy)

"""Who is at work in a workspace: DVC, and stages that outlived it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil

_SHOWN_CHARS = 60


@dataclass(frozen=True)
class Worker:
    """A process: its id, and its command for people."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"process {self.pid}, {self.command}"


def workers(root: Path) -> list[Worker]:
    """Return the processes of DVC, and of stages, whose working directory lies in `root`."""
    return list(_found(root, ("dvc", "stage")))


def git_at_work(root: Path) -> bool:
    """Return whether a git process works in `root`."""
    return next(_found(root, ("git",)), None) is not None


def _found(root: Path, kinds: Collection[str]) -> Iterator[Worker]:
    own = {os.getpid(), os.getppid()}
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            cwd = Path(process.cwd()) if kind_of(words) in (*kinds,) else None
            inside = cwd is not None and cwd.is_relative_to(root.resolve())
        except (psutil.Error, OSError):
            continue  # ended meanwhile, or another user's
        if inside and process.pid not in own and process.status() != psutil.STATUS_ZOMBIE:
            yield Worker(process.pid, _told(words))


def kind_of(words: Sequence[str]) -> str | None:
    """Return `dvc`, `stage` or `git` for the words of such a process, None for any other."""
    names = [Path(word).name for word in words[:4]]
    if not names or "daemon" in names:
        return None
    if names[0] == "git":
        return "git"
    if names[0] == "dvc" or (names[0].startswith("python") and "dvc" in names[1:]):
        return "dvc"
    pairs = pairwise(words[:6])
    is_stage = any(flag == "-m" and module.startswith("stages.") for flag, module in pairs)
    return "stage" if is_stage else None


def _told(words: Sequence[str]) -> str:
    text = " ".join(Path(word).name if "/" in word else word for word in words)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"

"""A control group for one job, where this process may make one: the kernel's own bound.

It counts what no look at processes finds: memory held by files, sockets, pipes and the kernel
itself. Version 2 is used where the group above ours gives memory and pids to those below (a
systemd user session does), version 1 where we may write it (root). Elsewhere there is none, and
the look at processes (`skilltrail.sandbox.process`), which is taken anyway, bounds a job alone.
Source: Linux `Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/memory.rst`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from skilltrail.sandbox.protocol import Limits

PREFIX = "skilltrail-"
_ROOT = Path("/sys/fs/cgroup")
_OLD_S = 3600.0
_OWN_PROCESSES = 8  # those of the sandbox itself
# Joins every group named before `--`, then becomes the program after it.
JOIN = (
    'while [ "$1" != -- ]; do { echo 0 > "$1/cgroup.procs"; } 2>/dev/null || '
    '{ echo "bwrap: $1 cannot be joined" >&2; exit 1; }; shift; done; shift; exec "$@"'
)
_counter = itertools.count()


@dataclass(frozen=True)
class Scope:
    """The groups of one job; without any nothing is bounded here."""

    groups: tuple[Path, ...]

    def joined(self, argv: list[str]) -> list[str]:
        """Return the command that runs `argv` inside."""
        if not self.groups:
            return argv
        return ["/bin/sh", "-c", JOIN, "sh", *map(str, self.groups), "--", *argv]

    def is_out_of_memory(self) -> bool:
        """Return whether the kernel has ended a process of the job for its memory."""
        for group in self.groups:
            for name in ("memory.events", "memory.oom_control"):
                with contextlib.suppress(OSError):
                    lines = (group / name).read_text(encoding="ascii").splitlines()
                    if any(line.startswith("oom_kill ") and line[9:] != "0" for line in lines):
                        return True
        return False


@contextmanager
def open_scope(limits: Limits) -> Iterator[Scope]:
    """Yield the groups for a job within `limits`; none where there can be none."""
    name = f"{PREFIX}{os.getpid()}-{next(_counter)}"
    made: list[Path] = []
    with ExitStack() as stack:
        with contextlib.suppress(OSError):  # somebody may have taken the right away since
            for folder in _above():
                made.append(stack.enter_context(_group(folder / name, limits)))
        yield Scope(tuple(made))


@lru_cache(maxsize=1)
def _above() -> tuple[Path, ...]:
    """Return the groups below which one can be made for a job; () where none can."""
    for folders in _candidates(Path("/proc/self/cgroup").read_text(encoding="utf-8")):
        for folder in folders:
            _clear(folder)
        try:
            with ExitStack() as stack:
                made = [
                    stack.enter_context(_group(folder / f"{PREFIX}{os.getpid()}-try", Limits()))
                    for folder in folders
                ]
                command = Scope(tuple(made)).joined(["true"])
                if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                    return folders
        except OSError:
            continue
    return ()


def _candidates(text: str, root: Path = _ROOT) -> Iterator[tuple[Path, ...]]:
    """Yield folders that may take groups; `text` says which groups this process is in."""
    ours: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        ours |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    if (root / "cgroup.controllers").exists() and "" in ours:
        # Where processes are, no group below can have controllers: hence beside ours.
        yield ((root / ours[""]).parent,) if ours[""] else (root,)
    if "memory" in ours and "pids" in ours:
        yield tuple(root / name / ours[name] for name in ("memory", "pids"))


@contextmanager
def _group(group: Path, limits: Limits) -> Iterator[Path]:
    """Make a group with the bounds that it knows, and take it away in the end.

    Raises:
        OSError: it cannot be made or bounded.
    """
    group.mkdir()
    try:
        memory = str(limits.memory_mb * 2**20)
        values = {
            "memory.max": memory,
            "memory.swap.max": "0",
            "memory.oom.group": "1",
            "memory.limit_in_bytes": memory,
            "pids.max": str(limits.processes + _OWN_PROCESSES),
        }
        known = {name: value for name, value in values.items() if (group / name).exists()}
        if not known:
            raise FileNotFoundError(f"{group} bounds nothing")
        for name, value in known.items():
            (group / name).write_text(value, encoding="ascii")
        yield group
    finally:
        for _ in range(50):  # killed processes leave it one after the other
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.002)


def _clear(folder: Path) -> None:
    """Take away old groups that killed processes left; one in use stays."""
    for group in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - group.stat().st_ctime > _OLD_S:
                group.rmdir()

"""Kills a program at its n-th boundary: loaded by every Python that is started with this folder
on its path.

A boundary is a moment at which a file or ref of a repository is about to change, in DVC or in
a stage: an `open` for writing, a rename, a removal (Python's audit events), or one of the calls
by which DVC lets libgit2 change refs, index and work tree. `BOUNDARIES` names the file that
counts them, a line each, over all processes; at line `KILL_AT` the whole process group gets the
signal `KILL_BY`. A file that is about to be opened and emptied is emptied first: that is where
a kill hurts.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time

JOURNAL = os.environ.get("BOUNDARIES", "")
KILL_AT = int(os.environ.get("KILL_AT", "0"))
KILL_BY = int(os.environ.get("KILL_BY", "9"))
WATCHED = (
    "/dvc.lock", "/params.yaml", "/rwlock", "/workspace.run", "/skills/", "/reports/out/",
    "/.skilltrail/", "/data/splits/", "/data/rollouts/", "/.git/index", "/.git/HEAD",
    "/.git/refs/exps/",
)  # fmt: skip
IN_PYTHON = ("os.rename", "os.remove", "os.truncate")
IN_GIT = (
    "checkout_tree", "set_head", "reset", "stash", "stash_apply", "stash_drop",
    "create_reference_symbolic", "create_reference_direct",
)  # fmt: skip


def boundary(what: str, name: str) -> None:
    if count(f"{what} {name}") != KILL_AT:
        return
    if what == "open w" and os.path.isfile(name):
        os.truncate(name, 0)  # counts as the next boundary
    os.killpg(0, KILL_BY)
    time.sleep(60 if KILL_BY == signal.SIGKILL else 0.2)


def count(line: str) -> int:
    """Take a boundary down, and return its number."""
    with open(JOURNAL, "a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{line}\n".encode())
        file.seek(0)
        return file.read().count(b"\n")


def watch(event: str, args: tuple[object, ...]) -> None:
    if event == "socket.connect":  # to the model: the key of a fact is claimed then
        boundary("connect", "")
    if event != "open" and event not in IN_PYTHON:
        return
    path = args[0]
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if not isinstance(path, str) or not any(part in path for part in WATCHED):
        return
    if event != "open":
        boundary(event, path)
    elif isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR):
        boundary("open w" if args[2] & os.O_TRUNC else "open", path)


def watch_git() -> None:
    """Count the calls into libgit2 once pygit2 is there."""
    import pygit2

    for name in IN_GIT:
        owner = next((k for k in pygit2.Repository.__mro__ if name in vars(k)), None)
        if owner is not None and owner is not object:
            setattr(pygit2.Repository, name, counted(name, getattr(pygit2.Repository, name)))


def counted(name: str, call: object) -> object:
    def inner(*args: object, **kwargs: object) -> object:
        boundary("git before", name)
        done = call(*args, **kwargs)  # type: ignore[operator]
        boundary("git after", name)
        return done

    return inner


def watch_dvc() -> None:
    """Count in a process that runs DVC."""
    sys.addaudithook(watch)
    watch_git()


if JOURNAL and "pytest" not in sys.modules:
    sys.addaudithook(watch)

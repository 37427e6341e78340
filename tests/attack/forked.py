"""DVC and Skilltrail as processes of their own, forked from this one: their imports, which take
seconds, are made once. What runs in the child is what `dvc …` and `skilltrail …` run."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from skilltrail.cli.main import run


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code, minus the signal that killed it, and what it said."""

    code: int
    out: str
    err: str


def skilltrail(folder: Path, *words: str) -> Ended:
    """Run `skilltrail …` in a folder."""
    return forked(folder, lambda: run(list(words)))


def dvc(folder: Path, *words: str, before: Callable[[], None] = lambda: None) -> Ended:
    """Run `dvc …` in a folder, after `before` in the same process."""

    def call() -> int:
        from dvc.cli import main

        before()
        sys.argv = ["dvc", *words]
        return int(main(list(words)))

    return forked(folder, call)


def forked(folder: Path, call: Callable[[], int]) -> Ended:
    """Run `call` in a child with a process group of its own, and wait for it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _become(folder, out, err, call)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        return Ended(code, *(_text(file) for file in (out, err)))


def _become(folder: Path, out: IO[bytes], err: IO[bytes], call: Callable[[], int]) -> NoReturn:
    code = 70
    try:
        os.setsid()
        os.chdir(folder)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", encoding="utf-8"), os.fdopen(2, "w")
        code = call()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:  # noqa: BLE001 (pytest must not go on in the child)
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def learn_imports(folder: Path, *words: str) -> None:
    """Run `dvc …` in a folder, and import here what it imported."""
    names = folder.parent / "modules.txt"

    def call() -> int:
        from dvc.cli import main

        code = int(main(list(words)))
        names.write_text("\n".join(sys.modules), encoding="utf-8")
        return code

    ended = forked(folder, call)
    assert ended.code == 0, ended.err
    for name in names.read_text(encoding="utf-8").split():
        if name.partition(".")[0] in PRELOADED:
            with contextlib.suppress(Exception):
                importlib.import_module(name)


PRELOADED = {
    "dvc", "dvc_data", "dvc_objects", "dvc_task", "dvc_studio_client", "scmrepo", "pygit2",
    "dulwich", "git", "hydra", "omegaconf", "celery", "kombu", "networkx", "voluptuous",
    "ruamel", "fsspec", "diskcache", "antlr4",
}  # fmt: skip

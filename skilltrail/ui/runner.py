"""`dvc` as a child process of the live page: started, stopped, its last lines kept.

The child has a session of its own, so that a stop reaches the stage that it runs: a SIGINT, as
Ctrl-C at a terminal, and a SIGTERM if one asks again. Stages keep every finished call on
either; DVC puts HEAD back on the first alone. The child outlives this server, and a server
started later finds it by what is written in `.skilltrail/ui.json`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from skilltrail.core.canon import loaded
from skilltrail.core.errors import UsageError
from skilltrail.core.files import write_atomic, writing
from skilltrail.store.owner import Owner, process_of

CHILD = Path(__file__).with_name("child.py")
LINES, TAIL_CHARS, MOST_READ_BYTES = 30, 16_000, 1_000_000
STAGE = re.compile(r"^Running stage '([^']+)'", re.MULTILINE)


class Started(NamedTuple):
    """The last command that was started, and its process."""

    command: list[str]
    owner: Owner


class Runner:
    """Starts and stops one `dvc` command at a time in `root`."""

    def __init__(self, root: Path, state: Path) -> None:
        self._root = root
        self._output, self._mark = state / "ui.log", state / "ui.json"
        self._lock = state / "ui.lock"
        self._child: subprocess.Popen[bytes] | None = None
        self._asked: Owner | None = None  # to stop

    def start(self, arguments: Sequence[str]) -> None:
        """Run `dvc` with `arguments`.

        Raises:
            UsageError: a command that was started here is still on.
            SkilltrailError: the system refuses to write `.skilltrail`.
        """
        with self._sole():
            if self.owner() is not None:
                raise UsageError("Starting a run", "one is running", "Stop it first, or wait")
            self._start(arguments)

    @contextmanager
    def _sole(self) -> Iterator[None]:
        """Let one request at a time look and start, whatever server it comes to."""
        with writing(self._lock):
            self._lock.parent.mkdir(parents=True, exist_ok=True)
            lock = self._lock.open("wb")
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _start(self, arguments: Sequence[str]) -> None:
        # An inherited DVC_ROOT would send DVC to another repository.
        environ = {k: v for k, v in os.environ.items() if k not in ("DVC_ROOT", "DVC_EXP_NAME")}
        with self._output.open("wb") as output:
            self._child = subprocess.Popen(
                [sys.executable, str(CHILD), *arguments],
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environ | {"NO_COLOR": "1"},
            )
        owner = process_of(self._child.pid).to_json()
        record = {"command": ["dvc", *arguments], "owner": owner}
        write_atomic(self._mark, json.dumps(record) + "\n")

    def stop(self) -> bool:
        """Ask the command that is on to stop, the second time more firmly.

        Returns False when none is on.
        """
        owner = self.owner()
        if owner is None:
            return False
        try:
            os.killpg(owner.pid, signal.SIGTERM if owner == self._asked else signal.SIGINT)
        except ProcessLookupError:
            return False
        self._asked = owner
        return True

    def owner(self) -> Owner | None:
        """Return the process of the command that is on, on this very host.

        A process id of another host, or of a container that is gone, says nothing here.
        """
        if self._child is not None and self._child.poll() is not None:
            return None
        last = self._last()
        if last is None or not last.owner.is_running:
            return None
        return last.owner

    def state(self) -> dict[str, Any]:
        """Return the last command, whether it is on, its exit code if known, its last lines.

        `stage` is the stage of the pipeline that it runs; `stopped` says that this server was
        asked to stop it.
        """
        last, running, text = self._last(), self.owner() is not None, self._said()
        stages = STAGE.findall(text) if running else []
        return {
            "running": running,
            "command": None if last is None else last.command,
            "exit": None if self._child is None else self._child.poll(),
            "stopped": last is not None and last.owner == self._asked,
            "stage": stages[-1] if stages else None,
            "lines": text[-TAIL_CHARS:].split("\n")[-LINES:],
        }

    def _last(self) -> Started | None:
        try:
            record = loaded(self._mark.read_bytes())
            return Started(list(map(str, record["command"])), Owner.from_json(record["owner"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _said(self) -> str:
        """Return the end of what the command wrote."""
        try:
            with self._output.open("rb") as output:
                output.seek(max(0, os.fstat(output.fileno()).st_size - MOST_READ_BYTES))
                said = output.read().decode("utf-8", "replace")
        except OSError:
            return ""
        return said.replace("\r", "\n")

"""`dvc` as a child process of the live page: started, stopped, its last lines kept.

The child has a session of its own, so that a stop reaches the stage that it runs: a SIGINT, as
Ctrl-C at a terminal, and a SIGTERM if one asks again. Stages keep every finished call on
either; DVC puts HEAD back on the first alone. The child outlives this server, and a server
started later finds it by what is written in `.skilltrail/ui.json`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from stages.core.errors import UsageError
from stages.core.files import write_atomic
from stages.store.owner import Owner

CHILD = Path(__file__).with_name("child.py")
LINES, TAIL_CHARS = 30, 16_000
STAGE = re.compile(r"^Running stage '([^']+)'", re.MULTILINE)


class Runner:
    """Starts and stops one `dvc` command at a time in `root`."""

    def __init__(self, root: Path, state: Path) -> None:
        self._root = root
        self._output, self._mark = state / "ui.log", state / "ui.json"
        self._child: subprocess.Popen[bytes] | None = None
        self._asked: Owner | None = None  # to stop

    def start(self, arguments: Sequence[str]) -> None:
        """Run `dvc` with `arguments`.

        Raises:
            UsageError: a command that was started here is still on.
        """
        if self.owner() is not None:
            raise UsageError("Starting a run", "one is on", "Stop it first, or wait")
        self._output.parent.mkdir(parents=True, exist_ok=True)
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
        started = psutil.Process(self._child.pid).create_time()
        record = {
            "command": ["dvc", *arguments],
            "owner": Owner(os.uname().nodename, self._child.pid, started).to_json(),
        }
        write_atomic(self._mark, json.dumps(record) + "\n")

    def stop(self) -> bool:
        """Ask the command that is on to stop, the second time more firmly.

        Returns False when none is on.
        """
        owner = self.owner()
        if owner is None:
            return False
        os.killpg(owner.pid, signal.SIGTERM if owner == self._asked else signal.SIGINT)
        self._asked = owner
        return True

    def owner(self) -> Owner | None:
        """Return the process of the command that is on."""
        if self._child is not None and self._child.poll() is not None:
            return None
        record = self._record()
        if record is None:
            return None
        owner = Owner.from_json(record["owner"])
        return None if owner.is_dead else owner

    def state(self) -> dict[str, Any]:
        """Return the last command, whether it is on, its exit code if known, its last lines.

        `stage` is the stage of the pipeline that it runs.
        """
        record, running, text = self._record(), self.owner() is not None, self._said()
        stages = STAGE.findall(text) if running else []
        return {
            "running": running,
            "command": None if record is None else record["command"],
            "exit": None if self._child is None else self._child.poll(),
            "stage": stages[-1] if stages else None,
            "lines": text[-TAIL_CHARS:].split("\n")[-LINES:],
        }

    def _record(self) -> dict[str, Any] | None:
        try:
            record: dict[str, Any] = json.loads(self._mark.read_bytes())
        except (OSError, ValueError):
            return None
        return record

    def _said(self) -> str:
        try:
            said = self._output.read_bytes().decode("utf-8", "replace")
        except OSError:
            return ""
        return said.replace("\r", "\n")

"""A child process for scorers that may never end: patterns of data files, foreign code, bulk.

Python cannot stop a pattern that runs: it holds the interpreter, so that neither a timeout nor
Ctrl-C gets through. One child serves all such calls in turn. It is held to a time of its own
processor, so that a busy machine changes no verdict, and to a longer one by the clock.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from skilltrail.core.errors import raised_at
from skilltrail.core.score import Outcome, Score
from skilltrail.envs.registry import environment_class

CPU_S, WALL_S = 5, 60
_HEAD = struct.Struct(">Q")


class TimeUp(Exception):
    """The call did not end in its time, or took the child with it."""


class Raised(Exception):
    """The hook raised: `str(error)` says what and where."""


class Guard:
    """The door to the child, which is started when first needed."""

    def __init__(self, cpu_s: int = CPU_S, wall_s: float = WALL_S) -> None:
        self._cpu_s, self._wall_s = cpu_s, wall_s
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def call(self, env: str, params: Any, hook: str, *args: Any) -> Any:
        """Return what a hook of an environment says: a score, or JSON.

        Raises:
            TimeUp: it took longer than allowed.
            Raised: it raised.
        """
        asked = pickle.dumps((params, hook, args))
        cpu_s = self._cpu_s + len(asked) // 10**6  # a second for each megabyte more
        request = pickle.dumps((cpu_s, os.getcwd(), env, asked))
        with self._lock:
            child = self._started()
            assert child.stdin is not None
            try:
                child.stdin.write(_HEAD.pack(len(request)) + request)
                child.stdin.flush()
                said = self._answer(child, time.monotonic() + self._wall_s)
            except (OSError, EOFError) as error:
                raise TimeUp(f"it did not end within {cpu_s} s") from error
            finally:
                if child.poll() is not None:
                    self._child = None
        if "raised" in said:
            raise Raised(said["raised"])
        if "score" in said:
            return Score(**{**said["score"], "outcome": Outcome(said["score"]["outcome"])})
        return said["value"]

    def stop(self) -> None:
        """End the child, and with it the call that it is at."""
        child = self._child
        if child is not None:
            child.kill()
            child.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self._child = subprocess.Popen(
                [sys.executable, "-c", "from skilltrail.envs.guard import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                start_new_session=True,  # Ctrl-C is ours to pass on
            )
        return self._child

    def _answer(self, child: subprocess.Popen[bytes], until: float) -> Mapping[str, Any]:
        head = self._read(child, _HEAD.size, until)
        (n_bytes,) = _HEAD.unpack(head)
        found: Mapping[str, Any] = json.loads(self._read(child, n_bytes, until))
        return found

    def _read(self, child: subprocess.Popen[bytes], n_bytes: int, until: float) -> bytes:
        assert child.stdout is not None
        found = b""
        while len(found) < n_bytes:
            left = max(0.0, until - time.monotonic())
            ready, _, _ = select.select([child.stdout], [], [], left)
            more = os.read(child.stdout.fileno(), n_bytes - len(found)) if ready else b""
            if not more:
                child.kill()
                child.wait()
                raise EOFError
            found += more
        return found


GUARD = Guard()
atexit.register(GUARD.stop)


def serve() -> None:
    """Answer calls until the pipe is closed; what a scorer prints goes nowhere."""
    asked, said = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while head := asked.read(_HEAD.size):
        answer = _answer(asked.read(*_HEAD.unpack(head))).encode()
        said.write(_HEAD.pack(len(answer)) + answer)
        said.flush()


def _answer(request: bytes) -> str:
    cpu_s, workspace, name, asked = pickle.loads(request)
    _limit(cpu_s)
    try:
        os.chdir(workspace)
        environment = environment_class(name)  # its module is known now: params are of it
        params, hook, args = pickle.loads(asked)
        found = getattr(environment(params), hook)(*args)
        kind, value = ("score", asdict(found)) if isinstance(found, Score) else ("value", found)
        return json.dumps({kind: value})
    except Exception as error:  # noqa: BLE001 (foreign code: whatever it raises is told)
        return json.dumps({"raised": raised_at(error)})


def _limit(cpu_s: int) -> None:
    """Let the kernel end this process after so much more of the processor."""
    try:
        import resource
    except ImportError:  # Windows: the clock alone
        return
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + cpu_s, hard))

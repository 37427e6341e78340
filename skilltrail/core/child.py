"""A child process for work that may never end, or may take long: patterns, foreign code, bulk.

Python cannot stop a pattern that runs: it holds the interpreter, so that neither a timeout nor
Ctrl-C gets through. One child serves all calls of a kind in turn. It is held to a time of its
own processor, so that a busy machine changes no verdict, and to a longer one by the clock while
it waits for something else than its turn.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import selectors
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")

CPU_S, WALL_S = 5, 60
_ASKED, _SAID = struct.Struct(">QQ"), struct.Struct(">?Q")


class TimeUp(Exception):
    """The call did not end in its time, or took the child with it."""


class Child:
    """The door to a child, which is started when first needed.

    Args:
        module: its function `answer` takes and returns bytes.
    """

    def __init__(self, module: str, cpu_s: int = CPU_S, wall_s: float = WALL_S) -> None:
        self._module, self._cpu_s, self._wall_s = module, cpu_s, wall_s
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        atexit.register(self.stop)

    def call(self, request: bytes) -> bytes:
        """Return what the module's `answer` says.

        Raises:
            TimeUp: it took longer than allowed, with a second for each megabyte more.
            RuntimeError: it raised.
        """
        cpu_s = self._cpu_s + len(request) // 10**6
        with self._lock:
            process = self._started()
            assert process.stdin is not None
            whole = False
            try:
                process.stdin.write(_ASKED.pack(cpu_s, len(request)) + request)
                process.stdin.flush()
                until = time.monotonic() + self._wall_s
                fine, n_bytes = _SAID.unpack(_read(process, _SAID.size, until))
                said = _read(process, n_bytes, until)
                whole = True
            except (OSError, EOFError) as error:
                raise TimeUp(f"it did not end within {cpu_s} s") from error
            finally:
                if not whole:  # its answer would be taken for the next one's
                    self.stop()
                if process.poll() is not None:
                    self._process = None
        if not fine:
            raise RuntimeError(said.decode("utf-8", "replace"))
        return said

    def stop(self) -> None:
        """End the child, and with it the call that it is at."""
        process = self._process
        if process is not None:
            process.kill()
            process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            code = f"from skilltrail.core.child import serve; serve({self._module!r})"
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                start_new_session=True,  # Ctrl-C is ours to pass on
            )
        return self._process


async def off_the_loop(stop: Callable[[], None], work: Callable[..., T], *args: Any) -> T:
    """Return what `work`, which asks a child, says, while the event loop goes on.

    To cancel it is to `stop` the child: a thread that waits for one cannot be ended otherwise.
    """
    try:
        return await asyncio.to_thread(work, *args)
    except asyncio.CancelledError:
        stop()
        raise


def _read(process: subprocess.Popen[bytes], n_bytes: int, until: float) -> bytes:
    assert process.stdout is not None
    found = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while len(found) < n_bytes:
            ready = selector.select(max(0.0, until - time.monotonic()))
            # The kernel ends it, once it had its time.
            if not ready and wants_turn(process.pid):
                until = time.monotonic() + 1
                continue
            more = os.read(process.stdout.fileno(), n_bytes - len(found)) if ready else b""
            if not more:
                raise EOFError
            found += more
    return bytes(found)


def wants_turn(pid: int) -> bool:
    """Return whether a process is at work, or would be if the machine had room for it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] in "RD"
    except (OSError, IndexError):
        return False


def serve(module: str) -> None:
    """Answer calls until the pipe is closed; what the work prints goes nowhere."""
    asked, told = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    answer = import_module(module).answer
    while head := asked.read(_ASKED.size):
        cpu_s, n_bytes = _ASKED.unpack(head)
        request = asked.read(n_bytes)
        _limit(cpu_s)
        try:
            fine, said = True, answer(request)
        except Exception:  # noqa: BLE001 (told to who asked)
            fine, said = False, traceback.format_exc().encode("utf-8", "replace")
        told.write(_SAID.pack(fine, len(said)) + said)
        told.flush()


def _limit(cpu_s: int) -> None:
    """Let the kernel end this process after so much more of the processor."""
    try:
        import resource
    except ImportError:  # Windows: the clock alone
        return
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + cpu_s, hard))

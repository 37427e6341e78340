"""One process group under a wall clock and a memory watch, its output read within bounds.

Whatever happens (end, limit, cancellation), the whole group is killed before this returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from skilltrail.sandbox.protocol import Limits, SandboxError

_CHUNK = 65_536
_LOOK_S = 0.1  # between two looks at the memory in use
_GRACE_S = 5.0  # for pipes to close after the kill
_INODE_BYTES = 1200  # the kernel's, with a long name
_SOCKET_BYTES = 10 * 2**20  # the most that Linux's defaults let one hold, both ways
_HAS_PIDFD = hasattr(os, "pidfd_open")  # Linux
_PR_SET_THP_DISABLE, _PR_GET_THP_DISABLE = 41, 42
_starting = threading.Lock()


@dataclass(frozen=True)
class Ended:
    """How a process ended; `channel` is what it wrote to its standard input.

    `code` is negative after a signal; None when the process was ended from outside.
    """

    ending: str
    code: int | None
    stdout: str
    stderr: str
    channel: bytes = b""


async def run_process(
    argv: Sequence[str],
    limits: Limits,
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    pass_fds: Sequence[int] = (),
    channel_bytes: int | None = None,
    places: Sequence[str] = (),
    is_over: Callable[[], bool] = lambda: False,
) -> Ended:
    """Run `argv` in a process group of its own.

    Args:
        places: folders in memory, as the processes see them, whose files count as theirs.
        is_over: says that the memory is used up, where somebody else counts it too.
        channel_bytes: give the process a pipe as standard input to *write* to, and read at
            most so many bytes from it. None = it has no standard input.

    Raises:
        SandboxError: the program cannot be started.
    """
    reading, writing = (None, None) if channel_bytes is None else os.pipe()
    try:
        # Started from this very thread: bubblewrap dies with the thread that started it.
        with _small_pages():
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL if writing is None else writing,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(env),
                cwd=cwd,
                pass_fds=tuple(pass_fds),
                start_new_session=True,
            )
    except OSError as error:
        if reading is not None:
            os.close(reading)
        raise SandboxError(
            f"{argv[0]} cannot be started", error.strerror or str(error)
        ) from error
    finally:
        if writing is not None:
            os.close(writing)
    channel = None if reading is None else os.fdopen(reading, "rb", buffering=0)
    watch = _until_over(process.pid, limits.memory_mb * 2**20, places, is_over)
    return await _followed(process, limits, watch, channel, channel_bytes or 0)


@contextlib.contextmanager
def _small_pages() -> Iterator[None]:
    """Let what is started in the body have no huge pages.

    Of a huge page that a process gives back but for a corner, the kernel keeps the whole, and
    counts the corner as the process's. The setting is inherited over fork and exec.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)  # Linux
    with _starting:
        is_off = prctl is None or prctl(_PR_GET_THP_DISABLE, 0, 0, 0, 0) != 0
        if is_off or prctl is None:
            yield
            return
        prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)
        try:
            yield
        finally:
            prctl(_PR_SET_THP_DISABLE, 0, 0, 0, 0)


async def _followed(
    process: subprocess.Popen[bytes],
    limits: Limits,
    watch: Coroutine[Any, Any, None],
    channel: IO[bytes] | None,
    channel_bytes: int,
) -> Ended:
    keep = 4 * limits.output_chars
    async with AsyncExitStack() as stack:
        stack.callback(_kill_group, process)
        pipes = [(process.stdout, keep), (process.stderr, keep), (channel, channel_bytes + 1)]
        streams = [
            (await stack.enter_async_context(_reader(pipe)), most)
            for pipe, most in pipes
            if pipe is not None
        ]
        reads = asyncio.gather(*(_read(stream, most) for stream, most in streams))
        ending = await _ending(process, limits.wall_s, watch)
        # Children that were left behind hold the pipes open, so they go first.
        _kill_group(process)
        try:
            out, err, *sent = await asyncio.wait_for(reads, _GRACE_S)
        except asyncio.TimeoutError:
            return Ended(ending, None, "", "")
    if sent and len(sent[0]) > channel_bytes and ending == "finished":
        ending = "out_of_space"
    finished = ending == "finished"
    return Ended(
        ending,
        process.returncode if finished else None,
        _text(out, limits.output_chars),
        _text(err, limits.output_chars),
        sent[0] if sent and finished else b"",
    )


async def _ending(
    process: subprocess.Popen[bytes], wall_s: float, watch: Coroutine[Any, Any, None]
) -> str:
    """Wait for the end of the process or for a limit, and say which it was."""
    gone = asyncio.create_task(_gone(process))
    over = asyncio.create_task(watch)
    try:
        done, _ = await asyncio.wait(
            {gone, over}, timeout=wall_s, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        gone.cancel()
        over.cancel()
    if gone in done:
        return "finished"
    return "out_of_memory" if over in done else "out_of_time"


async def _gone(process: subprocess.Popen[bytes]) -> None:
    """Return when the process has ended, whoever still holds its pipes."""
    if not _HAS_PIDFD:
        while process.poll() is None:
            await asyncio.sleep(0.01)
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    descriptor = os.pidfd_open(process.pid)
    try:
        loop.add_reader(descriptor, ended.set)
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def _read(stream: asyncio.StreamReader, keep: int) -> bytes:
    """Return the first `keep` bytes; the rest is read too, so that the writer never waits."""
    kept = bytearray()
    while chunk := await stream.read(_CHUNK):
        kept += chunk[: max(0, keep - len(kept))]
    return bytes(kept)


@contextlib.asynccontextmanager
async def _reader(pipe: IO[bytes]) -> AsyncIterator[asyncio.StreamReader]:
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), pipe
    )
    try:
        yield stream
    finally:
        transport.close()


async def _until_over(
    pid: int, most_bytes: int, places: Sequence[str], is_over: Callable[[], bool]
) -> None:
    """Return when the processes below `pid` hold more than `most_bytes` together."""
    used = 0
    while used <= most_bytes and not is_over():
        await asyncio.sleep(_LOOK_S)
        with contextlib.suppress(psutil.Error):
            below = psutil.Process(pid).children(recursive=True)
            used = sum(_held_bytes(process, places) for process in below)
            used += max((_filed_bytes(process.pid, places) for process in below), default=0)


def _held_bytes(process: psutil.Process, places: Sequence[str]) -> int:
    """Return the memory of one process and the most that its sockets may hold.

    Pages of files are left out where `places` count; elsewhere nothing else counts them.
    """
    try:
        memory = process.memory_info()
        sockets = sum(
            os.readlink(file.path).startswith("socket:")
            for file in os.scandir(f"/proc/{process.pid}/fd")
        )
    except (psutil.Error, OSError, AttributeError):
        return 0
    held: int = memory.rss - (memory.shared if places else 0)
    return held + sockets * _SOCKET_BYTES


def _filed_bytes(pid: int, places: Sequence[str]) -> int:
    """Return what files in memory hold, as process `pid` sees them: contents and inodes."""
    total = 0
    for place in places:
        with contextlib.suppress(OSError):
            about = os.statvfs(f"/proc/{pid}/root{place}")
            total += (about.f_blocks - about.f_bfree) * about.f_frsize
            total += (about.f_files - about.f_ffree) * _INODE_BYTES
    return total


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill every process of the group that `process` leads, and take its exit code."""
    if _HAS_PIDFD and process.returncode is not None:
        return  # done before; the number may be somebody else's by now
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _text(raw: bytes, chars: int) -> str:
    return raw.decode("utf-8", "replace")[:chars]

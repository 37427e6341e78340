"""One child process: no shell, own process group, ended as a whole however the call ends."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import psutil

from skilltrail.models.errors import ModelConfigError, Transient

# What any program needs to run and find its login; everything else must be named.
USUAL_VARIABLES = (
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TERM", "XDG_CONFIG_HOME",
    "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "SYSTEMROOT", "USERPROFILE", "APPDATA",
)  # fmt: skip
_MOST_OUTPUT_BYTES = 64 * 1024 * 1024
_LOOK_EVERY_S = 0.5


@dataclass(frozen=True)
class Invocation:
    """What is started. `stdin` is the whole prompt; `env` the whole environment."""

    argv: tuple[str, ...]
    stdin: str
    cwd: Path
    env: Mapping[str, str]


@dataclass(frozen=True)
class Finished:
    code: int
    stdout: str
    stderr: str


def allowed(environ: Mapping[str, str], names: Iterable[str] = ()) -> dict[str, str]:
    """Return the usual variables and those of `names`, where they are set."""
    return {name: environ[name] for name in (*USUAL_VARIABLES, *names) if name in environ}


async def run(command: Invocation, asked: str, remedy: str) -> Finished:
    """Run a command to its end. Cancelling it ends its whole process group.

    The streams are files, not pipes, so a child that outlives the program holds nothing up.

    Raises:
        ModelConfigError: there is no such program.
        Transient: it could not be started, or wrote without end.
    """
    with ExitStack() as files:
        stdin, stdout, stderr = (files.enter_context(TemporaryFile()) for _ in range(3))
        stdin.write(command.stdin.encode("utf-8", "replace"))
        stdin.seek(0)
        try:
            process = await asyncio.create_subprocess_exec(
                *command.argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=command.cwd,
                env=dict(command.env),
                start_new_session=True,
            )
        except (FileNotFoundError, PermissionError) as error:
            found = f"cannot start {command.argv[0]!r}"
            raise ModelConfigError(asked, found, remedy) from error
        except (OSError, ValueError) as error:
            raise Transient(asked, f"cannot start the program: {error}") from error
        try:
            code = await _until_exit(process, stdout, stderr)
        finally:
            end_group(process.pid, alive=process.returncode is None)
            await process.wait()
        if code is None:
            flood = f"more than {_MOST_OUTPUT_BYTES} bytes of output"
            raise Transient(asked, flood, billed=True)
        return Finished(code, _text(stdout), _text(stderr))


async def _until_exit(process: asyncio.subprocess.Process, *outputs: IO[bytes]) -> int | None:
    """Return the exit code, or None as soon as the output is beyond all bounds."""
    ended = asyncio.ensure_future(process.wait())
    try:
        while not (await asyncio.wait({ended}, timeout=_LOOK_EVERY_S))[0]:
            if any(os.fstat(o.fileno()).st_size > _MOST_OUTPUT_BYTES for o in outputs):
                return None
        return ended.result()
    finally:
        ended.cancel()


def _text(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read(_MOST_OUTPUT_BYTES).decode("utf-8", "replace")


def end_group(pid: int, *, alive: bool) -> None:
    """Kill a process, its group and all its descendants; those already gone are no matter.

    `alive`: the process itself has not ended yet. Once it has, its id is not asked for
    descendants: it could be another's by now.
    """
    descendants: list[psutil.Process] = []
    if alive:
        with suppress(psutil.NoSuchProcess):
            descendants = psutil.Process(pid).children(recursive=True)
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    for process in descendants:
        with suppress(psutil.NoSuchProcess):
            process.kill()

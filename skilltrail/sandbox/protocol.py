"""One job of untrusted code: files go in as bytes, files come out as bytes, within limits.

Nothing of the host is writable to a job, so what it leaves behind is only what `keep` names,
and that is untrusted data of bounded size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol

from skilltrail.core.errors import SkilltrailError, UsageError

# How a job ended. Only `finished` has an exit code of the program's own.


class SandboxError(SkilltrailError):
    """The sandbox itself cannot work here; never the fault of the code inside."""


@dataclass(frozen=True)
class Limits:
    """What one job may use.

    Attributes:
        wall_s: seconds from start to end, everything included.
        cpu_s: processor seconds of each process.
        memory_mb: address space of each process, and memory of all together, their files in
            memory included.
        processes: processes and threads at one time.
        file_mb: size of one file.
        disk_mb: the whole work folder.
        output_chars: of stdout and stderr, each; the rest is read and thrown away.
    """

    wall_s: float = 60.0
    cpu_s: int = 60
    memory_mb: int = 1024
    processes: int = 24
    file_mb: int = 20
    disk_mb: int = 64
    output_chars: int = 20_000


@dataclass(frozen=True)
class Job:
    """What is to be run.

    Attributes:
        argv: program and arguments, taken as they stand; no shell reads them.
        files: relative name -> content, put into the empty work folder before the start.
        keep: the file to bring back, `.` for all files, None for none.
        shown: host folders that the job may read at their own path (programs, fonts).
        is_program: a program of the host rather than a model's code; it may read /proc, has
            the usual devices, and may listen on a socket of its own.

    Raises:
        UsageError: a file name that leads out of the work folder.
    """

    argv: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    keep: str | None = None
    limits: Limits = Limits()
    shown: tuple[Path, ...] = ()
    is_program: bool = False

    def __post_init__(self) -> None:
        for name in (*self.files, *([] if self.keep in (None, ".") else [str(self.keep)])):
            if not is_plain_name(name):
                raise UsageError(
                    "a file of a sandbox job", repr(name), "Give a relative name without '..'"
                )


@dataclass(frozen=True)
class Ran:
    """What a job did. `exit_code` is 128 + n after signal n, None when it was ended."""

    ending: str
    exit_code: int | None
    stdout: str
    stderr: str
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.ending == "finished" and self.exit_code == 0


class Sandbox(Protocol):
    """A place to run jobs."""

    @property
    def name(self) -> str:
        """`bubblewrap` or `none`: recorded with every result."""

    @property
    def interpreter(self) -> str:
        """The Python interpreter's path as a job sees it; openpyxl can be imported."""

    async def run(self, job: Job) -> Ran:
        """Run a job to its end or its limits; afterwards none of its processes is left.

        Raises:
            SandboxError: the sandbox could not be set up.
        """


def is_plain_name(name: str) -> bool:
    """Return whether `name` stays below the folder it is joined to, on any platform."""
    parts = PurePosixPath(name).parts
    return (
        bool(parts)
        and not set(name) & set("\\\0:")
        and not name.startswith("/")
        and ".." not in parts
        and len(name.encode("utf-8", "replace")) <= 200
    )

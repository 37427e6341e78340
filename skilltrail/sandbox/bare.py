"""Sandbox `none`: a child process in an empty folder, for people who chose to do without.

What holds: no shell, an allow-list of environment variables, an own process group that is
killed at the end or at the time limit, and the kernel's limits where `prlimit` is installed.
What does not: the code runs as you, and reads, writes and sends whatever you can.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from skilltrail.sandbox import python
from skilltrail.sandbox.process import run_process
from skilltrail.sandbox.protocol import Job, Ran

_PLACE = "/box"


class Bare:
    """No isolation. Its name is recorded with every result."""

    name = "none"

    @property
    def interpreter(self) -> str:
        return sys.executable

    async def run(self, job: Job) -> Ran:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            work = Path(name).resolve()
            for relative, content in job.files.items():
                path = work / relative
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            ended = await run_process(
                [*_limited(job), *job.argv], job.limits, env=_environment(work), cwd=work
            )
            kept = _kept(work, job)
        code = ended.code
        if code is not None and code < 0:
            code = 128 - code
        # The folder's name is chance; what a model is told must not depend on it.
        out, err = (text.replace(name, _PLACE) for text in (ended.stdout, ended.stderr))
        return Ran(ended.ending, code, out, err, kept if code is not None else {})


def _environment(work: Path) -> dict[str, str]:
    here = {"PATH": "/usr/bin:/bin", "HOME": str(work), "TMPDIR": str(work)}
    return here | python.SETTINGS


def _limited(job: Job) -> list[str]:
    if shutil.which("prlimit") is None:
        return []
    limits = job.limits
    return [
        "prlimit",
        f"--as={limits.memory_mb * 2**20}",
        f"--cpu={limits.cpu_s}:{limits.cpu_s + 1}",
        f"--fsize={limits.file_mb * 2**20}",
        *("--core=0", "--"),
    ]


def _kept(work: Path, job: Job) -> dict[str, bytes]:
    """Return the plain files that the job asked to keep; links are never followed."""
    if job.keep is None:
        return {}
    named = sorted(work.rglob("*")) if job.keep == "." else [work / job.keep]
    found: dict[str, bytes] = {}
    left = job.limits.disk_mb * 2**20
    for path in named:
        if not path.is_file() or path.resolve() != path or path.stat().st_size > left:
            continue
        found[path.relative_to(work).as_posix()] = path.read_bytes()
        left -= path.stat().st_size
    return found

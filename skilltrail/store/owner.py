"""Which process signed something, and what can be known about it here.

A process is named by what no clock moves: the kernel's boot, its pid namespace, its id there
and the ticks after the boot at which it started. Source: proc(5), `stat` field 22, `boot_id`.
Whether it still *holds* something is asked of the kernel's locks, which answer for other
containers on this kernel too.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil


@dataclass(frozen=True)
class Owner:
    """One process. Older versions signed without `boot`, `namespace` and `ticks`."""

    host: str
    pid: int
    boot: str = ""
    namespace: str = ""
    ticks: int = -1

    @property
    def is_elsewhere(self) -> bool:
        """True where its kernel may be another one, so that ours cannot answer for it.

        Another boot under this host's name is this host before it was started again.
        """
        return self.host != platform.node() and self.boot != boot()

    @property
    def is_running(self) -> bool:
        """True only when it is provably the process of that id here, and not a zombie."""
        here = (self.boot, self.namespace) == (boot(), _namespace())
        return here and self.ticks == _started(self.pid) != -1

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Owner:
        """Return the process that `data` names.

        Raises:
            KeyError, TypeError, ValueError: it names none.
        """
        pid = int(data["pid"])
        if pid <= 0:
            raise ValueError(f"no process has the id {pid}")
        boot, namespace = str(data.get("boot", "")), str(data.get("namespace", ""))
        return Owner(str(data["host"]), pid, boot, namespace, int(data.get("ticks", -1)))


def process_of(pid: int) -> Owner:
    return Owner(platform.node(), pid, boot(), _namespace(), _started(pid))


def this_process() -> Owner:
    return process_of(os.getpid())


@functools.cache
def boot() -> str:
    """Return what names this start of this kernel."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:  # not Linux
        return platform.node()


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> int:
    """Return the ticks at which a process started; -1 where there is none, or a zombie."""
    if not Path("/proc/self/stat").exists():  # not Linux
        with contextlib.suppress(psutil.Error):
            return round(psutil.Process(pid).create_time() * 100)
        return -1
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return -1
    state, *fields = text.rpartition(")")[2].split()
    return -1 if state in "ZX" else int(fields[18])

"""Who holds a lock or a claim, and whether that process is provably dead.

A process is named by host, pid and start time. It is dead when this very host has no such pid,
has it as a zombie, or gave the pid to a process that started at another time. A process of
another host is never called dead: nothing here can prove it.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psutil

# Start times are read through the boot time, which shifts when the clock is set.
_START_TOLERANCE_S = 2.0


@dataclass(frozen=True)
class Owner:
    """One process. `started` is seconds since the epoch."""

    host: str
    pid: int
    started: float

    @property
    def is_foreign(self) -> bool:
        return self.host != platform.node()

    @property
    def is_dead(self) -> bool:
        """True only when the process is provably gone."""
        if self.is_foreign:
            return False
        try:
            process = psutil.Process(self.pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
            return abs(process.create_time() - self.started) > _START_TOLERANCE_S
        except psutil.NoSuchProcess:
            return True
        except psutil.AccessDenied:
            return False

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    def to_json(self) -> dict[str, Any]:
        return {"host": self.host, "pid": self.pid, "started": self.started}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Owner:
        """Return the process that `data` names.

        Raises:
            KeyError, TypeError, ValueError: it names none.
        """
        pid = int(data["pid"])
        if pid <= 0:
            raise ValueError(f"no process has the id {pid}")
        return Owner(str(data["host"]), pid, float(data["started"]))


def this_process() -> Owner:
    return Owner(platform.node(), os.getpid(), psutil.Process().create_time())

"""Hostile programs in the sandbox, by root and by nobody: none gets out or holds too much."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
import pytest
from hostile import GETTING, HOLDING, PRELUDE

from skilltrail.sandbox.choose import open_sandbox, why_not
from skilltrail.sandbox.protocol import Job, Limits, Ran

Figure = Callable[[str, int, int], None]
ROOT = Path(__file__).resolve().parents[2]
LIMIT_MB = 512
BURST_MB = 400  # within a tenth of a second, and what others take meanwhile
LIMITS = Limits(wall_s=30, memory_mb=LIMIT_MB, disk_mb=16)
FAST = ("user_namespace", "mount", "vsock", "direct_urls", "proc", "passwd", "network",
        "host_reads", "huge_pages", "access_list")  # fmt: skip

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"no bubblewrap: {why_not()}")

# Another user has neither root's namespaces nor a control group.
AS_NOBODY = """
import asyncio, json, sys
from skilltrail.sandbox.choose import open_sandbox
from skilltrail.sandbox.protocol import Job, Limits
sandbox = open_sandbox("bubblewrap")
code, limits = json.load(sys.stdin)
files = {"solution.py": code.encode()}
job = Job((sandbox.interpreter, "solution.py"), files, ".", Limits(**limits))
done = asyncio.run(sandbox.run(job))
print(json.dumps([done.ending, done.exit_code, done.stdout, done.stderr]))
"""


def run(code: str, user: str = "ourselves") -> Ran:
    if user == "ourselves":
        sandbox = open_sandbox("bubblewrap")
        argv = (sandbox.interpreter, "solution.py")
        return asyncio.run(sandbox.run(Job(argv, {"solution.py": code.encode()}, ".", LIMITS)))
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root becomes nobody")
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    asked = json.dumps([code, vars(LIMITS)])
    done = subprocess.run(
        [*command, "-c", AS_NOBODY], input=asked, env=env, capture_output=True, text=True,
        encoding="utf-8", check=False,
    )  # fmt: skip
    if "kernel" in done.stderr or "PermissionError" in done.stderr:
        pytest.skip(f"nobody cannot use it here: {done.stderr.splitlines()[-1]}")
    return Ran(*json.loads(done.stdout))


def escaped(name: str, user: str) -> list[str]:
    """Return what the program got that it should not have."""
    lines = [*PRELUDE.splitlines(), "out = False", "try:"]
    lines += [f"    {line}" for line in GETTING[name].strip().splitlines()]
    lines += ["except Exception as error: out = False", "print('escaped', out)"]
    done = run("\n".join(lines), user)
    held = done.stdout.endswith(("escaped False\n", "escaped []\n", "escaped 0\n"))
    killed = done.exit_code is not None and done.exit_code > 128  # by the call filter
    return [] if held or killed else [name, str(done)]


def held_mb(name: str, user: str) -> float:
    """Return the megabytes that the program held: by its own word or by the machine's."""
    lines = [*PRELUDE.splitlines(), "try:"]
    lines += [f"    {line}" for line in HOLDING[name].strip().splitlines()]
    lines += ["except BaseException as error: print(error)", "settle(); print('held', got)"]
    with Lowest() as lowest:
        done = run("\n".join(lines), user)
    said = re.findall(r"^held (\d+)", done.stdout, re.MULTILINE)
    own = float(said[-1]) if said and done.ending == "finished" else 0.0
    return max(own, lowest.drop_mb)


class Lowest(threading.Thread):
    """Looks how much memory of the machine is left, while it is entered.

    Pages that can be given back at once (caches) count as left.
    """

    def __enter__(self) -> Lowest:
        self._before = self._least = psutil.virtual_memory().available
        self._over = threading.Event()
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.wait(0.02):
            self._least = min(self._least, psutil.virtual_memory().available)

    @property
    def drop_mb(self) -> float:
        return (self._before - self._least) / 2**20


@pytest.mark.parametrize("name", FAST)
def test_nothing_is_got(name: str) -> None:
    assert escaped(name, "ourselves") == []


@pytest.mark.attack
@pytest.mark.parametrize("user", ["ourselves", "nobody"])
@pytest.mark.parametrize("name", GETTING)
def test_sandbox_tries_held(name: str, user: str, figure: Figure) -> None:
    wrong = escaped(name, user)
    figure("sandbox tries held (getting out)", not wrong, 1)
    assert wrong == []


@pytest.mark.attack
@pytest.mark.parametrize("user", ["ourselves", "nobody"])
@pytest.mark.parametrize("name", HOLDING)
def test_memory_tries_held(name: str, user: str, figure: Figure) -> None:
    held = held_mb(name, user)
    if held > LIMIT_MB + BURST_MB:  # others use this machine as well
        held = min(held, held_mb(name, user))
    figure("sandbox tries held (filling memory)", held <= LIMIT_MB + BURST_MB, 1)
    assert held <= LIMIT_MB + BURST_MB


def at_rest(values: Mapping[str, str]) -> bool:
    """Return whether every program is Python."""
    return all(compile(PRELUDE + code, name, "exec") for name, code in values.items())


def test_the_hostile_programs_are_programs() -> None:
    assert at_rest(HOLDING)
    assert at_rest(GETTING)

"""Platforms that cannot be run here: what is Linux's alone is asked for nowhere else.

`python -m pytest tests/test_platforms.py -m slow` looks up wheels (network) and checks types as
macOS and other Pythons have them; minutes. The rest needs neither.
"""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
MACOS = "macosx_14_0_arm64"
# What the standard library has on Linux and not on macOS, as far as anybody might use it.
LINUX_ONLY = {
    "os": (
        "pidfd_open", "memfd_create", "sched_getaffinity", "sched_setaffinity", "eventfd",
        "posix_fadvise", "posix_fallocate", "copy_file_range", "setresuid", "getxattr",
        "splice", "O_TMPFILE", "O_DIRECT",
    ),
    "fcntl": ("F_OFD_SETLK", "F_OFD_SETLKW", "F_OFD_GETLK", "F_ADD_SEALS", "F_SETPIPE_SZ"),
    "resource": ("prlimit",),
    "select": ("epoll",),
    "signal": ("pthread_sigqueue", "sigtimedwait", "sigwaitinfo", "pidfd_send_signal"),
    "socket": ("SO_PEERCRED", "AF_NETLINK", "AF_VSOCK"),
    "time": ("CLOCK_BOOTTIME", "CLOCK_TAI"),
}  # fmt: skip
AS_MACOS = """
import importlib, pkgutil, sys
import psutil  # which has a part of its own there
for module, names in {gone!r}.items():
    loaded = importlib.import_module(module)
    for name in names:
        if hasattr(loaded, name):
            delattr(loaded, name)
"""
USES = """
import skilltrail
for found in pkgutil.walk_packages(skilltrail.__path__, "skilltrail."):
    if "inspect" in found.name:
        continue  # it asks which platform this is, and here it is Linux after all
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        if error.name.split(".")[0] in ("skilltrail", "stages"):
            raise  # anything else is an extra that is not installed here

from pathlib import Path
from skilltrail.cli.main import run
from skilltrail.sandbox.choose import open_sandbox
from skilltrail.sandbox.protocol import SandboxError
from skilltrail.store.facts import FactStore
from skilltrail.store.ops import Ops, read_ops

here = Path.cwd()
with FactStore.open(here) as store:
    print(store.get("none"))
Ops(here / "ops.jsonl").write("tried", there=True)
print([record["there"] for record in read_ops(here / "ops.jsonl")])
print([run([name, "--help"]) for name in ("init", "summary", "verify", "ui")])
open_sandbox("none")
"""


def run_as_macos(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, "-c", AS_MACOS.format(gone=LINUX_ONLY) + code],
        cwd=folder, env=env, capture_output=True, encoding="utf-8",
    )  # fmt: skip


def test_everything_loads_and_the_store_works_without_what_linux_alone_has(
    tmp_path: Path,
) -> None:
    done = run_as_macos(USES, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert (lines[0], lines[1], lines[-1]) == ("None", "[True]", "[0, 0, 0, 0]")


def test_the_sandbox_says_what_it_cannot_do_there(tmp_path: Path) -> None:
    code = """
import os
os.environ["PATH"] = "/nowhere"  # macOS has no bwrap
from skilltrail.sandbox.choose import open_sandbox
from skilltrail.sandbox.protocol import SandboxError
try:
    open_sandbox("bubblewrap")
except SandboxError as error:
    print(error)
"""
    done = run_as_macos(code, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "not installed: bwrap" in done.stdout
    assert "it needs Linux" in done.stdout
    assert "sandbox: none" in done.stdout


def test_the_package_asks_for_no_newer_python_than_it_says() -> None:
    """What 3.11 to 3.14 brought is caught by mypy (slow); a parse for 3.10 is quick."""
    import ast

    for path in sorted((ROOT / "skilltrail").rglob("*.py")):
        ast.parse(path.read_text("utf-8"), str(path), feature_version=(3, 10))


@pytest.mark.slow
@pytest.mark.parametrize("python", PYTHONS)
def test_types_hold_as_macos_has_the_standard_library(python: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--platform", "darwin", "--python-version",
         python, "--cache-dir", str(tmp_path), "skilltrail", "stages"],
        cwd=ROOT, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    found = [line for line in done.stdout.splitlines() if ": error:" in line]
    # The sandbox is Linux's, and says so where it is asked for.
    assert [line for line in found if not line.startswith("skilltrail/sandbox/")] == []
    assert "checked" in done.stdout or "Success" in done.stdout


def index_answers() -> bool:
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    told = subprocess.run(command, capture_output=True, encoding="utf-8").stdout.strip()
    url = told or os.environ.get("PIP_INDEX_URL") or "https://pypi.org/simple"
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/msgspec/", timeout=20):
            return True
    except (urllib.error.URLError, OSError, ValueError):
        return False


@pytest.mark.slow
@pytest.mark.parametrize("python", PYTHONS[1:])
def test_every_package_has_a_wheel_for_macos(python: str) -> None:
    """3.10 is looked up with `.ci/platforms` run by a Python 3.10."""
    env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    done = subprocess.run(
        ["bash", ".ci/platforms"], cwd=ROOT, capture_output=True, encoding="utf-8",
        env=env | {"PLATFORMS": MACOS, "PYTHONS": python},
    )  # fmt: skip
    if done.returncode != 0 and not index_answers():
        pytest.skip("the package index does not answer")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every package has a wheel" in done.stdout

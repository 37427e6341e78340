"""Which sandbox is used: the one asked for, or an error. There is no silent second choice."""

from __future__ import annotations

import subprocess
from functools import lru_cache
from pathlib import Path

from skilltrail.sandbox.bare import Bare
from skilltrail.sandbox.bubblewrap import Bubblewrap, missing_programs, shows
from skilltrail.sandbox.protocol import Sandbox, SandboxError

KINDS = ("bubblewrap", "none")

_PROBE = ("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true")
REMEDY = (
    "Install it (Debian, Ubuntu: `apt-get install bubblewrap`; it needs Linux and a kernel "
    "that lets it make namespaces), or set `sandbox: none` in the environment's params to run "
    "the model's code WITHOUT isolation: it may then read, change and send whatever you can"
)


def open_sandbox(kind: str, hidden: tuple[Path, ...] = ()) -> Sandbox:
    """Return the sandbox called `kind`.

    Args:
        hidden: folders that no job may see (answer keys).

    Raises:
        SandboxError: it does not work on this machine, or it would show a hidden folder.
    """
    if kind == "none":
        return Bare()
    fault = why_not()
    if fault is not None:
        raise SandboxError("model-written code needs the sandbox bubblewrap", fault, REMEDY)
    for folder in hidden:
        if shows(folder):
            raise SandboxError(
                f"the data folder {folder}",
                "it lies inside a folder that the sandbox shows to model-written code",
                "Move the data elsewhere",
            )
    return Bubblewrap()


@lru_cache(maxsize=1)
def why_not() -> str | None:
    """Return why bubblewrap cannot be used here, or None when it can. Asked once."""
    missing = missing_programs()
    if missing:
        return f"not installed: {', '.join(missing)}"
    try:
        done = subprocess.run(
            _PROBE, capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"its probe failed: {error}"
    return None if done.returncode == 0 else f"its probe failed: {done.stderr.strip()}"

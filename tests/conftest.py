"""What holds for every test: the same examples each time, no DVC around it, no network."""

from __future__ import annotations

import os
import sys
from typing import Any

from hypothesis import settings

# A busy machine must not fail a law, and a failure must come again. `--hypothesis-profile=search`
# looks for new examples.
settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("default")

# Tests may be started from a stage of another project.
for name in [name for name in os.environ if name.startswith("DVC_")]:
    del os.environ[name]

LOOPBACK = ("127.", "::1", "localhost", "0.0.0.0")


def refuse_other_hosts(event: str, args: tuple[Any, ...]) -> None:
    """Let no test reach beyond this machine."""
    if event == "socket.connect" and isinstance(args[1], tuple):
        host = str(args[1][0])
        if host and not host.startswith(LOOPBACK):
            raise PermissionError(f"a test tried to reach {host}; only loopback is allowed")


sys.addaudithook(refuse_other_hosts)

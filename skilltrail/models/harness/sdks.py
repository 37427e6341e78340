"""Agents driven by their Python SDKs (`exec.use_sdk: true`).

Packages `openai-codex` and `claude-agent-sdk`; each brings its own copy of the program. The SDK
runs in a process of its own (`sdk_driver`), whose output reads like the command line's: the
settings, the folder, the time limit and the reply are the same either way.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from skilltrail.models.client.classify import Endpoint
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.harness.folder import WorkFolder
from skilltrail.models.harness.process import Command

_DRIVER = Path(__file__).with_name("sdk_driver.py")
_PACKAGES = {
    "codex": ("openai_codex", "openai-codex"),
    "claude": ("claude_agent_sdk", "claude-agent-sdk"),
}


def require_sdk(agent: str, endpoint: Endpoint) -> None:
    """Refuse to start without the SDK of `agent` (codex or claude).

    Raises:
        ModelConfigError: its package is missing.
    """
    module, package = _PACKAGES[agent]
    if find_spec(module) is None:
        raise ModelConfigError(
            f"{endpoint.role}.exec.use_sdk",
            f"the package {package} is missing",
            f"Install it (pip install {package}), or set use_sdk: false",
        )


def sdk_command(
    agent: str, asked: Mapping[str, Any], folder: WorkFolder, env: Mapping[str, str]
) -> Command:
    """Return the command that drives `agent`; settings and prompt go to its standard input."""
    argv = (sys.executable, str(_DRIVER), agent)
    stdin = json.dumps({**asked, "prompt": folder.task})
    return Command(argv, stdin, folder.work, env)

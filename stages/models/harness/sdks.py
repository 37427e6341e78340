"""The same two agents driven by their Python SDKs (`exec.use_sdk: true`).

Packages `openai-codex` and `claude-agent-sdk`; each brings its own copy of the program. The
settings, the folder and the reply are the same as on the command line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from stages.core.model_options import RoleOptions
from stages.models.classify import Endpoint
from stages.models.errors import ModelConfigError
from stages.models.harness.claude import claude_env, read_claude
from stages.models.harness.folder import work_folder
from stages.models.harness.process import Finished
from stages.models.protocol import Decoding, Reply, Request


def _package(endpoint: Endpoint, module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ModelConfigError(
            f"{endpoint.role}.exec.use_sdk",
            f"the package {package} is missing",
            f"Install it (pip install {package}), or set use_sdk: false",
        ) from error


class ClaudeSdkWire:
    """One query by `claude_agent_sdk`."""

    def __init__(
        self, options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]
    ) -> None:
        self._options, self._endpoint = options, endpoint
        self._sdk = _package(endpoint, "claude_agent_sdk", "claude-agent-sdk")
        self._env = claude_env(options, endpoint, environ)

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        with work_folder(request) as folder:
            harness = self._options.exec
            settings = self._sdk.ClaudeAgentOptions(
                model=self._options.model,
                system_prompt=request.system,
                tools=list(harness.tools),
                allowed_tools=list(harness.tools),
                setting_sources=[],
                max_turns=harness.max_turns,
                cwd=str(folder.work),
                env=self._env,
            )
            lines = [
                json.dumps(_event(message), default=str)
                async for message in self._sdk.query(prompt=folder.task, options=settings)
            ]
            return read_claude(self._endpoint, Finished(0, "\n".join(lines), ""), decoding)

    async def close(self) -> None:
        """Nothing outlives a call."""


def _event(message: Any) -> dict[str, Any]:
    """Return an SDK message as the event that the command line prints for it."""
    kind = type(message).__name__
    if kind == "ResultMessage":
        return {"type": "result", **vars(message)}
    if kind in ("AssistantMessage", "UserMessage"):
        blocks = [_block(block) for block in getattr(message, "content", ())]
        content = {"content": blocks, "model": getattr(message, "model", "")}
        return {"type": kind.removesuffix("Message").lower(), "message": content}
    return {"type": "system"}


def _block(block: Any) -> dict[str, Any]:
    kinds = {"ToolUseBlock": "tool_use", "ToolResultBlock": "tool_result", "TextBlock": "text"}
    return {"type": kinds.get(type(block).__name__, "other"), **getattr(block, "__dict__", {})}

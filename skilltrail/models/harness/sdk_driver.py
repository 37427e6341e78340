"""Drive an agent by its Python SDK, as a program: `sdk_driver.py codex|claude`.

Standard input is one JSON object of settings and prompt; standard output has the events that
the agent's own command line prints. As a program of its own it gets an environment of named
variables, and its process group can be ended, whatever the SDK starts. It is started by its
path: nothing of the project is imported here.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

# The folder of this file holds modules of the project, whose names are no top-level ones.
sys.path.pop(0)


def emit(event: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(event, default=str) + "\n")
    sys.stdout.flush()


async def codex(asked: Mapping[str, Any]) -> None:
    """Run one turn by `openai_codex`; see `codex exec --json` for the events."""
    sdk: Any = import_module("openai_codex")

    config = sdk.CodexConfig(
        codex_bin=asked["path"], config_overrides=tuple(asked["settings"]), cwd=asked["cwd"]
    )
    said = [sdk.TextInput(asked["prompt"]), *map(sdk.LocalImageInput, asked["images"])]
    sandbox = asked["sandbox"].replace("danger-", "")
    try:
        async with sdk.AsyncCodex(config) as program:
            thread = await program.thread_start(
                approval_mode=sdk.ApprovalMode.deny_all,
                cwd=asked["cwd"],
                ephemeral=True,
                model=asked["model"],
                sandbox=sdk.Sandbox(sandbox),
            )
            turn = await thread.run(said, output_schema=asked["schema"])
    except (sdk.CodexError, RuntimeError) as error:
        emit({"type": "turn.failed", "error": {"message": str(error)}})
        return
    for item in turn.items:
        told = item.model_dump(mode="json")
        kind = re.sub(r"(?<!^)([A-Z])", r"_\1", told["type"]).lower()
        if kind != "user_message":
            emit({"type": "item.completed", "item": {**told, "type": kind}})
    if turn.error is not None:
        emit({"type": "turn.failed", "error": {"message": turn.error.message}})
        return
    usage = {} if turn.usage is None else turn.usage.total.model_dump(mode="json")
    emit({"type": "turn.completed", "usage": usage})


async def claude(asked: Mapping[str, Any]) -> None:
    """Run one query by `claude_agent_sdk`; see `--output-format stream-json` for the events."""
    sdk: Any = import_module("claude_agent_sdk")

    options = sdk.ClaudeAgentOptions(**asked["options"])
    async for message in sdk.query(prompt=asked["prompt"], options=options):
        kind = type(message).__name__
        if kind == "ResultMessage":
            emit({"type": "result", **vars(message)})
        elif kind in ("AssistantMessage", "UserMessage"):
            content = message.content if isinstance(message.content, list) else []
            told = {"content": list(map(_block, content)), "model": vars(message).get("model")}
            emit({"type": kind.removesuffix("Message").lower(), "message": told})


def _block(block: Any) -> dict[str, Any]:
    kinds = {"ToolUseBlock": "tool_use", "ToolResultBlock": "tool_result", "TextBlock": "text"}
    return {"type": kinds.get(type(block).__name__, "other"), **vars(block)}


if __name__ == "__main__":
    DRIVERS = {"codex": codex, "claude": claude}
    asyncio.run(DRIVERS[sys.argv[1]](json.loads(sys.stdin.buffer.read())))

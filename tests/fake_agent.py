"""A scripted agent program that speaks the event formats of the real ones.

Run as `python fake_agent.py SCENARIO [the real program's arguments]`; what it was given is
written to the file that FAKE_SEEN names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def seen(scenario: str, prompt: str) -> dict[str, Any]:
    words = sys.argv[2:]
    system = [w for w in words if w.endswith("system.md")]
    system += [w.split('"')[1] for w in words if w.startswith("model_instructions_file")]
    return {
        "scenario": scenario,
        "argv": words,
        "prompt": prompt,
        "env": sorted(os.environ),
        "keys": [name for name in os.environ if "KEY" in name],
        "folder": sorted(os.listdir(".")),
        "task": Path("task.md").read_text("utf-8"),
        "system": Path(system[0]).read_text("utf-8") if system else None,
        "pid": os.getpid(),
    }


def say(*events: Any) -> None:
    for event in events:
        text = event if isinstance(event, str) else json.dumps(event)
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def codex_message(text: str) -> dict[str, Any]:
    return {
        "type": "item.completed",
        "item": {"id": "1", "type": "agent_message", "text": text},
    }


CODEX_DONE = {
    "type": "turn.completed",
    "usage": {
        "input_tokens": 30, "cached_input_tokens": 20, "cache_write_input_tokens": 0,
        "output_tokens": 5, "reasoning_output_tokens": 2,
    },
}  # fmt: skip
CODEX_COMMAND = {
    "type": "item.completed",
    "item": {
        "id": "0", "type": "command_execution", "command": "/bin/bash -lc 'false'",
        "aggregated_output": "no\n", "exit_code": 1, "status": "failed",
    },
}  # fmt: skip


def codex_failed(message: str) -> dict[str, Any]:
    return {"type": "turn.failed", "error": {"message": message}}


def claude_result(**changes: Any) -> dict[str, Any]:
    return {
        "type": "result", "subtype": "success", "is_error": False, "result": "fine",
        "stop_reason": "end_turn", "num_turns": 1, "session_id": "s",
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 20, "output_tokens": 5},
        **changes,
    }  # fmt: skip


def claude_block(kind: str, block: Any) -> dict[str, Any]:
    return {"type": kind, "message": {"model": "m-2", "content": [block]}}


def write_workbook() -> None:
    Path("out.bin").write_bytes(b"made")
    os.symlink("/etc/hostname", "link.bin")


def child_that_stays() -> None:
    code = "import time; time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", code])
    Path(os.environ["FAKE_SEEN"] + ".child").write_text(str(child.pid), "utf-8")


def hang() -> None:
    child_that_stays()
    time.sleep(600)


SCENARIOS: dict[str, Any] = {
    "text": lambda: say("fine"),
    "text-fails": lambda: (sys.stderr.write("boom"), sys.exit(1)),
    "text-bad-key": lambda: (sys.stderr.write("error: status 401"), sys.exit(1)),
    "jsonl": lambda: say(
        "chatter",
        {"type": "assistant.message", "data": "oops"},
        {"type": "assistant.message", "data": {"content": "fine"}},
        {"type": "end"},
    ),
    "jsonl-silent": lambda: say({"type": "end"}),
    "child": lambda: (child_that_stays(), say("fine")),
    "hang": hang,
    "writes": lambda: (write_workbook(), say("fine")),
    "codex": lambda: say(
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "e", "type": "error", "message": "odd"}},
        CODEX_COMMAND,
        "not json",
        codex_message("fine"),
        CODEX_DONE,
    ),
    "codex-401": lambda: (
        say(codex_failed("unexpected status 401 Unauthorized: bad key")), sys.exit(1)),
    "codex-429": lambda: (
        say(codex_failed("exceeded retry limit, last status: 429")), sys.exit(1)),
    "codex-cut": lambda: (
        say(codex_message("half"), codex_failed("stream closed early")), sys.exit(1)),
    "codex-no-key": lambda: (
        say(codex_failed("Missing environment variable: `LAB_KEY`.")), sys.exit(1)),
    "codex-flag": lambda: (sys.stderr.write("unexpected argument"), sys.exit(2)),
    "codex-ends-early": lambda: say(codex_message("half")),
    "claude": lambda: say(
        {"type": "system", "subtype": "init", "model": "m"},
        claude_block("assistant", {"type": "tool_use", "id": "u", "name": "Bash",
                                   "input": {"command": "false"}}),
        claude_block("user", {"type": "tool_result", "tool_use_id": "u", "content": "no",
                              "is_error": True}),
        claude_block("assistant", "a block of another shape"),
        claude_block("assistant", {"type": "text", "text": "fine"}),
        claude_result(),
    ),
    "claude-401": lambda: (
        say(claude_result(is_error=True, api_error_status=401, result="bad key")), sys.exit(1)),
    "claude-500": lambda: (
        say(claude_result(is_error=True, api_error_status=500, result="oops")), sys.exit(1)),
    "claude-error-exit-0": lambda: say(
        claude_result(is_error=True, api_error_status=529, result="overloaded")),
    "claude-refused": lambda: (
        say(claude_result(is_error=True, api_error_status=None, result="x")), sys.exit(1)),
    "claude-login": lambda: (
        say(claude_result(is_error=True, result="Not logged in · Please run /login")),
        sys.exit(1)),
    "claude-turns": lambda: (
        say(claude_result(subtype="error_max_turns", is_error=True)), sys.exit(1)),
    "claude-schema": lambda: say(claude_result(structured_output={"a": 1})),
    "claude-root": lambda: (sys.stderr.write("cannot be used with root"), sys.exit(1)),
}  # fmt: skip

if __name__ == "__main__":
    wanted = sys.argv[1]
    given = sys.stdin.read()
    Path(os.environ["FAKE_SEEN"]).write_text(json.dumps(seen(wanted, given)), "utf-8")
    SCENARIOS[wanted]()

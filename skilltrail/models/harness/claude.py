"""Backend `claude_exec`: Claude Code, headless (`claude -p`).

The whole system text goes in by `--system-prompt-file`. With a key the program runs bare; on
its own login alone it reads no settings, memories or servers of the user. Either way the agent
has the tools of `exec.tools` and no others.
Source: https://docs.claude.com/en/docs/claude-code/headless, tried with 2.1.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skilltrail.core.errors import ParamError
from skilltrail.models.client.backend import Wire, cut_at_stop
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.harness.events import Skipped, count, failure, mapping, objects
from skilltrail.models.harness.folder import WorkFolder, work_folder
from skilltrail.models.harness.process import Command, Finished, allowed, run
from skilltrail.models.harness.sdks import require_sdk, sdk_command
from skilltrail.models.protocol import Decoding, Reply, Request
from skilltrail.models.registry import require_key
from skilltrail.params.model_options import RoleOptions

_QUIET = {
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
}
# Commands that the agent runs do not see the program's own keys; the program then wants its
# sandbox, and that wants these.
_SCRUB = {"CLAUDE_CODE_SUBPROCESS_ENV_SCRUB": "1"}
_SANDBOX_PROGRAMS = ("bwrap", "socat")
_KEY_VARIABLE = "ANTHROPIC_API_KEY"
BARE = "danger-full-access"


def claude_wire(options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]) -> Wire:
    """Return the wire to Claude Code.

    Raises:
        ParamError: the agent may run commands, and nothing keeps them in.
    """
    require_sandbox(options, endpoint, environ)
    if options.exec.use_sdk:
        require_sdk("claude", endpoint)
    return ClaudeWire(options, endpoint, environ)


def require_sandbox(
    options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]
) -> None:
    """Refuse to let an agent run commands bare, unless params say so.

    Raises:
        ParamError: the sandbox's programs are missing.
    """
    harness = options.exec
    if "Bash" not in harness.tools or harness.sandbox == BARE:
        return
    path = environ.get("PATH")
    missing = [name for name in _SANDBOX_PROGRAMS if shutil.which(name, path=path) is None]
    if missing:
        raise ParamError(
            f"{endpoint.role}.exec.tools",
            f"Bash is allowed, but its sandbox needs {' and '.join(missing)}",
            f"Install them, or set {endpoint.role}.exec.sandbox: {BARE}: commands then run "
            "as you, and see the program's key",
        )


def claude_env(
    options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the program's environment; a key is in it only when one is named."""
    env = {**allowed(environ, ("CLAUDE_CONFIG_DIR", *options.exec.env)), **_QUIET}
    if options.exec.sandbox != BARE:
        env.update(_SCRUB)
    key = require_key(endpoint, environ)
    if key is not None:
        env[_KEY_VARIABLE] = key
    if options.base_url is not None:
        env["ANTHROPIC_BASE_URL"] = options.base_url
        env.setdefault(_KEY_VARIABLE, "none")
    if options.exec.max_thinking_tokens is not None:
        env["MAX_THINKING_TOKENS"] = str(options.exec.max_thinking_tokens)
    return env


class ClaudeWire:
    """One run of `claude -p`, or of its SDK."""

    def __init__(
        self, options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]
    ) -> None:
        self._options, self._endpoint = options, endpoint
        self._env = claude_env(options, endpoint, environ)

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        with work_folder(request) as folder:
            bare = _KEY_VARIABLE in self._env
            if self._options.exec.use_sdk:
                asked = {"options": claude_options(self._options, request, folder, bare)}
                command = sdk_command("claude", asked, folder, self._env)
            else:
                argv = claude_argv(self._options, request, folder, bare)
                command = Command(argv, folder.task, folder.work, self._env)
            remedy = f"Install Claude Code, or set {self._endpoint.role}.exec.path"
            finished = await run(command, self._endpoint.asked, remedy)
            reply = read_claude(self._endpoint, finished, decoding)
            if request.returns:
                files = {"files": folder.returned(request.returns)}
                reply = replace(reply, extra={**reply.extra, **files})
            return reply

    async def close(self) -> None:
        """Nothing outlives a call."""


def claude_argv(
    options: RoleOptions, request: Request, folder: WorkFolder, bare: bool
) -> tuple[str, ...]:
    """Return the whole command; the prompt is not part of it."""
    harness = options.exec
    tools = ",".join(harness.tools)
    words = [
        "claude" if harness.path is None else harness.path,
        "-p", "--output-format", "stream-json", "--verbose", "--no-session-persistence",
        "--model", options.model, "--tools", tools,
    ]  # fmt: skip
    if bare:
        words.append("--bare")
    else:
        words += ["--setting-sources", "", "--strict-mcp-config"]
    if tools:
        words += ["--allowedTools", tools]
    if request.system:
        words += ["--system-prompt-file", str(folder.side_file("system.md", request.system))]
    if options.effort is not None:
        words += ["--effort", options.effort]
    if harness.max_turns is not None:
        words += ["--max-turns", str(harness.max_turns)]
    if harness.profile is not None:
        words += ["--settings", harness.profile]
    if request.schema is not None:
        words += ["--json-schema", json.dumps(dict(request.schema))]
    return tuple(words)


def claude_options(
    options: RoleOptions, request: Request, folder: WorkFolder, bare: bool
) -> dict[str, Any]:
    """Return the same settings as `ClaudeAgentOptions` names them."""
    harness = options.exec
    told: dict[str, Any] = {
        "cli_path": harness.path,
        "cwd": str(folder.work),
        "model": options.model,
        "tools": list(harness.tools),
        "allowed_tools": list(harness.tools),
        "setting_sources": [],
        "strict_mcp_config": True,
        "effort": options.effort,
        "max_turns": harness.max_turns,
        "settings": harness.profile,
        "extra_args": {"no-session-persistence": None, **({"bare": None} if bare else {})},
    }
    if request.system:
        path = folder.side_file("system.md", request.system)
        told["system_prompt"] = {"type": "file", "path": str(path)}
    if request.schema is not None:
        told["output_format"] = {"type": "json_schema", "schema": dict(request.schema)}
    return told


def read_claude(endpoint: Endpoint, finished: Finished, decoding: Decoding) -> Reply:
    """Return the reply that a run's events tell of.

    Raises:
        Refused, ModelError: the run failed, or never ended.
    """
    skipped = Skipped()
    actions: dict[str, dict[str, Any]] = {}
    model, result = "", None
    for event in objects(finished.stdout, skipped):
        kind = event.get("type")
        if kind == "result":
            result = event
        elif kind in ("assistant", "user"):
            message = mapping(event.get("message"))
            model = str(message.get("model", model)) if kind == "assistant" else model
            _note_blocks(message.get("content"), actions, skipped)
    if result is None:
        said = finished.stderr if finished.stderr.strip() else finished.stdout
        raise failure(endpoint, finished.code, said)
    extra: dict[str, Any] = {"actions": list(actions.values())} if actions else {}
    if skipped.count:
        extra["skipped_events"] = skipped.count
    usage = _usage(mapping(result.get("usage")))
    if result.get("subtype") == "error_max_turns":
        return Reply("", "out_of_turns", model=model, usage=usage, extra=extra)
    if finished.code != 0 or result.get("is_error"):
        status = result.get("api_error_status")
        said = str(result.get("result", result.get("errors", finished.stderr)))
        raise failure(
            endpoint, finished.code, said, status if isinstance(status, int) else None
        )
    finish = {"max_tokens": "length", "refusal": "refusal"}.get(
        str(result.get("stop_reason")), "stop"
    )
    text = cut_at_stop(_text(result), decoding.stop)
    return Reply(text, finish, model=model, usage=usage, extra=extra)


def _text(result: Mapping[str, Any]) -> str:
    structured = result.get("structured_output")
    if structured is not None:
        return json.dumps(structured, ensure_ascii=False)
    return str(result.get("result", ""))


def _note_blocks(content: Any, actions: dict[str, dict[str, Any]], skipped: Skipped) -> None:
    """Collect tool uses and their results; a block of another shape is counted."""
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, Mapping):
            skipped.count += 1
        elif block.get("type") == "tool_use":
            actions[str(block.get("id"))] = {
                "name": block.get("name"),
                "input": block.get("input"),
                "output": None,
                "exit_code": None,
            }
        elif block.get("type") == "tool_result":
            action = actions.get(str(block.get("tool_use_id")))
            if action is None:
                skipped.count += 1
                continue
            action["output"] = block.get("content")
            action["exit_code"] = 1 if block.get("is_error") else 0


def _usage(usage: Mapping[str, Any]) -> dict[str, int]:
    read = count(usage, "cache_read_input_tokens")
    written = count(usage, "cache_creation_input_tokens")
    return {
        "input": count(usage, "input_tokens") + read + written,
        "output": count(usage, "output_tokens"),
        "cached": read,
        "written": written,
        "reasoning": 0,
    }

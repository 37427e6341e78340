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
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from skilltrail.core.errors import ParamError
from skilltrail.models.backends.strict import anthropic_schema
from skilltrail.models.client.backend import Backend
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.client.foreign import count, ended, mapping, message_usage, text_of
from skilltrail.models.environ import Environ
from skilltrail.models.harness.folder import WorkFolder
from skilltrail.models.harness.harness import (
    Harness,
    Skipped,
    failure,
    objects,
    require_sdk,
    sdk_command,
    words_of,
)
from skilltrail.models.harness.process import Finished, Invocation, allowed
from skilltrail.models.protocol import Reply, Request
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
_SYNTHETIC = "<synthetic>"
# The model asked for a tool, or for time, and nobody answered: what it said before is a draft.
_UNFINISHED = ("tool", "broken")
BARE = "danger-full-access"


def claude_backend(options: RoleOptions, endpoint: Endpoint, environ: Environ) -> Backend:
    """Return the backend of Claude Code.

    Raises:
        ParamError: the agent may run commands, and nothing keeps them in.
    """
    require_sandbox(options, endpoint, environ)
    if options.exec.use_sdk:
        require_sdk("claude", endpoint)
    env = claude_env(options, endpoint, environ)
    remedy = f"Install Claude Code, or set {endpoint.role}.exec.path"
    return ClaudeHarness(options, endpoint, env, remedy)


def require_sandbox(options: RoleOptions, endpoint: Endpoint, environ: Environ) -> None:
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


def claude_env(options: RoleOptions, endpoint: Endpoint, environ: Environ) -> dict[str, str]:
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


class ClaudeHarness(Harness):
    """One run of `claude -p`, or of its SDK."""

    skills_place: ClassVar[str] = ".claude/skills"

    def command(self, request: Request, folder: WorkFolder) -> Invocation:
        bare = _KEY_VARIABLE in self.env and not request.skills
        if self.options.exec.use_sdk:
            asked = {"options": claude_options(self.options, request, folder, bare)}
            return sdk_command("claude", asked, folder, self.env)
        argv = claude_argv(self.options, request, folder, bare)
        return Invocation(argv, folder.task, folder.work, self.env)

    @property
    def reads(self) -> bool:
        return can_read(self.options)

    def read(self, finished: Finished) -> Reply:
        return read_claude(self.endpoint, finished)


def can_read(options: RoleOptions) -> bool:
    """Return whether the agent may open files."""
    return bool({"Read", "Bash"} & set(options.exec.tools))


def claude_argv(
    options: RoleOptions, request: Request, folder: WorkFolder, bare: bool
) -> tuple[str, ...]:
    """Return the whole command; the prompt is not part of it."""
    harness = options.exec
    tools = ",".join(_tools(options, request))
    words = [
        "claude" if harness.path is None else harness.path,
        "-p", "--output-format", "stream-json", "--verbose", "--no-session-persistence",
        "--model", options.model, "--tools", tools,
    ]  # fmt: skip
    sources = "project" if request.skills else ""  # the work folder's, where skills lie
    words += ["--bare"] if bare else ["--setting-sources", sources, "--strict-mcp-config"]
    flags = {
        "--allowedTools": tools if tools else None,
        "--system-prompt-file": folder.system_file(request, reads=can_read(options)),
        "--effort": options.effort,
        "--max-turns": harness.max_turns,
        "--settings": harness.profile,
        "--json-schema": request.schema and json.dumps(anthropic_schema(request.schema)),
    }
    given = ((flag, value) for flag, value in flags.items() if value is not None)
    return (*words, *(str(word) for pair in given for word in pair))


def _tools(options: RoleOptions, request: Request) -> list[str]:
    """Return the tools that the agent has; one that loads a skill where skills are offered."""
    return [*options.exec.tools, *(["Skill"] if request.skills else [])]


def claude_options(
    options: RoleOptions, request: Request, folder: WorkFolder, bare: bool
) -> dict[str, Any]:
    """Return the same settings as `ClaudeAgentOptions` names them."""
    harness = options.exec
    told: dict[str, Any] = {
        "cli_path": harness.path,
        "cwd": str(folder.work),
        "model": options.model,
        "tools": _tools(options, request),
        "allowed_tools": _tools(options, request),
        "setting_sources": ["project"] if request.skills else [],
        "strict_mcp_config": True,
        "effort": options.effort,
        "max_turns": harness.max_turns,
        "settings": harness.profile,
        "extra_args": {"no-session-persistence": None, **({"bare": None} if bare else {})},
    }
    if request.system:
        system = folder.system_file(request, reads=can_read(options))
        told["system_prompt"] = {"type": "file", "path": str(system)}
    if request.schema is not None:
        schema = anthropic_schema(request.schema)
        told["output_format"] = {"type": "json_schema", "schema": schema}
    return told


@dataclass
class _EventsTold:
    """What a run's events tell, one after the other."""

    skipped: Skipped = field(default_factory=Skipped)
    actions: dict[str, dict[str, Any]] = field(default_factory=dict)
    blocks: list[str] = field(default_factory=list)
    text: str = ""
    model: str = ""
    result: Mapping[str, Any] | None = None
    error: str = ""  # the program's own word on its last message, where that is no answer

    def note(self, event: Mapping[str, Any]) -> None:
        kind, message = event.get("type"), mapping(event.get("message"))
        if kind == "result":
            self.result = event
        elif kind in ("assistant", "user"):
            content = message.get("content")
            content = [{"type": "text", "text": content}] if text_of(content) else content
            blocks = list(map(mapping, content)) if isinstance(content, list) else []
            for block in blocks:
                self._note_block(block)
            # What a helper says that the agent called is for the agent, and no answer.
            if kind == "assistant" and event.get("parent_tool_use_id") is None:
                own = "an error of the program" if event.get("isApiErrorMessage") else ""
                named = text_of(event.get("error"))
                self.error = named if named else own
                texts = [text_of(b.get("text")) for b in blocks if b.get("type") == "text"]
                self.text = "".join(texts) if any(texts) else self.text
                name = text_of(message.get("model"))
                self.model = name if name else self.model

    def _note_block(self, block: Mapping[str, Any]) -> None:
        """Collect tool uses and their results; a block of another shape is counted."""
        kind, action = block.get("type"), self.actions.get(str(block.get("tool_use_id")))
        if kind == "tool_use":
            self.actions[str(block.get("id"))] = {
                "name": block.get("name"),
                "input": block.get("input"),
                "output": None,
                "exit_code": None,
            }
        elif kind == "tool_result" and action is not None:
            action["output"] = block.get("content")
            action["exit_code"] = 1 if block.get("is_error") else 0
        elif not block or kind == "tool_result":
            self.skipped.count += 1
        elif kind != "text":
            self.blocks.append(str(kind))


def read_claude(endpoint: Endpoint, finished: Finished) -> Reply:
    """Return the reply that a run's events tell of.

    A message of the model `<synthetic>`, or one for which no token was used, is the program's
    own word on what went wrong, and no answer.

    Raises:
        Refused, ModelError: the run failed, or never ended.
    """
    told = _EventsTold()
    for event in objects(finished.stdout, told.skipped):
        told.note(event)
    result = told.result
    if result is None:
        raise failure(endpoint, finished.code, words_of(finished.stderr, finished.stdout))
    used = mapping(result.get("usage"))
    end = ended(result.get("stop_reason"))
    odd = () if isinstance(result.get("result"), str) else ("a result",)
    reply = Reply(
        _text(result, "" if end in _UNFINISHED else told.text),
        end if end in ("length", "refusal") else "stop",
        model=told.model,
        usage=message_usage(used),
        extra=told.skipped.beside(list(told.actions.values())),
        blocks=(*told.blocks, *odd),
    )
    why = text_of(result.get("terminal_reason"))
    if result.get("subtype") == "error_max_turns" or why == "max_turns":
        return replace(reply, text="", finish="out_of_turns")
    unused = count(used, "input_tokens") == count(used, "output_tokens") == 0
    failed = result.get("is_error") or text_of(result.get("subtype")).startswith("error")
    failed = failed or why.startswith(("aborted", "api_error"))
    if finished.code != 0 or failed or unused or told.error or told.model == _SYNTHETIC:
        said = words_of(
            result.get("result"), result.get("errors"), finished.stderr, told.text, told.error
        )
        raise failure(endpoint, finished.code, said, count(result, "api_error_status"))
    return reply


def _text(result: Mapping[str, Any], last_said: str) -> str:
    structured = result.get("structured_output")
    if structured is not None:
        return json.dumps(structured, ensure_ascii=False)
    said = text_of(result.get("result"))
    return said if said else last_said

"""Backend `codex_exec`: the Codex CLI, headless (`codex exec --json`).

The whole system text goes in by `model_instructions_file`, the route that surely delivers it.
With `base_url` the program is pointed at that endpoint (responses protocol), else it uses its
own login and `$CODEX_HOME/config.toml`, which must not lie under the temp folder.
Source: https://github.com/openai/codex, tried with 0.171.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skilltrail.core.errors import ParamError
from skilltrail.models.client.backend import Wire, cut_at_stop
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.harness.events import Skipped, count, failure, mapping, objects
from skilltrail.models.harness.folder import WorkFolder, work_folder
from skilltrail.models.harness.process import Command, Finished, allowed, run
from skilltrail.models.harness.sdks import require_sdk, sdk_command
from skilltrail.models.protocol import Decoding, Reply, Request
from skilltrail.models.registry import require_key
from skilltrail.params.model_options import RoleOptions

# Switched off: what phones home, waits for ever, or pads the prompt.
_DISABLED = (
    "unbounded_connection_retries",
    "multi_agent",
    "goals",
    "apps",
    "plugins",
    "memories",
)
_PLAIN = (
    "check_for_update_on_startup=false",
    "analytics.enabled=false",
    "feedback.enabled=false",
    'otel.exporter="none"',
    "include_environment_context=false",
    "include_permissions_instructions=false",
    "include_apps_instructions=false",
    "skills.include_instructions=false",
    # Commands that the agent runs do not see the program's own keys.
    'shell_environment_policy.inherit="core"',
)


def codex_wire(options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]) -> Wire:
    """Return the wire to the Codex CLI."""
    if options.exec.use_sdk:
        _refuse_beside_sdk(options, endpoint)
        require_sdk("codex", endpoint)
    return CodexWire(options, endpoint, environ)


def _refuse_beside_sdk(options: RoleOptions, endpoint: Endpoint) -> None:
    """Refuse what the SDK cannot be told."""
    harness = options.exec
    for name, value, unset in (
        ("approval_policy", harness.approval_policy, "never"),
        ("profile", harness.profile, None),
    ):
        if value != unset:
            raise ParamError(
                f"{endpoint.role}.exec.{name}",
                f"{value!r} with use_sdk: true, which does not take it",
                "Remove it, or set use_sdk: false",
            )


class CodexWire:
    """One run of `codex exec`, or of its SDK."""

    def __init__(
        self, options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]
    ) -> None:
        self._options, self._endpoint = options, endpoint
        key = require_key(endpoint, environ)
        names = ["CODEX_HOME", *options.exec.env]
        self._env = allowed(environ, names)
        if key is not None and endpoint.key_env is not None:
            self._env[endpoint.key_env] = key

    async def send(self, request: Request, decoding: Decoding) -> Reply:
        with work_folder(request) as folder:
            settings = codex_settings(self._options, self._endpoint, request, folder)
            if self._options.exec.use_sdk:
                asked = codex_asked(self._options, request, folder, settings)
                command = sdk_command("codex", asked, folder, self._env)
            else:
                argv = codex_argv(self._options, request, folder, settings)
                command = Command(argv, folder.task, folder.work, self._env)
            remedy = f"Install the Codex CLI, or set {self._endpoint.role}.exec.path"
            finished = await run(command, self._endpoint.asked, remedy)
            reply = read_codex(self._endpoint, self._options.model, finished, decoding)
            if request.returns:
                files = {"files": folder.returned(request.returns)}
                reply = replace(reply, extra={**reply.extra, **files})
            return reply

    async def close(self) -> None:
        """Nothing outlives a call."""


def codex_settings(
    options: RoleOptions, endpoint: Endpoint, request: Request, folder: WorkFolder
) -> list[str]:
    """Return the settings, each `key=value` in TOML."""
    harness = options.exec
    settings = list(_PLAIN)
    settings += [
        f"approval_policy={_toml(harness.approval_policy)}",
        f"web_search={_toml('live' if harness.web_search else 'disabled')}",
        f"sandbox_workspace_write.network_access={str(harness.network).lower()}",
    ]
    if request.system:
        system = folder.side_file("system.md", request.system)
        settings.append(f"model_instructions_file={_toml(str(system))}")
    if options.effort is not None:
        settings.append(f"model_reasoning_effort={_toml(options.effort)}")
    return settings + provider_settings(options, endpoint)


def codex_argv(
    options: RoleOptions, request: Request, folder: WorkFolder, settings: list[str]
) -> tuple[str, ...]:
    """Return the whole command; the prompt is not part of it."""
    harness = options.exec
    words = [
        "codex" if harness.path is None else harness.path,
        "exec", "--json", "--skip-git-repo-check", "--ephemeral",
        "-s", harness.sandbox, "-C", str(folder.work), "-m", options.model,
    ]  # fmt: skip
    if harness.profile is not None:
        words += ["-p", harness.profile]
    for name in _DISABLED:
        words += ["--disable", name]
    for setting in settings:
        words += ["-c", setting]
    if request.schema is not None:
        schema = folder.side_file("schema.json", json.dumps(dict(request.schema)))
        words += ["--output-schema", str(schema)]
    for image in folder.images:
        words += ["-i", str(image)]
    return (*words, "-")


def codex_asked(
    options: RoleOptions, request: Request, folder: WorkFolder, settings: list[str]
) -> dict[str, Any]:
    """Return what the SDK's driver is told; the prompt is not part of it."""
    return {
        "path": options.exec.path,
        "settings": [*settings, *(f"features.{name}=false" for name in _DISABLED)],
        "cwd": str(folder.work),
        "model": options.model,
        "sandbox": options.exec.sandbox,
        "schema": None if request.schema is None else dict(request.schema),
        "images": [str(image) for image in folder.images],
    }


def provider_settings(options: RoleOptions, endpoint: Endpoint) -> list[str]:
    """Return the settings that point the program at `base_url`; retries stay ours."""
    if options.base_url is None:
        return []
    provider = "model_providers.skilltrail"
    settings = [
        'model_provider="skilltrail"',
        f'{provider}.name="skilltrail"',
        f"{provider}.base_url={_toml(options.base_url)}",
        f'{provider}.wire_api="responses"',
        f"{provider}.request_max_retries=0",
        f"{provider}.stream_max_retries=0",
    ]
    if endpoint.key_env is not None:
        settings.append(f"{provider}.env_key={_toml(endpoint.key_env)}")
    return settings


def _toml(text: str) -> str:
    """Return a TOML basic string (JSON's escapes are a subset of TOML's)."""
    return json.dumps(text)


def read_codex(endpoint: Endpoint, model: str, finished: Finished, decoding: Decoding) -> Reply:
    """Return the reply that a run's events tell of.

    Raises:
        Refused, ModelError: the turn failed, or never ended.
    """
    skipped = Skipped()
    text: str | None = None
    actions: list[dict[str, Any]] = []
    usage: dict[str, int] | None = None
    failed: str | None = None
    chatter: list[str] = []
    for event in objects(finished.stdout, skipped):
        kind = event.get("type")
        item = mapping(event.get("item"))
        if kind == "item.completed" and item.get("type") == "agent_message":
            text = str(item.get("text", ""))
        elif kind == "item.completed" and item.get("type") not in ("error", "reasoning", None):
            actions.append(_action(item))
        elif kind == "turn.completed":
            usage = _usage(mapping(event.get("usage")))
        elif kind == "turn.failed":
            failed = str(mapping(event.get("error")).get("message", event.get("error")))
        elif kind == "error":
            chatter.append(str(event.get("message", "")))
        elif kind == "item.completed" and not item:
            skipped.count += 1
    if failed is not None or finished.code != 0 or usage is None:
        said = failed if failed is not None else "\n".join([finished.stderr, *chatter])
        raise failure(endpoint, finished.code, said)
    extra: dict[str, Any] = {"actions": actions} if actions else {}
    if skipped.count:
        extra["skipped_events"] = skipped.count
    if text is None:
        raise ModelConfigError(endpoint.asked, "a turn without a message", "Check its version")
    return Reply(cut_at_stop(text, decoding.stop), model=model, usage=usage, extra=extra)


def _action(item: Mapping[str, Any]) -> dict[str, Any]:
    if item.get("type") == "command_execution":
        return {
            "name": "exec_command",
            "input": item.get("command"),
            "output": item.get("aggregated_output"),
            "exit_code": item.get("exit_code"),
        }
    details = {k: v for k, v in item.items() if k not in ("id", "type", "status")}
    return {"name": item.get("type"), "input": details, "output": None, "exit_code": None}


def _usage(usage: Mapping[str, Any]) -> dict[str, int]:
    return {
        "input": count(usage, "input_tokens"),
        "output": count(usage, "output_tokens"),
        "cached": count(usage, "cached_input_tokens"),
        "reasoning": count(usage, "reasoning_output_tokens"),
    }

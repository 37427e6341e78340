"""Backend `codex_exec`: the Codex CLI, headless (`codex exec --json`).

The whole system text goes in by `model_instructions_file`, the route that surely delivers it.
With `base_url` the program is pointed at that endpoint (responses protocol), else it uses its
own login and `$CODEX_HOME/config.toml`, which must not lie under the temp folder.
Source: https://github.com/openai/codex, tried with 0.171.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from skilltrail.core.errors import ParamError
from skilltrail.models.backends.strict import openai_schema
from skilltrail.models.client.backend import Backend
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.client.foreign import count, mapping, text_of, usage_of
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

# Switched off: what phones home, waits for ever, or pads the prompt.
_DISABLED = (
    "unbounded_connection_retries", "multi_agent", "goals", "apps", "plugins", "memories",
)  # fmt: skip
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


def codex_backend(options: RoleOptions, endpoint: Endpoint, environ: Environ) -> Backend:
    """Return the backend of the Codex CLI."""
    if options.exec.use_sdk:
        _refuse_beside_sdk(options, endpoint)
        require_sdk("codex", endpoint)
    key = require_key(endpoint, environ)
    env = allowed(environ, ["CODEX_HOME", *options.exec.env])
    if key is not None and endpoint.key_env is not None:
        env[endpoint.key_env] = key
    remedy = f"Install the Codex CLI, or set {endpoint.role}.exec.path"
    return CodexHarness(options, endpoint, env, remedy)


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


class CodexHarness(Harness):
    """One run of `codex exec`, or of its SDK."""

    def command(self, request: Request, folder: WorkFolder) -> Invocation:
        settings = codex_settings(self.options, self.endpoint, request, folder)
        if self.options.exec.use_sdk:
            asked = codex_asked(self.options, request, folder, settings)
            return sdk_command("codex", asked, folder, self.env)
        argv = codex_argv(self.options, request, folder, settings)
        return Invocation(argv, folder.task, folder.work, self.env)

    skills_place: ClassVar[str] = ".agents/skills"

    @property
    def reads(self) -> bool:
        return True

    def read(self, finished: Finished) -> Reply:
        return read_codex(self.endpoint, self.options.model, finished)


def codex_settings(
    options: RoleOptions, endpoint: Endpoint, request: Request, folder: WorkFolder
) -> list[str]:
    """Return the settings, each `key=value` in TOML."""
    harness = options.exec
    settings = list(_PLAIN)
    if request.skills:
        settings.append("skills.include_instructions=true")
    settings += [
        f"approval_policy={_toml(harness.approval_policy)}",
        f"web_search={_toml('live' if harness.web_search else 'disabled')}",
        f"sandbox_workspace_write.network_access={str(harness.network).lower()}",
    ]
    if request.system:
        system = str(folder.system_file(request, reads=True))
        settings.append(f"model_instructions_file={_toml(system)}")
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
        asked = openai_schema(request.schema)["schema"]
        words += ["--output-schema", str(folder.side_file("schema.json", json.dumps(asked)))]
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
        "schema": request.schema and openai_schema(request.schema)["schema"],
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


def read_codex(endpoint: Endpoint, model: str, finished: Finished) -> Reply:
    """Return the reply that a run's events tell of: its last message that has a text.

    Raises:
        Refused, ModelError: the turn failed, or never ended.
    """
    skipped = Skipped()
    text, failed, done = "", None, None
    actions: list[dict[str, Any]] = []
    blocks: list[str] = []
    chatter: list[str] = []
    for event in objects(finished.stdout, skipped):
        kind, item = event.get("type"), mapping(event.get("item"))
        if kind == "item.completed":
            what = text_of(item.get("type"))
            blocks.append(what if what else "an unknown item")
            if what == "agent_message":
                said = text_of(item.get("text"))
                text = said if said else text
            elif what not in ("", "error", "reasoning"):
                actions.append(_action(item))
            skipped.count += not what
        elif kind == "turn.completed":
            done = event
        elif kind == "turn.failed":
            failed = event
        elif kind == "error":
            chatter.append(words_of(event))
    if failed is not None or finished.code != 0 or done is None:
        told = None if failed is None else failed.get("error")
        said = words_of(told, "\n".join([finished.stderr, *chatter]))
        raise failure(endpoint, finished.code, said)
    blocks = blocks if blocks else ["a turn"]
    extra, usage = skipped.beside(actions), _usage(done.get("usage"))
    return Reply(text, model=model, usage=usage, extra=extra, blocks=tuple(blocks))


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


def _usage(told: Any) -> dict[str, int]:
    return usage_of(
        count(told, "input_tokens"),
        count(told, "output_tokens"),
        cached=count(told, "cached_input_tokens"),
        reasoning=count(told, "reasoning_output_tokens"),
    )

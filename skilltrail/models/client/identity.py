"""Which model answered: what goes into fact keys besides the request.

Labels and settings, never a URL, a path, a key, a time limit or a number of workers.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from skilltrail.models.protocol import Decoding
from skilltrail.params.model_options import (
    EMBEDDED_BACKENDS,
    HARNESS_BACKENDS,
    SETTINGS,
    RoleOptions,
)

# Recorded names of the endpoints that are not called as their backend is.
_PROVIDERS = {"codex_exec": "codex", "claude_exec": "claude-code"}
# Options of an agent program that change its replies.
_HARNESS = {
    "codex_exec": ("sandbox", "network", "web_search", "approval_policy"),
    "claude_exec": ("tools", "sandbox", "max_turns", "max_thinking_tokens"),
}

_HARNESS_ABILITIES = {
    "codex_exec": ("schema", "vision"),
    "claude_exec": ("schema",),
    "exec": (),
}
# What runs in this process can do what it can, whatever params say.
_EMBEDDED_ABILITIES = {"local": ("schema",), "openvino": ()}
_EVERY_ABILITY = ("schema", "tools", "vision")
_DEFAULT_WORKERS = 16
_DEFAULT_HARNESS_WORKERS = 2


def own_decoding(options: RoleOptions) -> Decoding:
    """Return the decoding that params set for this role."""
    return Decoding(**{name: getattr(options, name) for name in SETTINGS})


def provider_label(options: RoleOptions) -> str:
    """Return the recorded name of the endpoint."""
    if options.provider is not None:
        return options.provider
    if options.backend == "minimax":
        return f"minimax-{options.region}"
    return _PROVIDERS.get(options.backend, options.backend)


def resolved_api(options: RoleOptions) -> tuple[str, str]:
    """Return the API that is spoken and the reason, a phrase for `doctor`."""
    if options.api != "auto":
        return options.api, "set in params"
    if options.backend != "openai":
        return "chat", f"the {options.backend} backend speaks it"
    if options.base_url is not None:
        return "chat", "most compatible servers know it best"
    if options.seed is not None or options.stop:
        return "chat", "the responses API takes neither seed nor stop"
    return "responses", "the provider's own recommendation"


def identity_of(options: RoleOptions) -> dict[str, Any]:
    """Return the identity of a role's model (all backends but `local`, which digests its file).

    A `replay` model with `replays` set has the identity of what it replays.
    """
    if options.backend == "replay" and options.replays is not None:
        return identity_of(replace(options, backend=options.replays, replays=None))
    identity: dict[str, Any] = {
        "backend": options.backend,
        "provider": provider_label(options),
        "model": options.model,
        "decoding": own_decoding(options).to_json(),
    }
    if options.omit:
        identity["omit"] = sorted(options.omit)
    if options.thinking != "server_default":
        identity["thinking"] = options.thinking
    if options.backend in ("openai", "azure", "vllm", "minimax"):
        identity["api"] = resolved_api(options)[0]
    if options.backend == "azure" and options.azure.deployment is not None:
        identity["deployment"] = options.azure.deployment
    if options.backend in HARNESS_BACKENDS:
        identity["harness"] = _harness(options)
    return identity


def default_workers(options: RoleOptions) -> int:
    """Return how many calls may be in flight when params do not say."""
    if options.workers > 0:
        return options.workers
    return _DEFAULT_HARNESS_WORKERS if options.backend in HARNESS_BACKENDS else _DEFAULT_WORKERS


def style_of(options: RoleOptions) -> str:
    """Return `completion` or `chat`."""
    if options.backend in EMBEDDED_BACKENDS:
        return options.style
    return "completion" if options.api == "completions" else "chat"


def abilities_of(options: RoleOptions) -> frozenset[str]:
    """Return what the model can do: as params say, else what the backend surely has.

    Only a provider's own endpoint is trusted with all three; compatible servers often take a
    schema or an image without a word and ignore it.
    """
    if options.backend in _EMBEDDED_ABILITIES:
        return frozenset(_EMBEDDED_ABILITIES[options.backend])
    if options.backend in HARNESS_BACKENDS:
        usual = _HARNESS_ABILITIES[options.backend]
        return frozenset(
            {"files", *(usual if options.abilities is None else options.abilities)}
        )
    if options.abilities is not None:
        return frozenset(options.abilities)
    if options.backend == "handoff":
        return frozenset({"schema"})
    if options.backend in ("azure", "replay") or options.base_url is None:
        own = frozenset(_EVERY_ABILITY)
        return own if options.backend != "minimax" else frozenset({"tools"})
    api = resolved_api(options)[0]
    if options.backend == "anthropic" or api == "responses":
        return frozenset({"tools"})
    return frozenset({"schema", "tools"}) if api == "chat" else frozenset()


def _harness(options: RoleOptions) -> dict[str, Any]:
    harness = options.exec
    if options.backend == "exec":
        return {
            "argv": [_name(word) for word in harness.argv],
            "system_args": [_name(word) for word in harness.system_args],
            "parser": harness.parser,
            "text_field": harness.text_field,
        }
    own = {name: getattr(harness, name) for name in _HARNESS[options.backend]}
    lists = {name: list(value) for name, value in own.items() if isinstance(value, tuple)}
    return own | lists | {"profile": harness.profile, "sdk": harness.use_sdk}


def _name(word: str) -> str:
    """Return a command word, an absolute path reduced to its last part."""
    return os.path.basename(word) if os.path.isabs(word) else word

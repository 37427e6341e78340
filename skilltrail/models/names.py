"""Short names of models on the command line: `openai:gpt-4o-mini`, `ollama:qwen2.5:7b`.

local | rules                        embedded, nothing to install but `skilltrail[local]`
BACKEND:MODEL                        a backend of docs/models at its own address
SERVER:MODEL                         a usual server at its usual address
BACKEND_OR_SERVER:MODEL@URL          the same at another address
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from skilltrail.core.errors import UsageError
from skilltrail.params.model_options import BACKENDS, EMBEDDED_BACKENDS, EMBEDDED_MODEL


@dataclass(frozen=True)
class Server:
    """A server that speaks a known protocol: its usual address, and its key's variable."""

    url: str
    key_env: str | None = None
    backend: str = "openai"


SERVERS = {
    "ollama": Server("http://127.0.0.1:11434/v1"),
    "lmstudio": Server("http://127.0.0.1:1234/v1"),
    "litellm": Server("http://127.0.0.1:4000/v1", "LITELLM_API_KEY"),
    "llamacpp": Server("http://127.0.0.1:8080/v1"),
    "openrouter": Server("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "vllm": Server("http://127.0.0.1:8000/v1", backend="vllm"),
}
_NAMED = ("codex_exec", "claude_exec")  # agent programs: a model may be left to them


def model_params(role: str, said: str) -> dict[str, Any]:
    """Return the params (dotted keys) of a role whose model a person named.

    Raises:
        UsageError: no such backend or server, or no model.
    """
    name, _, rest = said.partition(":")
    model, at, address = rest.rpartition("@http")
    url = f"http{address}" if at else None
    model = model if at else rest
    if said == "rules" and role == "optimizer":
        return {"optimizer.backend": "rules"}
    if name in EMBEDDED_BACKENDS:
        return {f"{role}.backend": name, f"{role}.model": model or EMBEDDED_MODEL}
    server = SERVERS.get(name)
    backend = name if server is None else server.backend
    if backend not in BACKENDS or backend == "replay" or (not model and name not in _NAMED):
        known = ", ".join(sorted({*SERVERS, *BACKENDS} - {"replay"}))
        raise UsageError(
            f"--{role} {said}",
            "not NAME:MODEL" if backend in BACKENDS else f"no backend or server {name!r}",
            "As in openai:gpt-4o-mini, or ollama:qwen2.5:7b@http://host:11434/v1. There are "
            f"{known}",
        )
    params: dict[str, Any] = {"backend": backend, "model": model or None}
    if server is not None:
        params |= {"base_url": url or server.url, "provider": name, "key_env": server.key_env}
    elif url is not None:
        params |= {"base_url": url, "provider": urlsplit(url).hostname}
    return {f"{role}.{key}": value for key, value in params.items()}

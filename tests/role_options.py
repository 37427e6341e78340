"""Options of every HTTP backend, pointed at a loopback server: what contract tests run over."""

from __future__ import annotations

from dataclasses import replace

from skilltrail.params.model_options import AzureOptions, RetryOptions, RoleOptions

FAST = RetryOptions(attempts=3, give_up_after=50, max_wait_s=5.0)
PLAIN = RoleOptions(
    model="m", provider="lab", retry=FAST, timeout_s=60.0, key_env="LAB_KEY", max_tokens=64
)
KEYS = {"LAB_KEY": "lab-key-5e1f0c", "PATH": "/usr/bin:/bin"}
HTTP = ("chat", "completions", "responses", "anthropic", "azure", "vllm", "minimax")
CHATS = tuple(name for name in HTTP if name != "completions")


def options_at(name: str, url: str) -> RoleOptions:
    """Return the options of an HTTP backend (or an `openai` API) with its server at `url`."""
    v1 = f"{url}/v1"
    if name in ("chat", "completions", "responses"):
        return replace(PLAIN, backend="openai", api=name, base_url=v1)
    if name == "anthropic":
        return replace(PLAIN, backend="anthropic", base_url=url)
    if name == "azure":
        azure = AzureOptions(endpoint=url, deployment="dep")
        return replace(PLAIN, backend="azure", azure=azure)
    return replace(PLAIN, backend=name, base_url=v1)

"""Clients for OpenAI and for every server that speaks its protocol.

A compatible provider needs no code: `base_url`, `provider`, `key_env`, `model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import openai

from skilltrail.models.backends.openai_chat import OpenAIChat, OpenAICompletions
from skilltrail.models.backends.openai_responses import OpenAIResponses
from skilltrail.models.backends.sdk import client_settings
from skilltrail.models.client.backend import Backend
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.client.identity import resolved_api
from skilltrail.models.registry import require_key
from skilltrail.params.model_options import RoleOptions

OPENAI_URL = "https://api.openai.com/v1"
MINIMAX_URLS = {
    "global_en": "https://api.minimax.io/v1",
    "cn_zh": "https://api.minimaxi.com/v1",
}


def openai_backend(
    options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]
) -> Backend:
    """Return the backend of OpenAI, or of `base_url`."""
    cap = "max_completion_tokens" if options.base_url is None else "max_tokens"
    client = _client(options, endpoint, environ, OPENAI_URL)
    return speaking_api(client, options, endpoint, cap)


def vllm_backend(
    options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]
) -> Backend:
    """Return the backend of a vLLM (or like) server, with an explicit thinking policy.

    `chat_template_kwargs` is sent only when the policy is not the server's default.
    """
    extra: dict[str, Any] = {}
    if options.thinking != "server_default":
        wanted = options.thinking == "enabled"
        extra["chat_template_kwargs"] = {"enable_thinking": wanted}
    client = _client(options, endpoint, environ, str(options.base_url))
    return speaking_api(client, options, endpoint, extra=extra)


def minimax_backend(
    options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]
) -> Backend:
    """Return the backend of MiniMax: the region chooses the base URL."""
    extra: dict[str, Any] = {}
    if options.thinking != "server_default":
        extra["thinking"] = {"type": options.thinking}
    client = _client(options, endpoint, environ, MINIMAX_URLS[options.region])
    return speaking_api(client, options, endpoint, extra=extra)


def speaking_api(
    client: openai.AsyncOpenAI,
    options: RoleOptions,
    endpoint: Endpoint,
    cap: str = "max_tokens",
    extra: dict[str, Any] | None = None,
) -> Backend:
    """Return the backend of the API that the role speaks; `cap` and `extra` as in chats."""
    api = resolved_api(options)[0]
    if api == "responses":
        return OpenAIResponses(openai, client, options.model, endpoint)
    kind = OpenAICompletions if api == "completions" else OpenAIChat
    return kind(client, options.model, endpoint, cap, extra)


def _client(
    options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str], usual_url: str
) -> openai.AsyncOpenAI:
    url = usual_url if options.base_url is None else options.base_url
    key = require_key(endpoint, environ)
    return openai.AsyncOpenAI(base_url=url, **client_settings(openai, options, key))

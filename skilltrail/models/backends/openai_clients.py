"""Clients for OpenAI and for every server that speaks its protocol.

A compatible provider needs no code: `base_url`, `provider`, `key_env`, `model`.
"""

from __future__ import annotations

from typing import Any

import openai

from skilltrail.models.backends.openai_chat import OpenAIChat, OpenAICompletions
from skilltrail.models.backends.openai_responses import OpenAIResponses
from skilltrail.models.backends.sdk import HttpBackend, client_settings
from skilltrail.models.client.backend import Backend
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.client.identity import resolved_api
from skilltrail.models.environ import Environ
from skilltrail.models.registry import require_key
from skilltrail.params.model_options import RoleOptions

OPENAI_URL = "https://api.openai.com/v1"
MINIMAX_URLS = {
    "global_en": "https://api.minimax.io/v1",
    "cn_zh": "https://api.minimaxi.com/v1",
}


def openai_backend(options: RoleOptions, endpoint: Endpoint, environ: Environ) -> Backend:
    """Return the backend of OpenAI, or of `base_url`."""
    cap = "max_completion_tokens" if options.base_url is None else "max_tokens"
    client = _client(options, endpoint, environ, OPENAI_URL)
    return speaking_api(client, options, endpoint, cap)


def vllm_backend(options: RoleOptions, endpoint: Endpoint, environ: Environ) -> Backend:
    """Return the backend of a vLLM (or like) server, with an explicit thinking policy.

    `chat_template_kwargs` is sent only when the policy is not the server's default.
    """
    wanted = {"chat_template_kwargs": {"enable_thinking": options.thinking == "enabled"}}
    client = _client(options, endpoint, environ, str(options.base_url))
    return speaking_api(client, options, endpoint, thinking=wanted)


def minimax_backend(options: RoleOptions, endpoint: Endpoint, environ: Environ) -> Backend:
    """Return the backend of MiniMax: the region chooses the base URL."""
    wanted = {"thinking": {"type": options.thinking}}
    client = _client(options, endpoint, environ, MINIMAX_URLS[options.region])
    return speaking_api(client, options, endpoint, thinking=wanted)


def speaking_api(
    client: openai.AsyncOpenAI,
    options: RoleOptions,
    endpoint: Endpoint,
    cap: str = "max_tokens",
    thinking: dict[str, Any] | None = None,
) -> HttpBackend:
    """Return the backend of the API that the role speaks.

    `cap` is as in chats; `thinking` is sent where params set a policy of thinking.
    """
    api = resolved_api(options)[0]
    if api == "responses":
        return OpenAIResponses(openai, client, options.model, endpoint)
    kind = OpenAICompletions if api == "completions" else OpenAIChat
    extra = None if options.thinking == "server_default" else thinking
    return kind(client, options.model, endpoint, cap, extra)


def _client(
    options: RoleOptions, endpoint: Endpoint, environ: Environ, usual_url: str
) -> openai.AsyncOpenAI:
    url = usual_url if options.base_url is None else options.base_url
    key = require_key(endpoint, environ)
    return openai.AsyncOpenAI(base_url=url, **client_settings(openai, options, key))

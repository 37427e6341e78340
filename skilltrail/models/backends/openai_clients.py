"""Clients for OpenAI and for every server that speaks its protocol.

A compatible provider needs no code: `base_url`, `provider`, `key_env`, `model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import openai

from skilltrail.models.backends.openai_chat import OpenAIChat, OpenAICompletions
from skilltrail.models.backends.openai_responses import OpenAIResponses
from skilltrail.models.backends.openai_wire import Dialect
from skilltrail.models.backends.sdk import http_client
from skilltrail.models.client.backend import Wire
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.client.identity import resolved_api
from skilltrail.models.registry import default_workers, require_key
from skilltrail.params.model_options import RoleOptions

OPENAI_URL = "https://api.openai.com/v1"
MINIMAX_URLS = {
    "global_en": "https://api.minimax.io/v1",
    "cn_zh": "https://api.minimaxi.com/v1",
}
# Sent where a server asks for no key: the SDK insists on some text.
_NO_KEY = "none"


def openai_wire(options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]) -> Wire:
    """Return the wire to OpenAI, or to `base_url`."""
    own = options.base_url is None
    client = _client(options, endpoint, environ, OPENAI_URL)
    dialect = Dialect(cap="max_completion_tokens" if own else "max_tokens")
    return wire_for(client, options, endpoint, dialect)


def vllm_wire(options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]) -> Wire:
    """Return the wire to a vLLM (or like) server, with an explicit thinking policy.

    `chat_template_kwargs` is sent only when the policy is not the server's default.
    """
    extra: dict[str, Any] = {}
    if options.thinking != "server_default":
        wanted = options.thinking == "enabled"
        extra["chat_template_kwargs"] = {"enable_thinking": wanted}
    dialect = Dialect(extra_body=extra, template_opens_thinking=options.thinking != "disabled")
    client = _client(options, endpoint, environ, str(options.base_url))
    return wire_for(client, options, endpoint, dialect)


def minimax_wire(options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]) -> Wire:
    """Return the wire to MiniMax: the region chooses the base URL."""
    extra: dict[str, Any] = {}
    if options.thinking != "server_default":
        extra["thinking"] = {"type": options.thinking}
    client = _client(options, endpoint, environ, MINIMAX_URLS[options.region])
    return wire_for(client, options, endpoint, Dialect(extra_body=extra))


def wire_for(
    client: openai.AsyncOpenAI, options: RoleOptions, endpoint: Endpoint, dialect: Dialect
) -> Wire:
    """Return the wire of the API that the role speaks."""
    api = resolved_api(options)[0]
    if api == "responses":
        return OpenAIResponses(client, options.model, endpoint)
    if api == "completions":
        return OpenAICompletions(client, options.model, endpoint, dialect)
    return OpenAIChat(client, options.model, endpoint, dialect)


def timeout_of(options: RoleOptions) -> openai.Timeout:
    """Return the limits for connecting and for the rest of a call (seconds)."""
    return openai.Timeout(options.timeout_s, connect=options.connect_timeout_s, pool=None)


def _client(
    options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str], usual_url: str
) -> openai.AsyncOpenAI:
    key = require_key(endpoint, environ)
    return openai.AsyncOpenAI(
        api_key=_NO_KEY if key is None else key,
        base_url=usual_url if options.base_url is None else options.base_url,
        timeout=timeout_of(options),
        max_retries=0,
        http_client=http_client(openai, default_workers(options)),
    )

"""Clients for Anthropic and for every server that speaks the Messages API."""

from __future__ import annotations

from collections.abc import Mapping

import anthropic

from skilltrail.models.backends.anthropic_messages import AnthropicMessages
from skilltrail.models.backends.sdk import http_client
from skilltrail.models.client.backend import Wire
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.registry import default_workers, require_key
from skilltrail.params.model_options import RoleOptions

ANTHROPIC_URL = "https://api.anthropic.com"
# Sent where a server asks for no key: the SDK insists on some text.
_NO_KEY = "none"


def anthropic_wire(
    options: RoleOptions, endpoint: Endpoint, environ: Mapping[str, str]
) -> Wire:
    """Return the wire to Anthropic, or to `base_url`."""
    key = require_key(endpoint, environ)
    client = anthropic.AsyncAnthropic(
        api_key=_NO_KEY if key is None else key,
        base_url=ANTHROPIC_URL if options.base_url is None else options.base_url,
        timeout=anthropic.Timeout(
            options.timeout_s, connect=options.connect_timeout_s, pool=None
        ),
        max_retries=0,
        http_client=http_client(anthropic, default_workers(options)),
    )
    return AnthropicMessages(client, options.model, endpoint, options.thinking)

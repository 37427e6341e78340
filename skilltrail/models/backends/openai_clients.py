"""Clients for OpenAI and for every server that speaks its protocol.

A compatible provider needs no code: `base_url`, `provider`, `key_env`, `model`. Azure has three
ways to sign in: `api_key`, `azure_cli` (the login of the `az` program) and `managed_identity`
(of the machine, or of `client_id`); the last two need azure-identity (`skilltrail[azure]`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import openai

from skilltrail.core.errors import ParamError
from skilltrail.models.backends.openai_chat import OpenAIChat, OpenAICompletions
from skilltrail.models.backends.openai_responses import OpenAIResponses
from skilltrail.models.backends.sdk import HttpBackend, client_settings
from skilltrail.models.client.backend import Backend
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.client.identity import resolved_api
from skilltrail.models.environ import Environ
from skilltrail.models.errors import ModelConfigError
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


TokenProvider = Callable[[], Awaitable[str]]
# Where an identity token may go; a token sent elsewhere would be a stolen login.
AZURE_HOSTS = (".azure.com", ".azure.us", ".azure.cn", ".azure-api.net")


def azure_backend(options: RoleOptions, endpoint: Endpoint, environ: Environ) -> Backend:
    """Return the backend of the role's own Azure endpoint and deployment."""
    azure, credential, provider = options.azure, None, None
    by_key = azure.auth == "api_key"
    key = require_key(endpoint, environ) if by_key else None
    if not by_key:
        require_azure_host(endpoint.role, str(azure.endpoint))
        credential = credential_for(options)
        provider = token_provider(credential, options, endpoint)
    settings = client_settings(openai, options, key) | {
        "api_key": key,
        "azure_ad_token_provider": provider,
        "azure_endpoint": azure.endpoint,
        "azure_deployment": azure.deployment,
        "api_version": azure.api_version,
    }
    client = openai.AsyncAzureOpenAI(**settings)
    backend = speaking_api(client, options, endpoint, "max_completion_tokens")
    backend.credential = credential
    return backend


def require_azure_host(role: str, url: str) -> None:
    """Refuse to send an identity token anywhere but to Azure over HTTPS.

    Raises:
        ParamError: another host or scheme.
    """
    parts = urlsplit(url)
    host = parts.hostname
    if parts.scheme != "https" or host is None or not host.endswith(AZURE_HOSTS):
        raise ParamError(
            f"{role}.azure.endpoint",
            f"{parts.scheme}://{host} would receive an identity token",
            f"Use an https:// URL whose host ends with {', '.join(AZURE_HOSTS)}, "
            "or azure.auth: api_key",
        )


def credential_for(options: RoleOptions) -> Any:
    """Return the azure-identity credential of the chosen way to sign in.

    Raises:
        ModelConfigError: azure-identity is not installed.
    """
    try:
        from azure.identity.aio import AzureCliCredential, ManagedIdentityCredential
    except ImportError as error:
        raise ModelConfigError(
            f"azure.auth: {options.azure.auth}",
            "the package azure-identity is missing",
            "Install it: pip install 'skilltrail[azure]'",
        ) from error
    if options.azure.auth == "azure_cli":
        return AzureCliCredential()
    if options.azure.client_id is not None:
        return ManagedIdentityCredential(client_id=options.azure.client_id)
    return ManagedIdentityCredential()


def token_provider(credential: Any, options: RoleOptions, endpoint: Endpoint) -> TokenProvider:
    """Return the function that the SDK asks for a token before each call."""
    from azure.core.exceptions import AzureError

    async def token() -> str:
        try:
            found = await credential.get_token(options.azure.scope)
        except AzureError as error:
            raise ModelConfigError(
                f"{endpoint.role}: sign in to Azure by {options.azure.auth}",
                str(error),
                "Run `az login`"
                if options.azure.auth == "azure_cli"
                else f"Check {endpoint.role}.azure.client_id and the machine's identity",
            ) from error
        return str(found.token)

    return token

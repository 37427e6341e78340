"""`open_model(role, options)`: from a role's params to its model.

Backends are imported when they are asked for, so a run that needs no SDK loads none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from importlib import import_module
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from skilltrail.core.errors import ParamError
from skilltrail.core.redact import Redactor, secret_values
from skilltrail.models.backends.handoff import HandoffModel
from skilltrail.models.backends.replay import Records, ReplayModel
from skilltrail.models.client.backend import Backend
from skilltrail.models.client.budget import Account, Budget, BudgetedModel
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.client.client import ModelClient
from skilltrail.models.client.identity import default_workers, provider_label
from skilltrail.models.client.prices import price_of, require_price
from skilltrail.models.client.retry import endpoint_state
from skilltrail.models.environ import Environ, environment
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import Model
from skilltrail.params.model_options import EMBEDDED_BACKENDS, RoleOptions

# Module and function of each backend: (role's options, endpoint, environment) -> Backend; of
# the embedded ones: (role's options) -> Model.
FACTORIES: Mapping[str, str] = {
    "openai": "skilltrail.models.backends.openai_clients:openai_backend",
    "azure": "skilltrail.models.backends.openai_clients:azure_backend",
    "anthropic": "skilltrail.models.backends.anthropic_messages:anthropic_backend",
    "vllm": "skilltrail.models.backends.openai_clients:vllm_backend",
    "minimax": "skilltrail.models.backends.openai_clients:minimax_backend",
    "exec": "skilltrail.models.harness.generic:exec_backend",
    "codex_exec": "skilltrail.models.harness.codex:codex_backend",
    "claude_exec": "skilltrail.models.harness.claude:claude_backend",
    "local": "skilltrail.models.backends.local:local_model",
    "openvino": "skilltrail.models.backends.openvino:openvino_model",
}
USUAL_KEY = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "minimax": "MINIMAX_API_KEY",
}


def open_model(
    role: str,
    options: RoleOptions,
    *,
    environ: Environ | None = None,
    account: Account | None = None,
    records: Records | None = None,
    budget: Budget | None = None,
) -> Model:
    """Return the model of a role.

    `environ` holds keys (default: the process environment over `.env`); `account` is what the
    role's models share a budget by, `budget` one that is kept elsewhere; `records` is what a
    `replay` model answers from.

    Raises:
        ParamError: options that cannot work.
        ModelConfigError: a key or program that is not there, named.
    """
    options.check(role)
    if options.backend in EMBEDDED_BACKENDS:
        if budget is None:
            budget = Budget(role, options.budget, price_of(role, options), account)
        model: Model = _factory(options.backend)(options)
        return model if budget.unlimited else BudgetedModel(model, budget, options.max_tokens)
    if options.backend == "handoff":
        return HandoffModel(role, options)
    if options.backend == "replay":
        if records is None:
            raise ParamError(f"{role}.backend", "replay without records", "Give it a store")
        return ReplayModel(role, options, records)
    price = require_price(role, options)
    variables = environment() if environ is None else environ
    endpoint = endpoint_of(role, options)
    backend: Backend = _factory(options.backend)(options, endpoint, variables)
    if budget is None:
        budget = Budget(role, options.budget, price, account)
    return client_of(role, options, backend, variables, budget)


def client_of(
    role: str,
    options: RoleOptions,
    backend: Backend,
    environ: Environ,
    budget: Budget | None = None,
) -> ModelClient:
    """Put a client around a backend: how one of your own becomes a `Model`."""
    endpoint = endpoint_of(role, options)
    named = () if endpoint.key_env is None else (endpoint.key_env,)
    key, workers = "".join(environ.get(n, "") for n in named), default_workers(options)
    place = f"{options.backend} {options.base_url} {options.azure.endpoint} {options.region}"
    state = endpoint_state(place, hashlib.sha256(key.encode()).hexdigest(), workers)
    budget = Budget(role, options.budget) if budget is None else budget
    hidden = Redactor(secret_values(environ, named))
    return ModelClient(backend, endpoint, options, state, budget, hidden)


def endpoint_of(role: str, options: RoleOptions) -> Endpoint:
    """Return what messages say about a role's endpoint."""
    url = options.base_url if options.backend != "azure" else options.azure.endpoint
    label, key_env = provider_label(options), key_env_of(options)
    return Endpoint(role, label, options.model, key_env, "" if url is None else url)


def warning_of(role: str, options: RoleOptions) -> str | None:
    """Return a warning when the role's key would go over the network for all to read."""
    endpoint = endpoint_of(role, options)
    parts = urlsplit(endpoint.url)
    if parts.scheme != "http" or endpoint.key_env is None or _is_loopback(parts.hostname):
        return None
    return (
        f"{role}: the key in {endpoint.key_env} goes over plain http to {parts.hostname}: all "
        "between here and there can read it. Use https, or a tunnel"
    )


def _is_loopback(host: str | None) -> bool:
    try:
        return host is not None and ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or str(host).endswith(".localhost")


def key_env_of(options: RoleOptions) -> str | None:
    """Return the name of the variable that holds the role's key.

    A provider's usual key is never sent to another `base_url`: that key must be named.
    """
    if options.key_env is not None:
        return options.key_env
    if options.base_url is not None:
        return None
    if options.backend == "azure" and options.azure.auth != "api_key":
        return None
    return USUAL_KEY.get(options.backend)


def require_key(endpoint: Endpoint, environ: Environ) -> str | None:
    """Return the role's key, or None when it needs none.

    Blanks and line ends around it, which copying and files add, are no part of it.

    Raises:
        ModelConfigError: the variable that should hold it is not set, or holds what no key is.
    """
    if endpoint.key_env is None:
        return None
    key = environ.get(endpoint.key_env, "").strip()
    if key and key.isascii() and key.isprintable():
        return key
    found = "is not set" if not key else "holds a sign that cannot stand in a key"
    raise ModelConfigError(
        endpoint.asked,
        f"the environment variable {endpoint.key_env} {found}",
        f"Set {endpoint.key_env} in the environment or in a .env file "
        f"({endpoint.role}.key_env names the variable)",
    )


def _factory(backend: str) -> Callable[..., Any]:
    module, name = FACTORIES[backend].split(":")
    try:
        factory: Callable[..., Any] = getattr(import_module(module), name)
    except ImportError as error:
        remedy = "Install the package it names: pip install NAME"
        raise ModelConfigError(f"backend {backend}", str(error), remedy) from error
    return factory

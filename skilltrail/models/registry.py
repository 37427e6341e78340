"""`open_model(role, options)`: from a role's params to its model.

Backends are imported when they are asked for, so a run that needs no SDK loads none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from importlib import import_module

from skilltrail.core.errors import ParamError
from skilltrail.core.redact import Redactor, secret_values
from skilltrail.models.backends.replay import Records, ReplayModel
from skilltrail.models.client.backend import Wire
from skilltrail.models.client.budget import Account, Budget, Limited
from skilltrail.models.client.classify import Endpoint
from skilltrail.models.client.client import DoorModel, Settings
from skilltrail.models.client.identity import (
    identity_of,
    own_decoding,
    provider_label,
    resolved_api,
)
from skilltrail.models.client.prices import price_of, require_price
from skilltrail.models.client.retry import lane_for
from skilltrail.models.environ import environment
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import Model
from skilltrail.params.model_options import HARNESS_BACKENDS, RoleOptions

# Module and function of each backend: (role's options, endpoint, environment) -> Wire.
WIRES: Mapping[str, str] = {
    "openai": "skilltrail.models.backends.openai_clients:openai_wire",
    "azure": "skilltrail.models.backends.azure:azure_wire",
    "anthropic": "skilltrail.models.backends.anthropic_clients:anthropic_wire",
    "vllm": "skilltrail.models.backends.openai_clients:vllm_wire",
    "minimax": "skilltrail.models.backends.openai_clients:minimax_wire",
    "exec": "skilltrail.models.harness.generic:exec_wire",
    "codex_exec": "skilltrail.models.harness.codex:codex_wire",
    "claude_exec": "skilltrail.models.harness.claude:claude_wire",
}
USUAL_KEY = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "minimax": "MINIMAX_API_KEY",
}
_HARNESS_ABILITIES = {
    "codex_exec": ("schema", "vision"),
    "claude_exec": ("schema",),
    "exec": (),
}
_DEFAULT_WORKERS = 16
_DEFAULT_HARNESS_WORKERS = 2

WireFactory = Callable[[RoleOptions, Endpoint, Mapping[str, str]], Wire]


def open_model(
    role: str,
    options: RoleOptions,
    *,
    environ: Mapping[str, str] | None = None,
    account: Account | None = None,
    records: Records | None = None,
) -> Model:
    """Return the model of a role.

    `environ` holds keys (default: the process environment over `.env`); `account` is what the
    role's models share a budget by; `records` is what a `replay` model answers from.

    Raises:
        ParamError: options that cannot work.
        ModelConfigError: a key or program that is not there, named.
    """
    options.check(role)
    if options.backend == "local":
        budget = Budget(role, options.budget, price_of(role, options), account)
        model = _local(options)
        return model if budget.unlimited else Limited(model, budget, options.max_tokens)
    if options.backend == "replay":
        if records is None:
            raise ParamError(f"{role}.backend", "replay without records", "Give it a store")
        return ReplayModel(role, options, records)
    price = require_price(role, options)
    variables = environment() if environ is None else environ
    endpoint = endpoint_of(role, options)
    wire = _factory(options.backend)(options, endpoint, variables)
    return wrap_wire(
        role, options, wire, variables, Budget(role, options.budget, price, account)
    )


def wrap_wire(
    role: str,
    options: RoleOptions,
    wire: Wire,
    environ: Mapping[str, str],
    budget: Budget | None = None,
) -> DoorModel:
    """Put the door around a wire: how a backend of one's own becomes a `Model`."""
    endpoint = endpoint_of(role, options)
    key = environ.get(endpoint.key_env, "") if endpoint.key_env is not None else ""
    workers = default_workers(options)
    named = () if endpoint.key_env is None else (endpoint.key_env,)
    place = f"{options.backend} {options.base_url} {options.azure.endpoint} {options.region}"
    return DoorModel(
        wire,
        Settings(
            endpoint=endpoint,
            identity=identity_of(options),
            style=style_of(options),
            abilities=abilities_of(options),
            workers=workers,
            decoding=own_decoding(options),
            omit=options.omit,
            timeout_s=options.timeout_s,
            retry=options.retry,
            seeded=options.seed is not None or options.backend == "vllm",
        ),
        lane_for(place, hashlib.sha256(key.encode("utf-8")).hexdigest(), workers),
        Budget(role, options.budget) if budget is None else budget,
        Redactor(secret_values(environ, named)),
    )


def endpoint_of(role: str, options: RoleOptions) -> Endpoint:
    """Return what messages say about a role's endpoint."""
    return Endpoint(role, provider_label(options), options.model, key_env_of(options))


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


def require_key(endpoint: Endpoint, environ: Mapping[str, str]) -> str | None:
    """Return the role's key, or None when it needs none.

    Raises:
        ModelConfigError: the variable that should hold it is not set.
    """
    if endpoint.key_env is None:
        return None
    key = environ.get(endpoint.key_env)
    if not key:
        raise ModelConfigError(
            endpoint.asked,
            f"the environment variable {endpoint.key_env} is not set",
            f"Set {endpoint.key_env} in the environment or in a .env file "
            f"({endpoint.role}.key_env names the variable)",
        )
    return key


def default_workers(options: RoleOptions) -> int:
    """Return how many calls may be in flight when params do not say."""
    if options.workers > 0:
        return options.workers
    return _DEFAULT_HARNESS_WORKERS if options.backend in HARNESS_BACKENDS else _DEFAULT_WORKERS


def style_of(options: RoleOptions) -> str:
    """Return `completion` or `chat`."""
    if options.backend == "local":
        return options.style
    return "completion" if options.api == "completions" else "chat"


def abilities_of(options: RoleOptions) -> frozenset[str]:
    """Return what the model can do: as params say, else what the backend surely has.

    Only a provider's own endpoint is trusted with all three; compatible servers often take a
    schema or an image without a word and ignore it.
    """
    if options.backend in HARNESS_BACKENDS:
        usual = _HARNESS_ABILITIES[options.backend]
        return frozenset(
            {"files", *(usual if options.abilities is None else options.abilities)}
        )
    if options.abilities is not None:
        return frozenset(options.abilities)
    if options.backend == "azure" or options.base_url is None:
        own = frozenset({"schema", "tools", "vision"})
        return own if options.backend != "minimax" else frozenset({"tools"})
    api = resolved_api(options)[0]
    if options.backend == "anthropic" or api == "responses":
        return frozenset({"tools"})
    return frozenset({"schema", "tools"}) if api == "chat" else frozenset()


def _factory(backend: str) -> WireFactory:
    module, name = WIRES[backend].split(":")
    try:
        factory: WireFactory = getattr(import_module(module), name)
    except ImportError as error:
        raise ModelConfigError(
            f"backend {backend}",
            str(error),
            "Install what it needs: pip install skilltrail[all]",
        ) from error
    return factory


def _local(options: RoleOptions) -> Model:
    local = import_module("skilltrail.models.backends.local")
    model: Model = local.local_model(
        model=options.model,
        style=options.style,
        workers=options.workers,
        n_ctx=options.n_ctx,
        decoding=own_decoding(options),
    )
    return model

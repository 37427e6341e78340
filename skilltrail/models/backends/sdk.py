"""What both official SDKs have in common: their errors, told in our words.

Their own retries are off (`max_retries=0`): there is one retry layer, `models.client.retry`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from skilltrail.core.canon import value_of
from skilltrail.models.client.classify import Endpoint, classify
from skilltrail.models.errors import ModelConfigError, Transient

T = TypeVar("T")
_KEPT_ALIVE = 100  # connections that the SDKs keep open by themselves


def http_client(sdk: Any, workers: int) -> Any:
    """Return an HTTP client of the SDK's kind that keeps a connection open for each worker and
    follows no redirect: a key goes to the host that params name and to no other.

    With more calls in flight than connections kept, each call beyond them pays for a new one.
    """
    kind = sdk.DefaultAsyncHttpxClient
    if workers <= _KEPT_ALIVE:
        return kind(follow_redirects=False)
    library = sys.modules[kind.__mro__[1].__module__.split(".")[0]]
    limits = library.Limits(max_connections=None, max_keepalive_connections=workers)
    return kind(limits=limits, follow_redirects=False)


async def call(sdk: Any, endpoint: Endpoint, send: Callable[[], Awaitable[T]]) -> T:
    """Await `send()`, an SDK call, and raise its failures as ours.

    Raises:
        Refused, ModelError: see `skilltrail.models.client.classify`.
    """
    try:
        return await send()
    except sdk.APIStatusError as error:
        raise classify(
            endpoint, error.status_code, _body(error), error.response.headers
        ) from error
    except sdk.APITimeoutError as error:
        raise Transient(
            endpoint.asked, "connecting or reading timed out", billed=True
        ) from error
    except sdk.APIConnectionError as error:
        raise Transient(endpoint.asked, _cause(error), billed=_was_sent(error)) from error
    except (sdk.APIError, json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Transient(endpoint.asked, f"unusable answer: {error}", billed=True) from error
    except (TypeError, UnicodeEncodeError) as error:
        raise ModelConfigError(
            endpoint.asked, str(error), "The SDK does not take this"
        ) from error


def _body(error: Any) -> Any:
    return error.body if error.body is not None else error.response.text


def _cause(error: BaseException) -> str:
    cause = error.__cause__
    detail = "" if cause is None else f" ({type(cause).__name__}: {cause})"
    return f"connection failed{detail}"


def _was_sent(error: BaseException) -> bool:
    """Return whether the request may have reached the provider before the line broke."""
    return type(error.__cause__).__name__ not in ("ConnectError", "ConnectTimeout")


def malformed(endpoint: Endpoint, what: str) -> Transient:
    """Return the error for a 200 whose body is not what the protocol says."""
    return Transient(endpoint.asked, f"unusable answer: {what}", billed=True)


def arguments(text: str) -> Mapping[str, Any]:
    """Return a tool call's arguments.

    Broken JSON stays visible to the environment as {"_unparsed": text}: it is the model's
    output, to be judged, not a failure of the line.
    """
    try:
        value = value_of(text) if text else {}
    except ValueError:
        return {"_unparsed": text}
    return value if isinstance(value, dict) else {"_unparsed": text}


def arguments_text(value: Mapping[str, Any]) -> str:
    """Return a tool call's arguments as the text that `arguments` read them from."""
    unparsed = value.get("_unparsed")
    return unparsed if isinstance(unparsed, str) else json.dumps(value, ensure_ascii=False)


def present(**settings: Any) -> dict[str, Any]:
    """Return the settings that are not None: what is absent is not sent."""
    return {name: value for name, value in settings.items() if value is not None}


def count(holder: Any, name: str) -> int:
    """Return a token count that an answer may leave out."""
    value = getattr(holder, name, None)
    return value if isinstance(value, int) else 0

"""What the official SDKs have in common: one way in, and their errors told in our words.

Only their clients are used (sign-in, addresses, time limits, connections). A body goes out as
we wrote it and comes back as bytes, so that no shape of an answer can trip an SDK. Their own
retries are off (`max_retries=0`): there is one retry layer, `models.client.retry`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

from skilltrail.core.redact import redact
from skilltrail.models.client.classify import Endpoint, classify
from skilltrail.models.client.foreign import body_of, page_error
from skilltrail.models.client.identity import default_workers
from skilltrail.models.errors import ModelConfigError, ModelError, Transient
from skilltrail.models.protocol import Decoding, Reply, Request
from skilltrail.params.model_options import RoleOptions

# Sent where a server asks for no key: the SDKs insist on some text.
NO_KEY = "none"
_PER_CLIENT = 8  # calls in flight
_SURROUNDINGS = (
    *(name for one in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
      for name in (one, one.lower())),
    "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE",
)  # fmt: skip
# Failures of a connection that no second try can fix: the address itself is wrong.
_BAD_ADDRESS = ("UnsupportedProtocol", "InvalidURL", "LocalProtocolError")


class HttpBackend(ABC):
    """Base of every protocol spoken by an SDK's client.

    Attributes:
        sdk: the SDK's module.
        credential: what signs in, where it is more than a key; closed with the client.
    """

    credential: Any = None

    def __init__(self, sdk: ModuleType, client: Any, model: str, endpoint: Endpoint) -> None:
        self.sdk, self.client, self.model = sdk, client, model
        self.endpoint = replace(endpoint, url=str(client.base_url))

    @abstractmethod
    async def send(self, request: Request, decoding: Decoding) -> Reply:
        """See `skilltrail.models.client.backend.Backend`."""

    async def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the JSON object that the provider answers.

        Raises:
            Refused, ModelError: see `skilltrail.models.client.classify`.
        """
        sdk, asked, whole = self.sdk, self.endpoint.asked, {"model": self.model, **body}
        try:
            data: bytes = await self.client.post(path, cast_to=bytes, body=whole)
        except sdk.APIStatusError as error:
            raise self._refusal(error) from error
        except sdk.APITimeoutError as error:
            raise Transient(asked, "connecting or reading timed out", billed=True) from error
        except sdk.APIConnectionError as error:
            raise self._connection_error(error) from error
        except (TypeError, UnicodeEncodeError) as error:
            raise ModelConfigError(asked, str(error), "The SDK does not take this") from error
        return body_of(self.endpoint, data)

    async def close(self) -> None:
        await self.client.close()
        if self.credential is not None:
            await self.credential.close()

    def _refusal(self, error: Any) -> ModelError:
        status, text = error.status_code, error.response.text
        page = page_error(self.endpoint, text) if 400 <= status < 500 else None
        if page is not None and status not in (408, 413, 425, 429):
            return page
        body = error.body if error.body is not None else text
        return classify(self.endpoint, status, body, error.response.headers)

    def _connection_error(self, error: BaseException) -> ModelError:
        cause = error.__cause__
        kind = type(cause).__name__
        found = "connection failed" + ("" if cause is None else f" ({kind}: {cause})")
        if kind in _BAD_ADDRESS:
            return ModelConfigError(self.endpoint.asked, found, self.endpoint.address_remedy)
        remedy = f"Is a server at {self.endpoint.url} ({self.endpoint.role}.base_url)?"
        # Where no connection came about, the provider saw nothing of the call.
        sent = kind not in ("ConnectError", "ConnectTimeout")
        return Transient(self.endpoint.asked, found, remedy, billed=sent)


def client_settings(sdk: Any, options: RoleOptions, key: str | None) -> dict[str, Any]:
    """Return what the clients of both SDKs are made with, their address apart."""
    return {
        "api_key": NO_KEY if key is None else key,
        "timeout": sdk.Timeout(options.timeout_s, connect=options.connect_timeout_s, pool=None),
        "max_retries": 0,
        "http_client": http_client(sdk, default_workers(options)),
    }


def http_client(sdk: Any, workers: int) -> Any:
    """Return an HTTP client of the SDK's kind that keeps a connection open for each worker and
    follows no redirect: a key goes to the host that params name and to no other. Proxies and
    certificates are those of the environment.

    A client looks at every connection it keeps for each call, so that many are spread over
    several clients; the one with the fewest calls in flight takes the next.

    Raises:
        ModelConfigError: a proxy or a certificate of the environment cannot be used.
    """
    kind = sdk.DefaultAsyncHttpxClient
    library = sys.modules[kind.__mro__[1].__module__.split(".")[0]]
    try:
        return _made(kind, library, workers)
    except (ImportError, ValueError, OSError, library.InvalidURL) as error:
        raise _bad_surroundings(error) from error


def _bad_surroundings(error: Exception) -> ModelConfigError:
    """Return the error for a client that the environment's proxies or certificates spoil."""
    told = [name for name in _SURROUNDINGS if os.environ.get(name)]
    remedy = f"Check the environment variables {', '.join(told)}"
    if isinstance(error, ImportError):
        remedy += "; for a SOCKS proxy: pip install 'httpx[socks]'"
    return ModelConfigError(
        "connections to a provider", redact(f"{type(error).__name__}: {error}"), remedy
    )


def _made(kind: Any, library: ModuleType, workers: int) -> Any:
    if workers <= _PER_CLIENT:
        return kind(follow_redirects=False)
    limits = library.Limits(max_connections=None, max_keepalive_connections=workers)
    trusted = library.create_ssl_context()  # reads the certificates, once

    class Spread(kind):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(follow_redirects=False, verify=trusted)
            count = -(-workers // _PER_CLIENT)
            self._clients = [
                kind(limits=limits, follow_redirects=False, verify=trusted)
                for _ in range(count)
            ]
            self._in_flight = [0] * count

        async def send(self, request: Any, **options: Any) -> Any:
            at = self._in_flight.index(min(self._in_flight))
            self._in_flight[at] += 1
            try:
                return await self._clients[at].send(request, **options)
            finally:
                self._in_flight[at] -= 1

        async def aclose(self) -> None:
            await asyncio.gather(*(client.aclose() for client in self._clients))
            await super().aclose()

    return Spread()


def arguments_text(value: Mapping[str, Any]) -> str:
    """Return a tool call's arguments as the text that they were read from."""
    unparsed = value.get("_unparsed")
    return unparsed if isinstance(unparsed, str) else json.dumps(value, ensure_ascii=False)


def present(**settings: Any) -> dict[str, Any]:
    """Return the settings that are not None: what is absent is not sent."""
    return {name: value for name, value in settings.items() if value is not None}

"""Who may ask the live page anything.

A page of another site can make a browser send requests here. So the `Host` header must be one
of this server's own names (a foreign name that resolves to this machine is not), requests that
the browser marks as coming from elsewhere are refused, and a change needs JSON and a header
that no form can send. And all of it needs the token.

The token is needed on loopback too: other users of this machine can connect as well. A project
has one, and its server an address that works once; who opens it gets the token as
a cookie. Both stand in a file of mode 0600 in `.skilltrail`, where a second browser finds the
next address and a script the token (`Authorization: Bearer TOKEN`). The token outlives the
server, so that a page goes on when it is started again; deleting the file ends it.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from skilltrail.core.canon import loaded
from skilltrail.core.files import writing

BYTES = 32


class Pass:
    """The token and the one-time address of one server."""

    def __init__(self, state: Path, server: str) -> None:
        """Take `state` as the folder of the file, and `server` as the address served.

        Raises:
            SkilltrailError: the file cannot be written.
        """
        self.file = state / f"ui-{urlsplit(server).port}.json"
        self.token = self._kept()
        self._server = server
        self._renew()

    @property
    def address(self) -> str:
        return f"{self._server}?token={self._once}"

    def knows(self, given: str) -> bool:
        """Return whether `given` is the token."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def admits(self, given: str) -> bool:
        """Return whether `given` is what the one-time address says; if so it is used up.

        Raises:
            SkilltrailError: the next one cannot be written.
        """
        if not hmac.compare_digest(given.encode(), self._once.encode()):
            return False
        self._renew()
        return True

    def _kept(self) -> str:
        """Return the token of the server before, or a new one: only we may have read it."""
        try:
            with self.file.open("rb") as file:
                about = os.fstat(file.fileno())
                token = str(loaded(file.read())["token"])
        except (OSError, ValueError, KeyError, TypeError):
            return secrets.token_urlsafe(BYTES)
        ours = about.st_uid == os.geteuid() and about.st_mode & 0o077 == 0
        return token if ours and len(token) > BYTES else secrets.token_urlsafe(BYTES)

    def _renew(self) -> None:
        self._once = secrets.token_urlsafe(BYTES)
        text = json.dumps({"address": self.address, "token": self.token}) + "\n"
        with writing(self.file):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.unlink(missing_ok=True)  # never into a file that somebody else made
            made = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(made, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "skilltrail-token"
CLOSED = (
    "This page needs its token: open the address that `skilltrail ui` printed. It works once; "
    "the next one is in .skilltrail, in the file"
)
MARK = "x-skilltrail"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
MOST_BODY_BYTES = 64_000  # as an argument of a command, a value has to stay below 128 KiB
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


class Guard:
    """Stands before the application.

    Args:
        port: the port that the server listens on.
        admission: knows the token that a request must have.
        hosts: further names that this server may be asked by, without a port.
    """

    def __init__(
        self, app: App, *, port: int, admission: Pass, hosts: Iterable[str] = ()
    ) -> None:
        self._app, self._admission = app, admission
        names = [*LOOPBACK_NAMES, *(_bracketed(host) for host in hosts)]
        self._hosts = {f"{name}:{port}" for name in names}
        if port == 80:
            self._hosts |= set(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refusal(scope, headers)
        if refused is not None:
            await _answer(send, *refused)
            return
        if scope["method"] == "GET" and scope["path"] == "/":
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if self._admission.admits(given):
                await _answer(send, 303, "", self._entry())
                return
        if not self._knows(headers):
            await _answer(send, 401, f"{CLOSED} {self._admission.file.name}")
            return
        await self._app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: dict[bytes, str]) -> tuple[int, str] | None:
        host = headers.get(b"host", "").lower()
        if host not in self._hosts:
            return 421, "This server does not go by that name"
        origin = headers.get(b"origin")
        if origin is not None and origin != f"http://{host}":
            return 403, "Requests from other sites are refused"
        elsewhere = headers.get(b"sec-fetch-site", "none") not in ("same-origin", "none")
        if elsewhere and not _is_visit(scope, headers):
            return 403, "Requests from other sites are refused"
        if scope["method"] in ("GET", "HEAD"):
            return None
        if MARK.encode() not in headers or not _is_json(headers):
            return 403, "A change needs JSON and the header X-Skilltrail"
        # A body in chunks has no length that holds, whatever length is told beside it.
        chunked = b"transfer-encoding" in headers
        length = "" if chunked else headers.get(b"content-length", "")
        if not length.isascii() or not length.isdigit() or int(length) > MOST_BODY_BYTES:
            return 413, "The request is too large, or does not say how large it is"
        return None

    def _knows(self, headers: dict[bytes, str]) -> bool:
        scheme, _, given = headers.get(b"authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._admission.knows(given):
            return True
        try:
            cookies = SimpleCookie(headers.get(b"cookie", ""))
        except CookieError:
            return False
        return COOKIE in cookies and self._admission.knows(cookies[COOKIE].value)

    def _entry(self) -> list[tuple[bytes, bytes]]:
        """Return headers that keep the token in a cookie and take it out of the address."""
        cookie = f"{COOKIE}={self._admission.token}; Path=/; HttpOnly; SameSite=Strict"
        return [(b"set-cookie", cookie.encode()), (b"location", b"/")]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_visit(scope: Scope, headers: dict[bytes, str]) -> bool:
    """Return whether a person followed a link to the page itself: that changes nothing."""
    return (
        scope["method"] == "GET"
        and scope["path"] == "/"
        and headers.get(b"sec-fetch-mode") == "navigate"
        and headers.get(b"sec-fetch-dest") == "document"
    )


def _is_json(headers: dict[bytes, str]) -> bool:
    return headers.get(b"content-type", "").split(";")[0].strip() == "application/json"


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *HEADERS]
        await send(message)

    return sending


async def _answer(
    send: Send, status: int, text: str, more: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    body = f"{text}.\n".encode() if text else b""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *more, *HEADERS]
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

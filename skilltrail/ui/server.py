"""Serving the live page: loopback by default, a token beyond it."""

from __future__ import annotations

import secrets
import socket

import uvicorn

from skilltrail.core.errors import UsageError
from skilltrail.store.place import Place
from skilltrail.ui.app import Live
from skilltrail.ui.asking import Ask
from skilltrail.ui.guard import Guard, is_loopback
from skilltrail.ui.pages import FindRuns


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one.

    Raises:
        UsageError: the address cannot be bound.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(
            f"Listening on {host}:{port}", str(error), "Choose another --port or --host"
        ) from error


def new_token(host: str, *, always: bool) -> str | None:
    """Return a fresh token where one is needed."""
    return None if is_loopback(host) and not always else secrets.token_urlsafe(24)


def guarded(
    place: Place, find_runs: FindRuns, host: str, port: int, token: str | None
) -> Guard:
    """Return the application behind its guard."""
    names = [] if host in ("0.0.0.0", "::") else [host]
    if token is not None:
        names += [socket.gethostname(), socket.getfqdn(), *_addresses()]
    return Guard(Live(place, find_runs, Ask(place)).app(), port=port, token=token, hosts=names)


def serve(app: Guard, listening: socket.socket) -> None:
    """Serve until the process is asked to stop."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    uvicorn.Server(config).run(sockets=[listening])


def _addresses() -> list[str]:
    """Return this machine's own addresses, which people may type."""
    try:
        found = socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        return []
    return sorted({str(entry[4][0]).split("%")[0] for entry in found})

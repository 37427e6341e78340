"""Serving the live page: on loopback by default, to who has its token, bounded in number.

How many connections may wait, and how long, is bounded before anybody is known. One waits while
it has sent no whole request head. One that waits too long is dropped, and when too many wait,
the one that has waited longest makes room: a browser sends its request at once, so that it is
served while others hold on to half a request.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from skilltrail.core.errors import UsageError
from skilltrail.runtime.console import emit, say
from skilltrail.store.place import Place
from skilltrail.ui.app import Live
from skilltrail.ui.asking import Ask
from skilltrail.ui.guard import LOOPBACK_NAMES, Guard, Pass
from skilltrail.ui.pages import FindRuns

HEAD_S = 10.0  # to send a whole request head, or the next request
MOST_WAITING = 128
MOST_OPEN = 256  # pages that are followed included
BACKLOG = 64  # as many are accepted at a time, before any can be dropped


class Bounded(H11Protocol):
    """One connection. `waiting` holds those of the server that wait, longest first."""

    def __init__(self, waiting: dict[Bounded, asyncio.TimerHandle], **about: Any) -> None:
        super().__init__(**about)
        self._waiting = waiting

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._note()
        if len(self._waiting) > MOST_WAITING or len(self.connections) > MOST_OPEN:
            next(iter(self._waiting))._drop()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _note(self) -> None:
        """Take down whether this connection waits now."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif self not in self._waiting and not self.transport.is_closing():
            self._waiting[self] = self.loop.call_later(HEAD_S, self._drop)

    def _forget(self) -> None:
        timer = self._waiting.pop(self, None)
        if timer is not None:
            timer.cancel()

    def _drop(self) -> None:
        self._forget()
        self.transport.abort()


def told_once(say: Callable[[str], None]) -> Callable[[Any, dict[str, Any]], None]:
    """Return what an event loop does with errors outside requests: one line for each kind."""
    told: set[str] = set()

    def tell(loop: Any, context: dict[str, Any]) -> None:
        message = f"live page: {context['message']} ({context.get('exception', 'no cause')})"
        if message not in told and len(told) < 10:
            told.add(message)
            say(message)

    return tell


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


def serve(place: Place, find_runs: FindRuns, host: str, listening: socket.socket) -> None:
    """Serve until the process is asked to stop.

    Raises:
        SkilltrailError: the file that holds the token cannot be written.
    """
    port = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    admission = Pass(place.state, f"http://{shown}:{port}/")
    live = Live(place, find_runs, Ask(place)).app()
    app = Guard(live, port=port, admission=admission, hosts=_names(host))
    emit(f"live page: {admission.address}")
    say(f"the address works once; the next one is in {admission.file}, yours alone to read")
    say("stop it with Ctrl-C; a run that it started continues")
    asyncio.run(_serving(app, listening))


async def _serving(app: Any, listening: socket.socket) -> None:
    asyncio.get_running_loop().set_exception_handler(told_once(say))
    config = uvicorn.Config(
        app,
        http=partial(Bounded, {}),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        backlog=BACKLOG,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    await uvicorn.Server(config).serve(sockets=[listening])


def _names(host: str) -> list[str]:
    """Return the names and addresses that people may type for a server bound to `host`."""
    if host in LOOPBACK_NAMES:
        return []
    names = [host, socket.gethostname(), socket.getfqdn()]
    with suppress(OSError):
        found = socket.getaddrinfo(socket.gethostname(), None)
        names += sorted({str(entry[4][0]).split("%")[0] for entry in found})
    return [name for name in names if name not in ("0.0.0.0", "::")]

"""Serving the live page: on loopback by default, to who has its token, bounded in number."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from functools import partial
from typing import Any

import uvicorn

from skilltrail.core.errors import UsageError
from skilltrail.runtime.console import emit, say
from skilltrail.store.place import Place
from skilltrail.ui.app import Live
from skilltrail.ui.asking import Ask
from skilltrail.ui.connections import BACKLOG, Bounded, told_once
from skilltrail.ui.guard import LOOPBACK_NAMES, Guard
from skilltrail.ui.pages import FindRuns
from skilltrail.ui.passes import Pass


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

"""How many connections may wait, and how long: bounds that hold before anybody is known.

A connection waits while it has sent no whole request head. One that waits too long is dropped,
and when too many wait, the one that has waited longest makes room: a browser sends its request
at once, so that it is served while others hold on to half a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

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

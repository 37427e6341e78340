"""Where the calls of a role are kept: what the optimizer and the judge need of a store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from skilltrail.models.protocol import Reply


class Kept(Protocol):
    """The value that stands under a key; `reused` when nobody paid for it now."""

    @property
    def value(self) -> Mapping[str, Any]: ...

    @property
    def reused(self) -> bool: ...


class Facts(Protocol):
    """Recorded calls by key; the run's store is one."""

    async def get_or_make(
        self, kind: str, key: str, make: Callable[[], Awaitable[Mapping[str, Any]]]
    ) -> Kept:
        """Return the value under `key`; where absent, await `make()` and keep what it gives."""


class CountReply(Protocol):
    """Counts a reply, made now or recalled from the store, or a call without one (None)."""

    def __call__(self, reply: Reply | None, *, reused: bool) -> None: ...

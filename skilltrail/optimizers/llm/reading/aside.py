"""A reply read and screened, in a child process where it or what it is held against is bulk.

The time that reading takes grows with both, and a pattern that runs holds the interpreter: the
child keeps other work and Ctrl-C going, and is held to a deadline (`core.child`).
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from skilltrail.core.child import Child, TimeUp, off_the_loop
from skilltrail.models.protocol import Reply
from skilltrail.optimizers.llm.question import Reading
from skilltrail.optimizers.llm.reading.replies import Fault, read_reply

T = TypeVar("T")
Read = Callable[[Mapping[str, Any]], Reading[T]]
ReplyAttempt = tuple[
    "Fault | None", Reading[T], tuple[str, ...]
]  # with what had to be let pass

_BULK_CHARS = 10_000  # of a reply
_BULK_BYTES = 1_000_000  # of what it is held against
_CHILD = Child("skilltrail.optimizers.llm.reading.aside")


async def read_aside(
    reply: Reply, schema: str, read: Read[T], turn: asyncio.Lock
) -> ReplyAttempt[T]:
    """Return what a reply comes to: why there is no object of `schema`, or what `read` says.

    `turn` is held while the child is at work. A reply that is not read in time is a fault.
    """
    against = pickle.dumps((schema, read))
    if len(reply.text) <= _BULK_CHARS and len(against) <= _BULK_BYTES:
        return _heard(reply, schema, read)
    async with turn:
        try:
            asked = pickle.dumps((reply, against))
            said = await off_the_loop(_CHILD.stop, _CHILD.call, asked)
        except TimeUp as error:
            return Fault("too_slow", f"{error} to be read"), Reading(None), ()
    found: ReplyAttempt[T] = pickle.loads(said)
    return found


def answer(request: bytes) -> bytes:
    """Return what the child is asked for."""
    reply, against = pickle.loads(request)
    schema, read = pickle.loads(against)
    return pickle.dumps(_heard(reply, schema, read))


def _heard(reply: Reply, schema: str, read: Read[T]) -> ReplyAttempt[T]:
    found = read_reply(reply, schema)
    if isinstance(found, Fault):
        return found, Reading(None), ()
    reading = read(found.value)
    faults = (*found.broken, *reading.faults)
    return None, Reading(reading.value, faults, reading.dropped), found.repairs

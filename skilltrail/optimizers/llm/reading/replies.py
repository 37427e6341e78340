"""From a reply's text to one object that follows our schema, or a fault that says why not.

A reply must hold exactly one object of the asked kind. What it plainly says in another spelling
is read so (`spelling`). Its parts (edits, failures, notes) stand alone: a part that breaks the
schema is taken out and named, the others stay. Nothing is guessed: no first of several, no
number out of "3-5", no bracket put where one is missing.

The schemas lie in `schemas/replies/`; `asked_form` makes the strict form of one, which
providers with structured output hold a model to.

Where a reply, or what it is held against, is bulk, it is read and screened in a child process:
the time grows with both, and a pattern that runs holds the interpreter. The child keeps other
work and Ctrl-C going, and is held to a deadline (`core.child`).
"""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from jsonschema_rs import Draft202012Validator

from skilltrail.core import schemas
from skilltrail.core.canon import canonical, cleaned
from skilltrail.core.child import Child, TimeUp, off_the_loop
from skilltrail.models.protocol import Reply
from skilltrail.optimizers.llm.question import Parsed
from skilltrail.optimizers.llm.reading.scan import scan
from skilltrail.optimizers.llm.reading.spelling import respelled

_SHOWN_CHARS = 300
_SHOWN_FAULTS = 12
PARTS = ("edits", "suggestions", "failures", "notes")


@dataclass(frozen=True)
class ReplyFault:
    """A reply that cannot be used. `code` is one word for programs: `multiple_objects`, …"""

    code: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.code}: {self.sentence}"


@dataclass(frozen=True)
class ObjectFound:
    """The one object of a reply.

    Attributes:
        value: the object without its broken parts.
        broken: what is wrong with the parts that were taken out.
        repairs: what had to be let pass to read it, e.g. `control_characters`.
    """

    value: dict[str, Any]
    broken: tuple[str, ...] = ()
    repairs: tuple[str, ...] = field(default=())


def read_reply(reply: Reply, schema: str) -> ObjectFound | ReplyFault:
    """Return the object of kind `schema` (a name in `schemas/replies/`) that a reply holds."""
    if reply.finish == "length":
        return ReplyFault("truncated", "the reply was cut at the output limit")
    if reply.finish == "refusal":
        return ReplyFault("refused", "the model refused to answer")
    if reply.finish == "too_long":
        return ReplyFault("too_long", "the request exceeds the model's context")
    if not reply.text.strip():
        return ReplyFault("empty", "the reply holds no text")
    return read_object(reply.text, schema)


def read_object(text: str, schema: str) -> ObjectFound | ReplyFault:
    """Return the one object of kind `schema` in `text`, or why there is none."""
    found = scan(text)
    if any(sentence.startswith(("unfinished", "open_reasoning")) for sentence in found.broken):
        return _fault(found.broken[-1])
    objects = {canonical(value): value for value in cleaned(found.objects)}
    read = [respelled(value, schemas.load(f"replies/{schema}")) for value in objects.values()]
    judged = [(value, _errors(value, schema), done) for value, done in read]
    usable = [one for one in judged if not _outside_parts(one[1])]
    if len(usable) > 1:
        what = "the final object alone, without a draft or an example"
        return ReplyFault("multiple_objects", f"{len(usable)} objects fit; send {what}")
    if usable:
        value, errors, done = usable[0]
        return ObjectFound(
            *_without_broken_parts(value, errors), repairs=(*found.repairs, *done)
        )
    if judged:
        return ReplyFault("wrong_shape", "; ".join(_sentences(_outside_parts(judged[0][1]))))
    if found.broken:
        return _fault(found.broken[0])
    if found.others:
        return ReplyFault("expected_object", "found a list where one JSON object is asked for")
    return ReplyFault("expected_object", "found no JSON object")


def asked_form(schema: str) -> dict[str, Any]:
    """Return a schema in its strict form: each property required, no others, no unions."""
    strict = _strict(
        {k: v for k, v in schemas.load(f"replies/{schema}").items() if k[0] != "$"}
    )
    strict.pop("title", None)
    return strict


def quoted(value: object) -> str:
    """Return a JSON value in quotes for a message, at most `_SHOWN_CHARS` characters of it."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"


@dataclass(frozen=True)
class _Error:
    path: tuple[str | int, ...]
    message: str


def _errors(value: object, schema: str) -> list[_Error]:
    return [
        _Error(tuple(error.instance_path), error.message)
        for error in _validator(schema).iter_errors(value)
    ]


@cache
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(schemas.load(f"replies/{schema}"))


def _outside_parts(errors: Sequence[_Error]) -> list[_Error]:
    return [error for error in errors if not _is_of_part(error)]


def _is_of_part(error: _Error) -> bool:
    return len(error.path) > 1 and error.path[0] in PARTS


def _without_broken_parts(
    value: Mapping[str, Any], errors: Sequence[_Error]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the object with None in place of each broken part (numbers stay), and why."""
    kept = dict(value)
    for name, index in {(str(error.path[0]), error.path[1]) for error in errors}:
        kept[name] = [None if n == index else part for n, part in enumerate(kept[name])]
    return kept, tuple(_sentences(errors))


def _sentences(errors: Sequence[_Error]) -> list[str]:
    said = [f"{_place(error.path)}: {_clip(error.message)}" for error in errors]
    more = len(said) - _SHOWN_FAULTS
    return said if more <= 0 else [*said[:_SHOWN_FAULTS], f"and {more} more of the kind"]


def _place(path: tuple[str | int, ...]) -> str:
    if not path:
        return "the object"
    first, *rest = path
    return str(first) + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in rest)


def _clip(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"


def _fault(sentence: str) -> ReplyFault:
    code, _, rest = sentence.partition(": ")
    return ReplyFault(code, rest)


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    strict = {key: value for key, value in schema.items() if key != "properties"}
    kinds = strict.get("type")
    if isinstance(kinds, list) and "string" in kinds and "array" in kinds:
        strict["type"] = [kind for kind in kinds if kind != "array"]
        strict.pop("items")
    if "items" in strict:
        strict["items"] = _strict(strict["items"])
    if "properties" in schema:
        strict["properties"] = {k: _strict(v) for k, v in schema["properties"].items()}
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
    return strict


T = TypeVar("T")
Read = Callable[[Mapping[str, Any]], Parsed[T]]
ReplyAttempt = tuple[
    "ReplyFault | None", Parsed[T], tuple[str, ...]
]  # with what had to be let pass

_BULK_CHARS = 10_000  # of a reply
_BULK_BYTES = 1_000_000  # of what it is held against
_CHILD = Child("skilltrail.optimizers.llm.reading.replies")


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
            return ReplyFault("too_slow", f"{error} to be read"), Parsed(None), ()
    found: ReplyAttempt[T] = pickle.loads(said)
    return found


def answer(request: bytes) -> bytes:
    """Return what the child is asked for."""
    reply, against = pickle.loads(request)
    schema, read = pickle.loads(against)
    return pickle.dumps(_heard(reply, schema, read))


def _heard(reply: Reply, schema: str, read: Read[T]) -> ReplyAttempt[T]:
    found = read_reply(reply, schema)
    if isinstance(found, ReplyFault):
        return found, Parsed(None), ()
    reading = read(found.value)
    faults = (*found.broken, *reading.faults)
    return None, Parsed(reading.value, faults, reading.dropped), found.repairs

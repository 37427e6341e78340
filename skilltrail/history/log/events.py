"""An event: one decision of a run, chained to all that came before it.

An event is one line of canonical JSON, `{"data":…,"id":…,"prev":…,"seq":n,"type":…,"v":1}`. Its
id is the SHA-256 of the canonical form without `id`; since `prev` is inside, an id covers the
whole past. The bytes are the event: what is parsed from them is only a view.

Every type has a schema in `schemas/events/`, compiled once and checked when an event is made
and when its data are read. Data are read at first use, so that a question about one version
does not parse ten thousand rollouts.
"""

from __future__ import annotations

import builtins
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Generic, TypeVar

import msgspec
from jsonschema_rs import Draft202012Validator

from skilltrail.core import schemas
from skilltrail.core.canon import canonical, clean
from skilltrail.core.errors import FaultError
from skilltrail.history.log.types import CLASSES, type_of
from skilltrail.history.log.types.parts import EventPart

Said = TypeVar("Said", bound=EventPart)
VERSION = 1
_VERSION = b"1"
# Fields that are floats even when the number is whole.
SCORES = frozenset(
    {
        "hard",
        "soft",
        "mean",
        "mean_hard",
        "mean_soft",
        "before",
        "after",
        "after_max",
        "score",
        "p",
        "alpha",
        "tolerance",
        "mixed_weight",
        "min_coverage",
        "gain",
        "gain_low",
        "gain_high",
    }
)
_WHOLE = re.compile(rb'":-?[0-9]+[,}]')
_SCORE_NAMES = frozenset(name.encode() for name in SCORES)
_HEAD = b'{"data":'
_TAIL = re.compile(
    rb',"id":"(?P<id>[0-9a-f]{64})","prev":(?P<prev>null|"[0-9a-f]{64}")'
    rb',"seq":(?P<seq>[1-9][0-9]*),"type":"(?P<type>[a-z_.]+)","v":(?P<v>[0-9]+)}\Z'
)
_TAIL_BYTES = 320  # longer than any tail, so that a search needs not scan the data
_ID = b',"id":"'
_ID_BYTES = len(_ID) + 64 + 1


class Unreadable(FaultError):
    """The data of event `seq` cannot be read, though its bytes are those that its id names."""

    def __init__(self, seq: int, asked: str, found: str, remedy: str = "") -> None:
        super().__init__(asked, found, remedy)
        self.seq = seq


@dataclass(frozen=True)
class Event:
    """One event.

    Attributes:
        seq: line number in its log, from 1.
        prev: id of the event before, None for the first of all.
        line: the canonical bytes, without the newline.
    """

    seq: int
    type: str
    prev: str | None
    id: str
    line: bytes = field(repr=False, compare=False)
    v: int = VERSION

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """What happened, parsed from `line` and held against the schema; treat it as frozen.

        Raises:
            Unreadable: the data are no JSON, or break the schema of the event's type.
        """
        try:
            event = msgspec.json.decode(self.line)
            check_schema(event, self.name)
        except (ValueError, RecursionError) as error:
            raise Unreadable(self.seq, self.name, f"is not JSON: {error}") from error
        except FaultError as error:
            raise Unreadable(self.seq, error.asked, error.found, error.remedy) from error
        data: Mapping[str, Any] = event["data"]
        return data

    @cached_property
    def said(self) -> EventPart:
        """The same as an instance of the class of its type, read straight from `line`.

        Raises:
            Unreadable: the data are none of that class.
        """
        try:
            return _decoders()[self.type].decode(self.line).data
        except (LookupError, ValueError, RecursionError) as error:
            raise Unreadable(self.seq, self.name, _short(str(error))) from error

    def forget(self) -> None:
        """Drop what was read of `line`: it is read again where it is asked for."""
        for name in ("data", "said"):
            vars(self).pop(name, None)

    def read(self, kind: builtins.type[Said]) -> Said:
        """Return the data as an instance of `kind`, which is the class of the event's type.

        Raises:
            Unreadable: the data are none of that class.
        """
        if not isinstance(self.said, kind):
            raise TypeError(f"{self.name} is no {kind.__name__}")
        return self.said

    @property
    def name(self) -> str:
        """What messages call the event, e.g. `event 12 (gate.judged)`."""
        return f"event {self.seq} ({self.type})"


def read_all(events: Iterable[Event], kind: type[Said]) -> Iterator[Said]:
    """Yield what the events of a class say, in order; raises as `Event.read`."""
    name = type_of(kind)
    return (event.read(kind) for event in events if event.type == name)


def as_recorded(said: EventPart) -> tuple[str, dict[str, Any]]:
    """Return the type and the data of the event that says this."""
    return type_of(type(said)), msgspec.to_builtins(said)


def make_event(type: str, data: Mapping[str, Any], *, seq: int, prev: str | None) -> Event:
    """Return the event, checked against its schema.

    Strings are cleaned of lone surrogates and whole-number scores become floats, so that equal
    decisions have equal bytes.

    Raises:
        FaultError: the data break the schema, or hold something that is not finite JSON.
    """
    body = {"v": VERSION, "seq": seq, "type": type, "prev": prev, "data": recorded(dict(data))}
    try:
        id = hashlib.sha256(canonical(body).encode()).hexdigest()
    except (TypeError, ValueError) as error:
        raise FaultError(
            f"event {seq} ({type})", str(error), "Record JSON values only"
        ) from error
    event = {**body, "id": id}
    check_schema(event, f"event {seq} ({type})")
    return Event(seq, type, prev, id, canonical(event).encode())


def parse_event(line: bytes, where: str) -> Event:
    """Return the event that `line` (without its newline) holds; its data are not read yet.

    Raises:
        FaultError: names `where`; the line is no event, or its id is not that of its bytes.
    """
    cut = line.rfind(_ID, max(0, len(line) - _TAIL_BYTES))
    match = _TAIL.match(line, cut) if cut > 0 else None
    if match is None or not line.startswith(_HEAD):
        raise FaultError(where, *_instead(line))
    id, prev, seq, type, v = match.groups()
    if v != _VERSION and int(v) != VERSION:
        raise FaultError(where, f"has version {int(v)}", "Read it with a newer Skilltrail")
    hashed = hashlib.sha256(memoryview(line)[:cut])
    hashed.update(line[cut + _ID_BYTES :])
    named = id.decode()
    if hashed.hexdigest() != named:
        raise FaultError(where, "its id does not match its content", "The line was changed")
    before = None if prev == b"null" else prev[1:-1].decode()
    return Event(int(seq), type.decode(), before, named, line)


def _instead(line: bytes) -> tuple[str, str]:
    """Return what stands in the place of an event, and what to do about it."""
    restore = "Another program wrote the file: take it back, `git restore FILE`"
    for is_so, found, remedy in (
        (line.endswith(b"\r"), "ends in CR LF: a program changed the line ends", restore),
        (line.startswith(b"\xef\xbb\xbf"), "begins with a byte order mark", restore),
        (line.startswith((b"\xff\xfe", b"\xfe\xff")), "is UTF-16", restore),
        (
            line.startswith((b"<<<<<<<", b"=======", b">>>>>>>")),
            "is a mark of a merge that is not resolved",
            "`skilltrail doctor` prints the command that chooses a side",
        ),
        (line.startswith(b"version https://git-lfs"), "is a pointer", "git lfs pull"),
    ):
        if is_so:
            return found, remedy
    return "is not an event line", ""


def recorded(value: Any, name: str = "") -> Any:
    """Return `value` as it is recorded: clean strings, scores as floats, lists for tuples."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): recorded(item, key) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [recorded(item) for item in value]
    if name in SCORES and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def is_canonical(event: Event) -> bool:
    """True when the event's bytes are the one canonical form of what they say."""
    try:
        data = canonical(event.data).encode()
    except UnicodeEncodeError:
        return False
    end = len(_HEAD) + len(data)
    same = event.line.startswith(_HEAD + data) and event.line[end : end + 6] == b',"id":'
    return same and not _holds_whole_score(event.line)


def _holds_whole_score(line: bytes) -> bool:
    """True where a score is written as a whole number. Few numbers of a line are whole, so
    that it takes a fifth of the time to look for these and not for all names of scores."""
    return any(
        line[line.rfind(b'"', 0, found.start()) + 1 : found.start()] in _SCORE_NAMES
        for found in _WHOLE.finditer(line)
    )


def check_schema(event: Mapping[str, Any], where: str) -> None:
    """Check a whole event against the schema of its type.

    Raises:
        FaultError: names `where`, the field and what was found.
    """
    validator = _validators().get(event["type"])
    if validator is None:
        raise FaultError(where, f"unknown event type {event['type']!r}")
    if validator.is_valid(event):
        return
    error = next(iter(validator.iter_errors(event)))
    path = ".".join(str(part) for part in error.instance_path)
    found = f"field {path!r}: {error.message}" if path else error.message
    raise FaultError(where, _short(found), f"See schemas/events/{event['type']}.schema.json")


def _short(text: str, most: int = 400) -> str:
    return text if len(text) <= most else f"{text[:most]} …"


class _Line(msgspec.Struct, Generic[Said], frozen=True):
    """A line of the log, of which the data alone are read."""

    data: Said


@cache
def _decoders() -> Mapping[str, msgspec.json.Decoder[_Line[EventPart]]]:
    return {type: msgspec.json.Decoder(_Line[said]) for type, said in CLASSES.items()}  # type: ignore[valid-type]


@cache
def _validators() -> dict[str, Draft202012Validator]:
    return {
        name: Draft202012Validator(schemas.load(f"events/{name}"))
        for name in schemas.names("events")
    }

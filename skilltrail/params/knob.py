"""A knob: one typed value a person may set, with its meaning and bounds.

A section of params is a frozen dataclass whose fields are knobs (or further sections). To add a
knob, add one line:

    lr: int = knob(4, "Most merged edits applied per step.", low=1)

A plain field with a default works too. Types: bool, int, float, str, `X | None`,
`tuple[X, ...]`, a nested dataclass, and `Mapping[str, Any]` (taken as it stands).
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from skilltrail.params.tree import Node, plain

# Exponent numbers without a dot are numbers to YAML 1.2 and text to YAML 1.1; tools that write
# `1e-05` for us disagree, so this one spelling is read as a number wherever a float is due.
EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")
WORDS = {"yes": True, "on": True, "no": False, "off": False}
TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
MOST_WHOLE = 2**53  # beyond it other readers of JSON and YAML round


class Mismatch(Exception):
    """A value does not fit its knob; `str(error)` says what was expected and found."""


@dataclass(frozen=True)
class Knob:
    """What is known about one knob.

    Attributes:
        key: dotted name below its section, e.g. `limit.train`.
        type: the field's type.
        low, high: inclusive bounds of a number, or None.
        choices: the only values allowed, or ().
        result_changing: False for what cannot change a result (workers, time limits, paths
            whose content is keyed by itself).
        scorer: True for what an environment's scorer alone reads: no part of rollout keys,
            since scores are computed from trajectories.
        auto: True where the word `auto` stands for None.
        read_when: (key, values): the knob is read only while that other knob has one of
            those values; None = always.
        idle: the value under which the knob says nothing, so that runs from before it was
            there keep their identity; None = there is none.
    """

    key: str = ""
    type: Any = None
    default: Any = None
    doc: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    result_changing: bool = True
    scorer: bool = False
    auto: bool = False
    read_when: tuple[str, tuple[Any, ...]] | None = None
    idle: Any = None

    @property
    def is_section(self) -> bool:
        """Whether this is a nested dataclass of knobs."""
        return isinstance(self.type, type) and dataclasses.is_dataclass(self.type)

    @functools.cached_property
    def kind(self) -> Any:
        """The type without None."""
        if get_origin(self.type) in (Union, types.UnionType):
            return next(arg for arg in get_args(self.type) if arg is not type(None))
        return self.type

    @property
    def optional(self) -> bool:
        """Whether null is a value."""
        return self.kind is not self.type


def knob(default: Any, doc: str, **about: Any) -> Any:
    """Return a dataclass field with a default, a meaning and bounds; see `Knob`."""
    metadata = {"knob": Knob(doc=doc, **about)}
    if isinstance(default, Mapping):
        return dataclasses.field(default_factory=lambda: default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


# A knob of speed, place or spending: no result depends on it.
operational = functools.partial(knob, result_changing=False)


def derived(make: Callable[[], Any]) -> Any:
    """Return a field that the reader fills and no person can set."""
    return dataclasses.field(
        default_factory=make, compare=False, repr=False, metadata={"derived": True}
    )


def fields_of(cls: type, prefix: str = "") -> Iterator[Knob]:
    """Yield every field a person may set, knobs and sections, in order of declaration."""
    hints = get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if field.init and "derived" not in field.metadata:
            made = (
                field.default if field.default_factory is MISSING else field.default_factory()
            )
            yield dataclasses.replace(
                field.metadata.get("knob", Knob()),
                key=prefix + field.name,
                type=hints[field.name],
                default=made,
            )


def knobs_of(cls: type, prefix: str = "") -> Iterator[Knob]:
    """Yield every knob of a section and of the sections below it, in order of declaration."""
    for field in fields_of(cls, prefix):
        if field.is_section:
            yield from knobs_of(field.type, f"{field.key}.")
        else:
            yield field


def value_at(section: Any, key: str) -> Any:
    """Return the value of a dotted key, e.g. `limit.train`, in a section."""
    return functools.reduce(getattr, key.split("."), section)


def result_values(section: Any, *, scorer: bool = True) -> dict[str, Any]:
    """Return the values in a section that can change a result, by dotted key.

    Without `scorer`, those alone that can change a rollout.
    """
    return {
        knob.key: value_at(section, knob.key)
        for knob in knobs_of(type(section))
        if knob.result_changing and (scorer or not knob.scorer)
    }


def convert(node: Node, knob: Knob) -> Any:
    """Return the value of `node` as the type of `knob`.

    Raises:
        Mismatch: wrong type, out of bounds, or none of the choices.
    """
    if knob.optional and (node.value is None or (knob.auto and node.value == "auto")):
        return None
    if get_origin(knob.kind) is tuple and isinstance(node.value, list):
        return tuple(_converted(entry, get_args(knob.kind)[0], knob) for entry in node.value)
    return _converted(node, knob.kind, knob)


def _converted(node: Node, kind: Any, knob: Knob) -> Any:
    hint = kind
    if kind in (int, float):
        low = -MOST_WHOLE if knob.low is None else knob.low
        high = MOST_WHOLE if knob.high is None else knob.high
        hint = Annotated[kind, msgspec.Meta(ge=low, le=high)]
    elif knob.choices and kind is str:
        hint = Literal[knob.choices]
    try:
        return msgspec.convert(_spelled(node, kind), hint)
    except msgspec.ValidationError as error:
        said = f"expected {expectation(knob)}, found {found(node, kind)}{_hint(node, kind)}"
        raise Mismatch(said) from error


def _spelled(node: Node, kind: Any) -> Any:
    """Return the value, where YAML 1.1 spells a number or a truth value otherwise as that."""
    value = node.value
    if isinstance(value, str) and kind is bool and not node.quoted:
        return WORDS.get(value.lower(), value)
    if isinstance(value, str) and kind is float and EXPONENT.fullmatch(value):
        return float(value)
    return plain(node)


def expectation(knob: Knob) -> str:
    """Return in words what a knob takes, e.g. `a whole number of at least 1`."""
    if knob.choices:
        return "one of " + ", ".join(knob.choices)
    if get_origin(knob.kind) is tuple:
        words = "a list, each entry " + TYPE_NAMES[get_args(knob.kind)[0]]
    else:
        words = TYPE_NAMES.get(knob.kind, "a mapping")
    if knob.low is not None and knob.high is not None:
        words += f" from {knob.low} to {knob.high}"
    elif knob.low is not None:
        words += f" of at least {knob.low}"
    elif knob.high is not None:
        words += f" of at most {knob.high}"
    return words + (", or auto" if knob.auto else ", or null" if knob.optional else "")


def found(node: Node, expected: Any = None) -> str:
    """Return in words what stands in a file, e.g. `the text '4'`."""
    value = node.value
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return f"{str(value).lower()} (true or false)"
    if isinstance(value, (int, float)) and not -MOST_WHOLE <= value <= MOST_WHOLE:
        written = (node.text or str(value))[:40]
        finite = isinstance(value, int) or math.isfinite(value)
        return f"{written}, {'too large' if finite else 'not finite'}"
    if isinstance(value, (int, float)):
        fits = expected in (type(value), float)
        return f"{node.text or value}" + ("" if fits else f" ({TYPE_NAMES[type(value)]})")
    if isinstance(value, str):
        return f"the text {value if len(value) <= 60 else value[:57] + '...'!r}"
    return "a list" if isinstance(value, list) else "a mapping"


def _hint(node: Node, kind: Any) -> str:
    """Return the way out where one is plain to see, else ""."""
    value = node.value
    if isinstance(value, str):
        if kind is bool and value.lower() in {"true", "false", *WORDS}:
            return "; write it without quotes"
        if kind in (int, float) and re.fullmatch(r"[-+]?[0-9]+(\.[0-9]+)?", value):
            return "; write it without quotes"
    if kind is bool and isinstance(value, int) and value in (0, 1):
        return f"; write {'true' if value else 'false'}"
    if kind is str and isinstance(value, (bool, int, float)):
        return "; put it in quotes"
    return ""

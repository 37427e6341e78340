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
from typing import Any, Union, get_args, get_origin, get_type_hints

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
        read_when: (key, values): the knob is read only while that other knob has one of
            those values; None = always.
    """

    key: str
    type: Any
    default: Any
    doc: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    result_changing: bool = True
    scorer: bool = False
    read_when: tuple[str, tuple[Any, ...]] | None = None


def knob(
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    result_changing: bool = True,
    scorer: bool = False,
    read_when: tuple[str, tuple[Any, ...]] | None = None,
) -> Any:
    """Return a dataclass field with a default, a meaning and bounds; see `Knob`."""
    about = {
        "doc": doc,
        "low": low,
        "high": high,
        "choices": choices,
        "result_changing": result_changing,
        "scorer": scorer,
        "read_when": read_when,
    }
    if isinstance(default, Mapping):
        return dataclasses.field(default_factory=lambda: default, metadata={"knob": about})
    return dataclasses.field(default=default, metadata={"knob": about})


def derived(make: Callable[[], Any]) -> Any:
    """Return a field that the reader fills and no person can set."""
    return dataclasses.field(
        default_factory=make, compare=False, repr=False, metadata={"derived": True}
    )


def fields_of(cls: type) -> Iterator[tuple[str, Any, Any, Mapping[str, Any]]]:
    """Yield (name, type, default, knob metadata) of every field a person may set, in order."""
    hints = get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if field.init and "derived" not in field.metadata:
            default = field.default
            if default is MISSING and field.default_factory is not MISSING:
                default = field.default_factory()
            yield field.name, hints[field.name], default, field.metadata.get("knob", {})


def is_section(hint: Any) -> bool:
    """Return whether a field's type is a nested dataclass of knobs."""
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def knobs_of(cls: type, prefix: str = "") -> Iterator[Knob]:
    """Yield every knob of a section and of the sections below it, in order of declaration."""
    for name, hint, default, about in fields_of(cls):
        if is_section(hint):
            yield from knobs_of(hint, f"{prefix}{name}.")
        else:
            yield Knob(f"{prefix}{name}", hint, default, **about)


def result_values(section: Any, *, scorer: bool = True) -> dict[str, Any]:
    """Return the values in a section that can change a result, by dotted key.

    Without `scorer`, those alone that can change a rollout.
    """
    return {
        knob.key: functools.reduce(getattr, knob.key.split("."), section)
        for knob in knobs_of(type(section))
        if knob.result_changing and (scorer or not knob.scorer)
    }


def convert(node: Node, knob: Knob) -> Any:
    """Return the value of `node` as the type of `knob`.

    Raises:
        Mismatch: wrong type, out of bounds, or none of the choices.
    """
    value = _typed(node, knob.type, knob)
    for one in value if isinstance(value, tuple) else (value,):
        _check_range(one, knob)
    return value


def expectation(knob: Knob) -> str:
    """Return in words what a knob takes, e.g. `a whole number of at least 1`."""
    if knob.choices:
        return "one of " + ", ".join(knob.choices)
    kind, optional = _without_none(knob.type)
    if get_origin(kind) is tuple:
        words = "a list, each entry " + TYPE_NAMES[get_args(kind)[0]]
    elif kind in TYPE_NAMES:
        words = TYPE_NAMES[kind]
    else:
        words = "a mapping"
    if knob.low is not None and knob.high is not None:
        words += f" from {knob.low} to {knob.high}"
    elif knob.low is not None:
        words += f" of at least {knob.low}"
    elif knob.high is not None:
        words += f" of at most {knob.high}"
    return words + (", or null" if optional else "")


def found(node: Node) -> str:
    """Return in words what stands in a file, e.g. `the text '4'`."""
    value = node.value
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return f"{str(value).lower()} (true or false)"
    if isinstance(value, int):
        return f"{node.text or value} (a whole number)"
    if isinstance(value, float):
        return f"{node.text or value} (a number)"
    if isinstance(value, str):
        return f"the text {value if len(value) <= 60 else value[:57] + '...'!r}"
    return "a list" if isinstance(value, list) else "a mapping"


def _typed(node: Node, hint: Any, knob: Knob) -> Any:
    kind, optional = _without_none(hint)
    value = node.value
    if value is None and optional:
        return None
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(_typed(entry, get_args(kind)[0], knob) for entry in value)
    if kind is bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and not node.quoted and value.lower() in WORDS:
            return WORDS[value.lower()]
    elif kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    elif kind is float:
        return _number(node, knob)
    elif kind is str and isinstance(value, str):
        return value
    elif get_origin(kind) in (Mapping, dict) and isinstance(value, dict):
        return plain(node)
    raise Mismatch(f"expected {expectation(knob)}, found {found(node)}{_hint(node, kind)}")


def _number(node: Node, knob: Knob) -> float:
    value = node.value
    if isinstance(value, str) and EXPONENT.fullmatch(value):
        value = float(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST_WHOLE:
        return float(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        written = (node.text or str(value))[:40]
        what = f"{written}, not finite" if isinstance(value, float) else f"{written}, too large"
        raise Mismatch(f"expected {expectation(knob)}, found {what}")
    raise Mismatch(f"expected {expectation(knob)}, found {found(node)}{_hint(node, float)}")


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
    if kind is str and value is not None and not isinstance(value, (list, dict)):
        return "; put it in quotes"
    return ""


def _check_range(value: Any, knob: Knob) -> None:
    if knob.choices and value is not None and value not in knob.choices:
        raise Mismatch(f"expected {expectation(knob)}, found {value!r}")
    if isinstance(value, int) and abs(value) > MOST_WHOLE:
        digits = len(str(abs(value)))
        raise Mismatch(f"expected {expectation(knob)}, found one of {digits} digits: too large")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        below = knob.low is not None and value < knob.low
        above = knob.high is not None and value > knob.high
        if below or above:
            raise Mismatch(f"expected {expectation(knob)}, found {value}")


def _without_none(hint: Any) -> tuple[Any, bool]:
    """Return (type without None, whether None is allowed)."""
    if get_origin(hint) in (Union, types.UnionType):
        rest = [arg for arg in get_args(hint) if arg is not type(None)]
        return rest[0], len(rest) < len(get_args(hint))
    return hint, False

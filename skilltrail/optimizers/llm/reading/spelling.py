"""What a reply plainly says in another spelling: `"Append"`, `"insert-after"`, `"3"` for 3.

Only what can mean one thing is read so, by the schema: a word of a closed list or a key in
other case, hyphens or blanks; an entry of a ranking written as a text of digits; an id written
as a number; one text where a list of texts is asked for, and one object where a list of them
is; lines in a list where a text is; JSON in a text where its value is asked for; an object
inside another that says nothing else (`{"patch": {…}}`, a call of a function in words). What
was done is told, and recorded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from skilltrail.core.canon import value_of
from skilltrail.skill.untrusted import same_word

SPELLING, DIGITS, SINGLE, WRAPPED = "spelling", "digits", "single_text", "wrapped"
SINGLE_OBJECT, LINES, IN_TEXT = "single_object", "lines", "json_in_text"
_DIGITS = re.compile(r"\s*[0-9]{1,9}\s*")
_NUMBERS = re.compile(r"\s*[0-9]{1,9}(?:\s*,\s*[0-9]{1,9})*\s*")


def respelled(value: Any, schema: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """Return the JSON value as the schema spells it, and what was done, in order of name."""
    inside = _unwrapped(value, schema.get("properties", {}))
    done: set[str] = set() if inside is value else {WRAPPED}
    return _read(inside, schema, done), tuple(sorted(done))


def _unwrapped(value: Any, properties: Mapping[str, Any]) -> Any:
    """Return the one object inside one that has no property of its own; else `value`."""
    if not isinstance(value, Mapping) or _names_any(value, properties):
        return value
    parts = (_in_text(part, "{") for part in value.values())
    inside = [part for part in parts if isinstance(part, Mapping)]
    return inside[0] if len(inside) == 1 and _names_any(inside[0], properties) else value


def _names_any(value: Mapping[str, Any], properties: Mapping[str, Any]) -> bool:
    return any(key in properties or same_word(key, properties) is not None for key in value)


def _read(value: Any, schema: Mapping[str, Any], done: set[str]) -> Any:
    types = schema.get("type", ())
    types = (types,) if isinstance(types, str) else tuple(types)
    value = _of_type(value, types, schema, done)
    if isinstance(value, Mapping):
        return _object(value, schema.get("properties", {}), done)
    if isinstance(value, list):
        return [_entry(part, schema.get("items", {}), done) for part in value]
    if isinstance(value, str):
        return _word(value, schema, done)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number and schema.get("type") == "string":
        done.add(DIGITS)
        return str(value)
    return value


def _of_type(
    value: Any, types: tuple[str, ...], schema: Mapping[str, Any], done: set[str]
) -> Any:
    """Return a value of another type than asked for as the one that it plainly is."""
    each = schema.get("items", {}).get("type")
    if isinstance(value, str) and types and "string" not in types:
        begins = "[" if "array" in types else "{"
        inside = _in_text(value, begins) if {"array", "object"} & set(types) else value
        if isinstance(inside, list | dict):
            done.add(IN_TEXT)
            value = inside
        elif each == "integer" and _NUMBERS.fullmatch(value):
            done.add(DIGITS)
            value = [int(part) for part in value.split(",")]
        elif each == "string":
            done.add(SINGLE)
            value = [value]
    if isinstance(value, Mapping) and each == "object" and "object" not in types:
        done.add(SINGLE_OBJECT)
        return [value]
    lines = (
        isinstance(value, list) and len(value) > 0 and all(isinstance(v, str) for v in value)
    )
    if lines and "string" in types and "array" not in types and "enum" not in schema:
        done.add(LINES)
        return "\n".join(value)
    return value


def _in_text(value: Any, begins: str) -> Any:
    """Return the JSON value that a text is as a whole; else `value`."""
    if not isinstance(value, str) or not value.lstrip().startswith(begins):
        return value
    try:
        return value_of(value)
    except ValueError:
        return value


def _object(
    value: Mapping[str, Any], properties: Mapping[str, Any], done: set[str]
) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, part in value.items():
        known = None if key in properties else same_word(key, properties)
        if known is not None and known not in value and known not in read:
            done.add(SPELLING)
            key = known
        read[key] = _read(part, properties.get(key, {}), done)
    return read


def _entry(value: Any, schema: Mapping[str, Any], done: set[str]) -> Any:
    """Read an entry of a list; the one number of a budget is asked for again instead."""
    if isinstance(value, str) and schema.get("type") == "integer" and _DIGITS.fullmatch(value):
        done.add(DIGITS)
        return int(value)
    return _read(value, schema, done)


def _word(value: str, schema: Mapping[str, Any], done: set[str]) -> str:
    words = [word for word in schema.get("enum", ()) if isinstance(word, str)]
    if value not in words and (known := same_word(value, words)) is not None:
        done.add(SPELLING)
        return known
    return value

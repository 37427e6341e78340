"""The JSON Schema of `params.yaml`, made from the knobs: `schemas/params.schema.json`.

It serves editors and other languages. `load_params` alone decides: a schema cannot say how two
knobs depend on each other.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin

from skilltrail.params.fields import Params
from skilltrail.params.knob import Knob, fields_of, is_section

DRAFT = "https://json-schema.org/draft/2020-12/schema"
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def params_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) of the whole file."""
    return {"$schema": DRAFT, "title": "params.yaml", **section_schema(Params)}


def section_schema(cls: type) -> dict[str, Any]:
    """Return the schema of one section; no key is required and none may be added."""
    properties = {
        name: section_schema(hint)
        if is_section(hint)
        else knob_schema(Knob(name, hint, default, **about))
        for name, hint, default, about in fields_of(cls)
    }
    return {"type": "object", "additionalProperties": False, "properties": properties}


def knob_schema(knob: Knob) -> dict[str, Any]:
    """Return the schema of one knob, with its meaning and its default."""
    schema = type_schema(knob.type)
    bounded = schema["items"] if schema.get("type") == "array" else schema
    if knob.choices:
        bounded["enum"] = list(knob.choices) + ([None] if "null" in str(schema["type"]) else [])
    if knob.low is not None:
        bounded["minimum"] = knob.low
    if knob.high is not None:
        bounded["maximum"] = knob.high
    default = knob.default
    if isinstance(default, (tuple, Mapping)):
        default = list(default) if isinstance(default, tuple) else dict(default)
    return {**schema, "default": default, "description": knob.doc}


def type_schema(hint: Any) -> dict[str, Any]:
    """Return the schema of a knob's type."""
    if get_origin(hint) in (Union, types.UnionType):
        inner = type_schema(next(arg for arg in get_args(hint) if arg is not type(None)))
        return {**inner, "type": [inner["type"], "null"]}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": type_schema(get_args(hint)[0])}
    return {"type": TYPES.get(hint, "object")}

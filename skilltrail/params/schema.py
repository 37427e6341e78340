"""The JSON Schema of `params.yaml`, made from the knobs: `schemas/params.schema.json`.

It serves editors and other languages. `load_params` alone decides: a schema cannot say how two
knobs depend on each other.
"""

from __future__ import annotations

from typing import Any, get_args, get_origin

import msgspec

from skilltrail.params.fields import Params
from skilltrail.params.knob import Knob, fields_of

DRAFT = "https://json-schema.org/draft/2020-12/schema"
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def params_schema() -> dict[str, Any]:
    """Return the schema (draft 2020-12) of the whole file."""
    return {"$schema": DRAFT, "title": "params.yaml", **section_schema(Params)}


def section_schema(cls: type) -> dict[str, Any]:
    """Return the schema of one section; no key is required and none may be added."""
    properties = {
        field.key: section_schema(field.type) if field.is_section else knob_schema(field)
        for field in fields_of(cls)
    }
    return {"type": "object", "additionalProperties": False, "properties": properties}


def knob_schema(knob: Knob) -> dict[str, Any]:
    """Return the schema of one knob, with its meaning and its default."""
    is_list = get_origin(knob.kind) is tuple
    one = get_args(knob.kind)[0] if is_list else knob.kind
    limits: dict[str, Any] = {"type": TYPES.get(one, "object")}
    schema: dict[str, Any] = {"type": "array", "items": limits} if is_list else limits
    if knob.optional:
        schema["type"] = [schema["type"], "null"]
    if knob.choices:
        limits["enum"] = [*knob.choices, *([None] if knob.optional else [])]
    if knob.low is not None:
        limits["minimum"] = knob.low
    if knob.high is not None:
        limits["maximum"] = knob.high
    default = msgspec.to_builtins(knob.default)
    if knob.auto:
        limits["type"] = TYPES[one]
        schema, default = {"anyOf": [limits, {"enum": ["auto", None]}]}, "auto"
    return {**schema, "default": default, "description": knob.doc}

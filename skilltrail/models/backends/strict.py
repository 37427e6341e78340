"""Reply schemas in the strict subset of JSON Schema that each provider takes.

Each goes through the provider's SDK; before that, what that transformation does not fix is
mended here. A bound that is not sent is lost on nobody: every reply is validated by us.
Sources: https://platform.openai.com/docs/guides/structured-outputs (and the same page of Azure,
whose subset is smaller), https://docs.claude.com/en/docs/build-with-claude/structured-outputs
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

# Keywords that fine-tuned models, Azure, or a provider behind a proxy refuse in strict mode.
_BOUNDS = re.compile(
    "(?:exclusive)?(?:min|max)[A-Za-z]+|multipleOf|pattern|format|uniqueItems", re.IGNORECASE
)
_OF_TYPE = {"array": ("items",), "object": ("properties", "required", "additionalProperties")}
Schema = dict[str, Any]


def openai_schema(schema: Mapping[str, Any]) -> Schema:
    """Return a reply's schema as chat and responses want it: strict where it is closed."""
    from openai.lib._pydantic import to_strict_json_schema  # the SDK has no public name for it
    from pydantic import TypeAdapter, WithJsonSchema

    asked = _changed(schema, _without_bounds)
    strict = is_closed(asked)
    if strict:
        asked = to_strict_json_schema(TypeAdapter(Annotated[Any, WithJsonSchema(asked)]))
    return {"name": "reply", "schema": asked, "strict": strict}


def anthropic_schema(schema: Mapping[str, Any]) -> Schema:
    """Return a reply's schema as structured output wants it; bounds become descriptions."""
    from anthropic import transform_schema

    return transform_schema(_changed(schema, _one_type_each))


def is_closed(schema: Any) -> bool:
    """Return whether every object of the schema lists all its properties as required and
    allows no others: what strict structured output demands."""
    if isinstance(schema, list):
        return all(is_closed(item) for item in schema)
    if not isinstance(schema, dict):
        return True
    if "properties" in schema:
        required = set(schema.get("required", ()))
        if schema.get("additionalProperties") is not False or required != set(
            schema["properties"]
        ):
            return False
    elif schema.get("type") == "object":
        return False
    return all(is_closed(value) for value in schema.values())


def _changed(schema: Any, change: Callable[[Schema], Schema]) -> Any:
    """Return a copy of a schema with `change` applied to it and to every schema inside."""
    if not isinstance(schema, Mapping):
        return schema
    copy = dict(schema)
    for name, value in schema.items():
        if name in ("properties", "$defs") and isinstance(value, Mapping):
            copy[name] = {key: _changed(inner, change) for key, inner in value.items()}
        elif name in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
            copy[name] = [_changed(inner, change) for inner in value]
        elif name == "items":
            copy[name] = _changed(value, change)
    return change(copy)


def _without_bounds(schema: Schema) -> Schema:
    return {name: value for name, value in schema.items() if not _BOUNDS.fullmatch(name)}


def _one_type_each(schema: Schema) -> Schema:
    """Return the schema with a list of types as alternatives, which the SDK understands."""
    kinds = schema.get("type")
    if not isinstance(kinds, list) or "enum" in schema:
        return schema
    special = {name for names in _OF_TYPE.values() for name in names}
    common = {k: v for k, v in schema.items() if k not in special and k != "type"}
    return common | {
        "anyOf": [
            {"type": kind} | {k: schema[k] for k in _OF_TYPE.get(kind, ()) if k in schema}
            for kind in kinds
        ]
    }

"""JSON Schemas of events and the table of their fields, made of their classes.

`python -m skilltrail.history.log.schema` writes `schemas/events` and docs/history.md anew.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from skilltrail.core.files import write_atomic
from skilltrail.core.schemas import FOLDER, SUFFIX
from skilltrail.history.log.types import CLASSES

_HEAD = "| type | `data` |\n|---|---|\n"
_ID = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def event_schema(type: str) -> dict[str, Any]:
    """Return the schema of one whole line of the log, of this type."""
    made = _closed(msgspec.json.schema(CLASSES[type]))
    data = made["$defs"].pop(CLASSES[type].__name__)
    fields: dict[str, Any] = {
        "v": {"const": 1},
        "seq": {
            "type": "integer",
            "minimum": 1,
            "description": "1 for the first line; then one more each",
        },
        "type": {"const": type},
        "prev": {**_ID, "type": ["string", "null"], "description": "id of the event before"},
        "data": {name: data[name] for name in data if name not in ("title", "description")},
        "id": {**_ID, "description": "SHA-256 of the canonical form without `id`"},
    }
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{type}{SUFFIX}",
        "title": type,
        "description": data["description"],
        "type": "object",
        "required": list(fields),
        "additionalProperties": False,
        "properties": fields,
    }
    return schema | ({"$defs": made["$defs"]} if made["$defs"] else {})


def _closed(schema: Any) -> Any:
    """Return a schema in which a field that has a default is absent and never null."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "default" in schema:
        return _closed(schema["anyOf"][0])
    return {name: _closed(one) for name, one in schema.items() if name != "title"}


def field_table() -> str:
    """Return the rows of the table of events in the documentation; `?` marks what may be
    absent."""
    rows = []
    for type in CLASSES:
        fields = msgspec.structs.fields(CLASSES[type])
        names = (
            f"`{field.name}`" if field.required else f"`{field.name}?`" for field in fields
        )
        rows.append(f"| `{type}` | {', '.join(names)} |\n")
    return "".join(rows)


def main() -> None:
    """Write the schema of every type, and the table."""
    for type in CLASSES:
        text = json.dumps(event_schema(type), indent=2, ensure_ascii=False) + "\n"
        write_atomic(FOLDER / "events" / f"{type}{SUFFIX}", text)
    page = FOLDER.parent / "docs/history.md"
    before, head, rest = page.read_text(encoding="utf-8").partition(_HEAD)
    write_atomic(page, before + head + field_table() + rest[rest.index("\n\n") + 1 :])


if __name__ == "__main__":
    main()

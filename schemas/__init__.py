"""The contract with other languages: JSON Schemas (draft 2020-12) as package data.

`events/<type>.schema.json` describes one whole line of the event log each.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

SUFFIX = ".schema.json"


@cache
def load(name: str) -> dict[str, Any]:
    """Return the schema `name`, e.g. `events/gate.judged`.

    Raises:
        FileNotFoundError: there is no schema of that name.
    """
    path = files(__package__).joinpath(*f"{name}{SUFFIX}".split("/"))
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def names(folder: str) -> list[str]:
    """Return the sorted names of the schemas in one folder, e.g. `events`."""
    entries = files(__package__).joinpath(folder).iterdir()
    return sorted(e.name[: -len(SUFFIX)] for e in entries if e.name.endswith(SUFFIX))

"""The contract with other languages: JSON Schemas (draft 2020-12), in the folder `schemas/`.

`events/<type>.schema.json` describes one whole line of the event log each.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

SUFFIX = ".schema.json"
_PACKAGE = Path(__file__).resolve().parents[1]
# A wheel carries the folder inside the package; in a checkout it stands beside the package.
FOLDER = next(p for p in (_PACKAGE / "schemas", _PACKAGE.parent / "schemas") if p.is_dir())


@cache
def load(name: str) -> dict[str, Any]:
    """Return the schema `name`, e.g. `events/gate.judged`.

    Raises:
        FileNotFoundError: there is no schema of that name.
    """
    path = FOLDER / f"{name}{SUFFIX}"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


def names(folder: str) -> list[str]:
    """Return the sorted names of the schemas in one folder, e.g. `events`."""
    entries = (FOLDER / folder).iterdir()
    return sorted(e.name[: -len(SUFFIX)] for e in entries if e.name.endswith(SUFFIX))

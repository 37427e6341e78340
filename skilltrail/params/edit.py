"""Changing values in `params.yaml` while every comment, and the order of keys, stays."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from skilltrail.core.errors import ParamError
from skilltrail.core.files import write_atomic


def set_params(path: Path, values: Mapping[str, Any]) -> None:
    """Set the values of dotted keys, e.g. `{"skill.seed": "skills/seeds/main-v3.md"}`.

    Raises:
        ParamError: a key is not in the file.
    """
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    # ruamel writes null as nothing; the file says it in words.
    yaml.representer.add_representer(type(None), _null)
    tree = yaml.load(path.read_text(encoding="utf-8-sig"))
    for key, value in values.items():
        *sections, name = key.split(".")
        place = tree
        for section in sections:
            place = place.get(section) if isinstance(place, dict) else None
        if not isinstance(place, dict) or name not in place:
            raise ParamError(f"Setting {key} in {path.name}", "there is no such key", "Add it")
        place[name] = value
    text = io.StringIO()
    yaml.dump(tree, text)
    write_atomic(path, text.getvalue())


def _null(representer: Any, _value: None) -> Any:
    return representer.represent_scalar("tag:yaml.org,2002:null", "null")

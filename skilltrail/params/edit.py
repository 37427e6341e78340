"""Changing values in `params.yaml` while every comment, and the order of keys, stays."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from skilltrail.core.errors import ParamError
from skilltrail.core.files import write_atomic


def set_params(path: Path, values: Mapping[str, Any]) -> None:
    """Set the values of dotted keys, e.g. `{"skill.seed": "skills/seeds/main-v3.md"}`.

    A key or section that the file leaves to its default is added, as the first of its section:
    after the last one stands the comment of the next.

    Raises:
        ParamError: something else than a section stands where a key is to go.
    """
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1_000_000
    # ruamel writes null as nothing; the file says it in words.
    yaml.representer.add_representer(type(None), _null)
    tree = yaml.load(path.read_text(encoding="utf-8-sig"))
    tree = CommentedMap() if tree is None else tree
    for key, value in values.items():
        *sections, name = key.split(".")
        place: Any = tree
        for section in sections:
            if isinstance(place, dict) and place.get(section) is None:
                place[section] = CommentedMap()
            place = place[section] if isinstance(place, dict) else None
        if not isinstance(place, CommentedMap):
            at = ".".join(sections)
            raise ParamError(
                f"Setting {key} in {path.name}", f"{at} is no section", "Correct it"
            )
        if name in place or place is tree:
            place[name] = value
        else:
            place.insert(0, name, value)
    text = io.StringIO()
    yaml.dump(tree, text)
    write_atomic(path, text.getvalue())


def _null(representer: Any, _value: None) -> Any:
    return representer.represent_scalar("tag:yaml.org,2002:null", "null")

"""The closed list of failure types of an environment: `failure_types` in its `rules.yaml`.

A list of names, or a mapping from names to what is known of them (`means` is a sentence for
analysts). `unknown` is always one of them: it stands for "nobody could say", so a missing
reason never joins a real group.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from ruamel.yaml import YAML

from skilltrail.core.errors import UsageError

UNKNOWN = "unknown"


@cache
def failure_types_of(env: str) -> Mapping[str, str]:
    """Return type -> what it means ("" when nobody says), `unknown` last.

    Raises:
        UsageError: `rules.yaml` says something else than names.
    """
    path = files("skilltrail").joinpath("envs", env, "rules.yaml")
    types: dict[str, str] = {}
    if path.is_file():
        data = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
        listed = data.get("failure_types", {}) if isinstance(data, dict) else {}
        for name in listed:
            if not isinstance(name, str) or not name:
                where = f"failure_types in skilltrail/envs/{env}/rules.yaml"
                raise UsageError(where, f"{name!r} is no name", "List names only")
            types[name] = _meaning(listed, name)
    meaning = types.pop(UNKNOWN, "")
    return {**types, UNKNOWN: meaning}


def _meaning(listed: Any, name: str) -> str:
    about = listed[name] if isinstance(listed, Mapping) else None
    means = about.get("means") if isinstance(about, Mapping) else None
    return means if isinstance(means, str) else ""

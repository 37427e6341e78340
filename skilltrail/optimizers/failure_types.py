"""What an environment tells optimizers in its `rules.yaml`: how runs fail, and the domain.

    failure_types   the scorer's words and their meaning: what `rules` works with
    causes          what goes wrong in a run, to be found in its trace: what analysts choose of;
                    without them they choose of `failure_types`
    about           the domain, two to five lines
    scoring         the scorer in two lines: what is forgiven, what is not
    agent           what the agent can do: of `python`, `shell`, `files`, `tools`

`unknown` is always a type: it stands for "nobody could say", so a missing reason never joins a
real group. So is `leaked`: an answer that came out of the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ruamel.yaml import YAML

from skilltrail.core.errors import UsageError
from skilltrail.envs.registry import own_folder

UNKNOWN = "unknown"
LEAKED = "leaked"
_LEAKED_MEANS = "the given answer stands in the document and not in the task"
ABILITIES = ("python", "shell", "files", "tools")


@dataclass(frozen=True)
class Domain:
    """What an environment says of itself to the prompted optimizer."""

    about: tuple[str, ...] = ()
    scoring: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()


@cache
def failure_types_of(env: str) -> Mapping[str, str]:
    """Return type -> what it means ("" when nobody says), `unknown` last.

    Raises:
        UsageError: `rules.yaml` says something else than names.
    """
    data = _read(env)
    listed = data.get("causes") or data.get("failure_types") or {}
    types: dict[str, str] = {}
    for name in listed:
        if not isinstance(name, str) or not name:
            raise _fault(env, "causes and failure_types", f"{name!r} is no name")
        types[name] = _meaning(listed, name)
    meaning = types.pop(UNKNOWN, "")
    leaked = {LEAKED: types.pop(LEAKED, _LEAKED_MEANS)} if types else {}
    return {**types, **leaked, UNKNOWN: meaning}


@cache
def domain_of(env: str) -> Domain:
    """Return what an environment says of itself; all of it may be empty.

    Raises:
        UsageError: a part is no list of texts, or names an ability that nobody knows.
    """
    data, parts = _read(env), {}
    for name in ("about", "scoring", "agent"):
        listed = data.get(name) or []
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise _fault(env, name, f"{listed!r} is no list of texts")
        parts[name] = tuple(listed)
    if unknown := [one for one in parts["agent"] if one not in ABILITIES]:
        raise _fault(env, "agent", f"{unknown[0]!r} is none of {', '.join(ABILITIES)}")
    return Domain(**parts)


def _read(env: str) -> Mapping[str, Any]:
    own = own_folder()
    places = [files("skilltrail") / "envs" / env / "rules.yaml"]
    places += [] if own is None else [own / env / "rules.yaml"]
    for path in places:
        if path.is_file():
            data = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
            return data if isinstance(data, dict) else {}
    return {}


def _meaning(listed: Any, name: str) -> str:
    about = listed[name] if isinstance(listed, Mapping) else None
    means = about.get("means") if isinstance(about, Mapping) else about
    return means if isinstance(means, str) else ""


def _fault(env: str, part: str, found: str) -> UsageError:
    return UsageError(
        f"{part} in rules.yaml of environment {env}", found, "See skilltrail/envs/_template"
    )

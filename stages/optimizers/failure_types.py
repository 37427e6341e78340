"""The closed list of failure types of an environment: `failure_types` in its `rules.yaml`.

A list of names, or a mapping by name. `unknown` is always one of them: it stands for "nobody
could say", so a missing reason never joins a real group.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from ruamel.yaml import YAML

from stages.core.errors import UsageError

UNKNOWN = "unknown"


@cache
def failure_types_of(env: str) -> tuple[str, ...]:
    """Return the failure types of environment `env`, `unknown` last; () has only that one.

    Raises:
        UsageError: `rules.yaml` says something else than names.
    """
    path = files("stages").joinpath("envs", env, "rules.yaml")
    if not path.is_file():
        return (UNKNOWN,)
    data = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    listed = data.get("failure_types", []) if isinstance(data, dict) else []
    names = [one.get("name") if isinstance(one, dict) else one for one in listed]
    known = [name for name in names if isinstance(name, str) and name]
    if len(known) != len(names):
        raise UsageError(
            f"failure_types in stages/envs/{env}/rules.yaml", f"{names!r}", "List names only"
        )
    return (*dict.fromkeys(name for name in known if name != UNKNOWN), UNKNOWN)

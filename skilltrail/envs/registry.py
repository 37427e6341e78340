"""Finding an environment by its name: the folder `skilltrail/envs/<name>/` with an `env.py`."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from skilltrail.core.errors import UsageError
from skilltrail.envs.protocol import Environment

FOLDER = Path(__file__).resolve().parent


def environment_names() -> list[str]:
    """Return the names of all environments, sorted; `_template` is none."""
    return sorted(
        path.parent.name
        for path in FOLDER.glob("*/env.py")
        if not path.parent.name.startswith("_")
    )


def environment_class(name: str) -> type[Any]:
    """Return the class of one environment; only its own module is imported.

    Raises:
        UsageError: there is no such environment.
    """
    names = environment_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise UsageError(
            "env in params.yaml",
            f"no environment {name!r}",
            f"{hint}There are {', '.join(names)}; `skilltrail new-env {name}` makes a new one",
        )
    found: type[Any] = importlib.import_module(f"skilltrail.envs.{name}.env").ENVIRONMENT
    return found


def load_environment(name: str, params: Any) -> Environment:
    """Return an environment with its typed params."""
    environment: Environment = environment_class(name)(params)
    return environment


class ParamClasses(Mapping[str, type]):
    """Environment name -> its params class, imported only when asked for."""

    def __getitem__(self, name: str) -> type:
        if name not in environment_names():
            raise KeyError(name)
        params: type = environment_class(name).Params
        return params

    def __iter__(self) -> Iterator[str]:
        return iter(environment_names())

    def __len__(self) -> int:
        return len(environment_names())

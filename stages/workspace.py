"""Reading a project's params together with the environment that they choose."""

from __future__ import annotations

from pathlib import Path

from stages.core.params import Params
from stages.core.params_read import FILE
from stages.core.params_read import load_params as read_params
from stages.envs.protocol import Environment
from stages.envs.registry import ParamClasses, load_environment


def load_params(root: Path) -> Params:
    """Return the params of the project at `root`.

    Raises:
        ParamError: params.yaml is absent or has faults; all of them are named.
    """
    return read_params(root / FILE, ParamClasses())


def environment_of(params: Params) -> Environment:
    """Return the environment that `params` choose, with its own params."""
    return load_environment(params.env, params.env_params)

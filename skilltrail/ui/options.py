"""Params as a form: the schema and the values here, and what a change of them would run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from skilltrail.core import schemas
from skilltrail.core.errors import ParamError
from skilltrail.params.read import resolved
from skilltrail.runtime.workspace import load_params
from skilltrail.store.place import Place


def form(place: Place) -> dict[str, Any]:
    """Return the schema of params.yaml and the values that hold now, by dotted key.

    Raises:
        ParamError: params.yaml has faults.
    """
    rows = resolved(load_params(place.workspace))
    values = {row.key: _plain(row.value) for row in rows if not row.key.startswith("envs.")}
    return {"schema": schemas.load("params"), "values": values}


def command(changes: Mapping[str, Any]) -> list[str]:
    """Return the arguments of `dvc` that run with `changes`: with any, an experiment."""
    if not changes:
        return ["repro"]
    arguments = ["exp", "run"]
    for key, value in sorted(changes.items()):
        arguments += ["--set-param", f"{key}={_override(key, value)}"]
    return arguments


def _override(key: str, value: Any) -> str:
    """Return a value in the grammar of `-S`: JSON is, but for `${`, which DVC would fill in."""
    if "${" in json.dumps(value):
        raise ParamError(f"{key}: a text with ${{", "DVC would replace it", "Edit params.yaml")
    if isinstance(value, str) and "\\" in value:
        raise ParamError(f"{key}: a text with \\", "-S does not carry it", "Edit params.yaml")
    return json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value

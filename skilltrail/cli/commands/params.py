"""`skilltrail params`: what this run's values are, where they come from, what they mean."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from skilltrail.cli.options import JSON, SET_PARAM
from skilltrail.params.read import FILE, resolved, run_digest_params
from skilltrail.runtime.console import emit_json, table
from skilltrail.runtime.workspace import changes_of, params_with
from skilltrail.store.place import find_place


def params(
    as_json: JSON = False,
    changed: Annotated[bool, typer.Option(help="Only what differs from the defaults.")] = False,
    file: Annotated[Path | None, typer.Option(help="Read this file.")] = None,
    set_param: SET_PARAM = None,
) -> None:
    """Show every param of this run, its value and its origin.

    Example: skilltrail params --changed
    Example: skilltrail params -S env=qa
    """
    changes = changes_of([] if set_param is None else set_param)
    path = find_place().workspace / FILE if file is None else file
    params = params_with(path.parent, changes, path.name)
    keyed = run_digest_params(params)
    rows = [
        replace(row, origin="-S") if row.key in changes else row
        for row in resolved(params)
        if not changed or row.value != row.default
    ]
    if as_json:
        emit_json(
            [
                {
                    "key": row.key,
                    "value": row.value,
                    "default": row.default,
                    "origin": row.origin,
                    "changes_results": row.key in keyed,
                    "doc": row.doc,
                }
                for row in rows
            ]
        )
        return
    table(
        ("key", "value", "origin", "meaning"),
        [(row.key, shown(row.value), row.origin, row.doc) for row in rows],
    )


def shown(value: Any) -> str:
    """Return a value as YAML would have it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(shown, value)) + "]"
    return str(value)

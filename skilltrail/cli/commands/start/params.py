"""`skilltrail params` and `preset`: the values of this run, and named sets of values."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from ruamel.yaml import YAML

import skilltrail
from skilltrail.cli.options import JSON, SET_PARAM
from skilltrail.core.errors import UsageError
from skilltrail.params.edit import set_params
from skilltrail.params.read import FILE, resolved, run_digest_params
from skilltrail.runtime.console import emit, emit_json, say, table
from skilltrail.runtime.workspace import changes_of, params_with
from skilltrail.store.place import find_place

_PACKAGE = Path(skilltrail.__file__).resolve().parent
# A wheel carries the folder inside the package; in a checkout it stands beside the package.
FOLDER = next(
    (p for p in (_PACKAGE / "presets", _PACKAGE.parent / "presets") if p.is_dir()), None
)


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
        emit_json([asdict(row) | {"changes_results": row.key in keyed} for row in rows])
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


def preset(
    name: Annotated[str, typer.Argument(help="As in `skillopt`: the reference's defaults.")],
    write: Annotated[bool, typer.Option(help="Write its values into params.yaml.")] = False,
    as_json: JSON = False,
) -> None:
    """Print a preset as `-S key=value` words, or write it into params.yaml.

    Example: dvc exp run $(skilltrail preset skillopt)
    Example: skilltrail preset skillopt --write
    """
    values = preset_values(name)
    workspace = find_place().workspace
    params_with(workspace, values, FILE)  # says what does not go together here
    if write:
        set_params(workspace / FILE, values)
        say(f"{len(values)} values of preset {name} stand in {FILE}")
    if as_json:
        emit_json(values)
    elif not write:
        words = {key: shown(value).replace(", ", ",") for key, value in values.items()}
        emit(" ".join(f"-S {key}={value}" for key, value in words.items()))


def preset_values(name: str) -> dict[str, Any]:
    """Return a preset's values by dotted key.

    Raises:
        UsageError: there is none of this name.
    """
    files = {} if FOLDER is None else {path.stem: path for path in FOLDER.glob("*.yaml")}
    if name not in files:
        remedy = f"There are: {', '.join(sorted(files)) or 'none'}"
        raise UsageError(f"preset {name}", "there is no such preset", remedy)
    found: dict[str, Any] = dict(YAML(typ="safe").load(files[name].read_text(encoding="utf-8")))
    return found

"""`skilltrail preset`: a named set of params, as arguments of one run or written down."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from ruamel.yaml import YAML

from skilltrail.cli.commands.params import shown
from skilltrail.cli.options import JSON
from skilltrail.core.errors import UsageError
from skilltrail.params.edit import set_params
from skilltrail.params.read import FILE
from skilltrail.runtime.console import emit, emit_json, say
from skilltrail.runtime.workspace import params_with
from skilltrail.store.place import find_place

_PACKAGE = Path(__file__).resolve().parents[2]
# A wheel carries the folder inside the package; in a checkout it stands beside the package.
FOLDER = next(
    (p for p in (_PACKAGE / "presets", _PACKAGE.parent / "presets") if p.is_dir()), None
)


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
        emit(" ".join(f"-S {key}={shown(value)}" for key, value in values.items()))


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

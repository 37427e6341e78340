"""Params as a form: the schema and the values here, and what a change of them would run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skilltrail.core import schemas
from skilltrail.core.errors import ParamError
from skilltrail.params.fields import Params
from skilltrail.params.knob import knobs_of
from skilltrail.params.read import resolved
from skilltrail.runtime.workspace import load_params, params_with
from skilltrail.store.place import Place

# Who asks the page to start a run may not send it elsewhere, let it run other programs, or lift
# what isolates it: these keep what params.yaml says, and so does every text not named below.
SEALED_SECTIONS = ("exec", "azure", "targets", "ray", "store", "handoff")
SEALED = (
    "backend", "base_url", "key_env", "provider", "region", "replays", "sandbox", "executor",
)  # fmt: skip
TEXTS = ("env", "ratio", "group_key", "parent", "stop", "effort", "omit", "abilities")
PATHS = ("seed", "path", "split_dir", "rubric", "skills", "model")
KEY = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")
EDIT = "Edit params.yaml"


def form(place: Place) -> dict[str, Any]:
    """Return the schema of params.yaml and the values that may be changed, by dotted key.

    Raises:
        ParamError: params.yaml has faults.
    """
    values = {
        key: value
        for key, value in _held(place).items()
        if not key.startswith("envs.") and not _is_sealed(key)
    }
    return {"schema": schemas.load("params"), "values": values}


def check(place: Place, changes: Mapping[str, Any]) -> None:
    """Refuse what a run may not be started with from the page.

    Raises:
        ParamError: names the key; also where params.yaml would have faults with the changes.
    """
    params_with(place.workspace, changes)
    held = _held(place)
    for key, value in changes.items():
        if KEY.fullmatch(key) is None:
            raise ParamError(f"{key[:60]!r}", "no key of params.yaml", "Choose from the form")
        entries = value if isinstance(value, list) else [value]
        if any(isinstance(entry, (dict, list)) for entry in entries):
            raise ParamError(key, "an object, which `-S` of DVC does not take", EDIT)
        if key in held and held[key] == value:
            continue
        if _is_sealed(key):
            raise ParamError(key, "the live page may not change it", EDIT)
        for entry in entries:
            if isinstance(entry, str) and not _is_allowed(place, key, entry):
                raise ParamError(f"{key}: {entry[:60]!r}", "the live page may not set it", EDIT)


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


def _held(place: Place) -> dict[str, Any]:
    """Return the values that params.yaml gives now, as JSON has them."""
    rows = resolved(load_params(place.workspace))
    plain = ((row.key, row.value) for row in rows)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in plain}


def _is_sealed(key: str) -> bool:
    *sections, name = key.split(".")
    return name in SEALED or not set(sections).isdisjoint(SEALED_SECTIONS) or name == "targets"


def _is_allowed(place: Place, key: str, text: str) -> bool:
    """Return whether a text may be set: one of a choice, a name, or a file of the project."""
    name = key.rpartition(".")[2]
    if text.startswith("-") and name != "stop":  # to an agent program it may be an option
        return False
    if name in PATHS:
        return _is_inside(place.workspace, text)
    return name in TEXTS or any(knob.key == key and knob.choices for knob in knobs_of(Params))


def _is_inside(workspace: Path, text: str) -> bool:
    """Return whether `text`, read as a path, stays in the project and out of hidden files."""
    root = workspace.resolve()
    try:
        path = (root / text).resolve().relative_to(root)
    except (ValueError, OSError, RuntimeError):  # outside, too long or NUL, a loop of links
        return False
    return not any(part.startswith((".", "~")) for part in (*path.parts, *Path(text).parts))

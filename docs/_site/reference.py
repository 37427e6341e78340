"""The reference, made from what the program itself knows: it cannot be out of date."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from skilltrail.cli.commands import COMMANDS
from skilltrail.cli.main import application
from skilltrail.core import errors
from skilltrail.envs.registry import environment_class, environment_names
from skilltrail.history.log.schema import field_table
from skilltrail.models import errors as model_errors
from skilltrail.params.fields import Params
from skilltrail.params.knob import Knob, knobs_of

ROOT = Path(__file__).resolve().parents[2]


@cache
def pages() -> dict[str, str]:
    """Return the pages by their path in the site."""
    return {
        "reference/params.md": "".join(_params()),
        "reference/commands.md": "".join(_commands()),
        "reference/events.md": _events(),
        "reference/schemas.md": "".join(_schemas()),
        "reference/errors.md": _errors(),
    }


def _params() -> Iterator[str]:
    yield "# Params\n\nEvery key of `params.yaml`. One run with another value: "
    yield "`dvc exp run -S lr=8`; `skilltrail params` prints the values here and where each "
    yield "comes from. Params marked * change no result: speed, places, spending.\n\n"
    yield from _table(knobs_of(Params))
    for name in environment_names():
        rows = list(knobs_of(environment_class(name).Params))
        if rows:
            yield f"\n## `envs.{name}`\n\n"
            yield from _table(rows)


def _table(rows: Any) -> Iterator[str]:
    yield "| key | default | values | meaning |\n|---|---|---|---|\n"
    for row in rows:
        if row.key != "envs":
            mark = "" if row.result_changing else " *"
            yield f"| `{row.key}`{mark} | `{_shown(row.default)}` | {_values(row)} | "
            yield f"{_cell(row.doc)} |\n"


def _shown(value: Any) -> str:
    return _cell(json.dumps(msgspec.to_builtins(value), ensure_ascii=False))


def _values(row: Knob) -> str:
    if row.choices:
        return ", ".join(f"`{one}`" for one in row.choices)
    kind = getattr(row.kind, "__name__", str(row.kind))
    if row.low is not None or row.high is not None:
        low = "" if row.low is None else f"{row.low:g}"
        high = "" if row.high is None else f"{row.high:g}"
        kind = f"{kind} {low}…{high}"
    return _cell(f"{kind}, null" if row.optional else kind)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _commands() -> Iterator[str]:
    yield "# Commands\n\nResults go to stdout, progress and notes to stderr. Exit codes: "
    yield "0 fine, 1 a fault was found, 2 wrong use, 3 (`verify`) nothing wrong found but not "
    yield "all checked, 75 interrupted.\n"
    for command in COMMANDS:
        whole = application(command.name, command.load())
        yield from _command(whole.commands[command.name], f"skilltrail {command.name}", 2)


def _command(command: Any, name: str, level: int) -> Iterator[str]:
    yield f"\n{'#' * level} `{name}`\n\n{_help(command)}\n"
    rows = [one for one in command.params if one.name != "help"]
    if rows:
        yield "\n| | |\n|---|---|\n"
    for row in rows:
        shown = ", ".join(f"`{opt}`" for opt in row.opts)
        if row.param_type_name == "argument":
            shown = f"`{(row.metavar or row.name).upper()}`"
        yield f"| {shown} | {_cell(getattr(row, 'help', None) or '')} |\n"
    for part in sorted(getattr(command, "commands", {})):
        yield from _command(command.commands[part], f"{name} {part}", level + 1)


def _help(command: Any) -> str:
    """Return a docstring as Markdown, its examples as one block of code."""
    lines = inspect.cleandoc(command.help or "").split("\n")
    examples = [line.strip().removeprefix("Example: ") for line in lines if "Example: " in line]
    text = "\n".join(line for line in lines if "Example: " not in line).strip()
    text = text.replace("<", "&lt;")
    if examples:
        text += "\n\n```\n" + "\n".join(examples) + "\n```"
    return text


def _events() -> str:
    return (
        "# Events\n\nOne JSON object a line, chained by ids; see [the history](../history.md). "
        "A field with a question mark is absent where it would say nothing new.\n\n"
        f"| type | `data` |\n|---|---|\n{field_table()}\n"
    )


def _schemas() -> Iterator[str]:
    yield "# JSON Schemas\n\nCarried by the package in `skilltrail/schemas/`.\n"
    for path in sorted((ROOT / "schemas").rglob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        fields = ", ".join(f"`{name}`" for name in schema.get("properties", {}))
        told = _cell(str(schema.get("description", "")))
        name = path.relative_to(ROOT / "schemas").as_posix()
        yield f"\n## `{name}`\n\n{told}\n\n{fields or 'See the file.'}\n"


def _errors() -> str:
    trees = [inspect.cleandoc(module.__doc__ or "") for module in (errors, model_errors)]
    blocks = "\n\n".join(f"```text\n{tree}\n```" for tree in trees)
    return f"# Errors\n\nEach says what was asked, what was found and what to do.\n\n{blocks}\n"

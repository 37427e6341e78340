"""Secrets come from the environment or from a `.env` file beside params.yaml, never from params
or the command line. A variable that is set wins over the file's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from skilltrail.core.errors import UsageError
from skilltrail.core.redact import Redactor, secret_values

_QUOTES = ("'", '"')


def read_env_file(text: str, name: str = ".env") -> dict[str, str]:
    """Return the variables of a `.env` file: `NAME=value` lines, comments, optional `export`
    and quotes. Nothing is expanded: a key may hold any sign.

    Raises:
        UsageError: a line is none of these; its content is not repeated in the message.
    """
    values: dict[str, str] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        stripped = line.strip().removeprefix("export ").strip()
        if not stripped or stripped.startswith("#"):
            continue
        key, equals, value = stripped.partition("=")
        if not equals or not key.strip().isidentifier():
            raise UsageError(f"{name}, line {number}", "not NAME=value", "Write NAME=value")
        values[key.strip()] = _unquoted(value.strip())
    return values


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] in _QUOTES and value[-1] == value[0]:
        return value[1:-1]
    return value.split(" #", 1)[0].rstrip()


def environment(root: Path | None = None) -> Mapping[str, str]:
    """Return the process environment over the `.env` file of `root` (the working directory).
    An empty value counts as not set."""
    path = (Path.cwd() if root is None else root) / ".env"
    merged: dict[str, str] = {}
    if path.is_file():
        merged.update(read_env_file(path.read_text(encoding="utf-8")))
    merged.update({name: value for name, value in os.environ.items() if value})
    return merged


def redactor(environ: Mapping[str, str] | None = None, names: Iterable[str] = ()) -> Redactor:
    """Return what hides every secret of the environment and of `.env`: the values of `names`
    and of every variable with a name like EXAMPLE_API_KEY."""
    return Redactor(secret_values(environment() if environ is None else environ, names))

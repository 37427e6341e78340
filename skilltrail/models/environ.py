"""Secrets come from the environment or from a `.env` file beside params.yaml, never from params
or the command line. A variable that is set wins over the file's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path

from dotenv.parser import parse_stream

from skilltrail.core.errors import UsageError
from skilltrail.core.redact import Redactor, secret_values

Environ = Mapping[str, str]


def read_env_file(text: str) -> dict[str, str]:
    """Return the variables of a `.env` file: `NAME=value` lines, comments, optional `export`
    and quotes. Nothing is expanded: a key may hold any sign.

    Raises:
        UsageError: a line is none of these; its content is not repeated in the message.
    """
    values: dict[str, str] = {}
    for found in parse_stream(StringIO(text.removeprefix("\ufeff"))):
        key, value, at = found.key, found.value, f".env, line {found.original.line}"
        if found.error or (key is not None and (value is None or not key.isidentifier())):
            raise UsageError(at, "not NAME=value", "Write NAME=value")
        if key is not None and value is not None:
            values[key] = value
    return values


def environment(root: Path | None = None) -> Environ:
    """Return the process environment over the `.env` file of `root` (the working directory).
    An empty value counts as not set."""
    path = (Path.cwd() if root is None else root) / ".env"
    merged: dict[str, str] = {}
    if path.is_file():
        merged.update(read_env_file(path.read_text(encoding="utf-8")))
    merged.update({name: value for name, value in os.environ.items() if value})
    return merged


def redactor(environ: Environ | None = None, names: Iterable[str] = ()) -> Redactor:
    """Return what hides every secret of the environment and of `.env`: the values of `names`
    and of every variable with a name like EXAMPLE_API_KEY."""
    return Redactor(secret_values(environment() if environ is None else environ, names))

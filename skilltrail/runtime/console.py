"""What a person sees: results on stdout, notes on stderr, nothing that can harm a terminal.

Text from models, items and files passes through `safe`, which shows control characters and
terminal escapes instead of sending them. A console that cannot show a character shows a
replacement; it never stops a run. Colours follow NO_COLOR and go to terminals only.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

from skilltrail.core.canon import clean
from skilltrail.core.errors import SkilltrailError, UsageError
from skilltrail.core.hidden import escaped_json, spelled_block

if TYPE_CHECKING:
    from rich.console import Console

    from skilltrail.core.redact import Redactor


def safe(text: str) -> str:
    """Return `text` with what does not show or moves the cursor spelled out (`\\u{1b}`)."""
    return spelled_block(clean(text))


def prepare_streams() -> None:
    """Let stdout and stderr replace what their encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace", newline="\n")


@cache
def console() -> Console:
    """Return where notes go: stderr."""
    from rich.console import Console  # a command that has none needs not wait for it

    return Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str = "", style: str | None = None) -> None:
    """Write a note, of one line or several, to stderr."""
    console().print(safe(text), style=style, markup=False)


def asked(question: str) -> bool:
    """Ask a person, and return whether the answer is yes; where nobody is there, it is no."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    console().print(f"{safe(question)} [y/N] ", end="", markup=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def complain(error: SkilltrailError) -> None:
    """Write an error's one message to stderr, secrets taken out."""
    from rich.text import Text

    words = _redactor().text(str(error))
    console().print(Text.assemble(("error: ", "bold red"), safe(words)))


def _redactor() -> Redactor:
    from skilltrail.models.environ import redactor

    try:
        return redactor()
    except UsageError:  # .env is broken: what is being told may be just that
        return redactor(os.environ)


def emit(text: str) -> None:
    """Write text for people to stdout, ended by one line feed."""
    prepare_streams()
    _write(safe(text).removesuffix("\n") + "\n")


def emit_exact(text: str) -> None:
    """Write a document to stdout: exact UTF-8 bytes to a pipe or file, `safe` to a terminal."""
    if sys.stdout is None or sys.stdout.isatty() or not hasattr(sys.stdout, "buffer"):
        emit(text)
    else:
        with _told_when_refused():
            sys.stdout.buffer.write(text.encode("utf-8"))
            sys.stdout.buffer.flush()


def emit_json(value: Any, *, indent: int | None = 2) -> None:
    """Write one JSON value, dataclasses in it as objects, to stdout; in pure ASCII where
    stdout could not show the rest.

    With `indent` None it is one line.

    What does not show is escaped, which says the same in JSON: a terminal may be reading.
    """
    prepare_streams()
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    text = json.dumps(
        value,
        default=asdict,
        indent=indent,
        sort_keys=True,
        ensure_ascii=encoding != "utf8",
        allow_nan=False,
    )
    _write(escaped_json(text) + "\n")


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[str] = ()
) -> None:
    """Write a table to stdout, a line a row whatever the width, so that a pipe can grep it.

    `right` names right-aligned columns.
    """
    from rich.cells import cell_len

    cells = [[_one_line(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        padded = []
        for name, cell, width in zip(columns, row, widths, strict=True):
            blanks = " " * (width - cell_len(cell))
            padded.append(blanks + cell if name in right else cell + blanks)
        lines.append("  ".join(padded).rstrip())
    emit("\n".join(lines))


def _one_line(cell: Any) -> str:
    return safe(str(cell)).replace("\n", " ").replace("\t", " ")


def _write(text: str) -> None:
    if sys.stdout is None:
        raise SkilltrailError("Standard output is closed", "", "Leave it open for the answer")
    with _told_when_refused():
        sys.stdout.write(text)
        sys.stdout.flush()


@contextmanager
def _told_when_refused() -> Iterator[None]:
    """Make a full disk one message. A reader that has gone away is none: it had enough."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stdout = None  # else Python tries again as it ends
        remedy = "Make room, or write to another place"
        raise SkilltrailError("Writing to standard output", str(error), remedy) from error

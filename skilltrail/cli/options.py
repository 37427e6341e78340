"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

JSON = Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")]
RUN = Annotated[
    str | None,
    typer.Option("--run", help="A file, a run, a DVC experiment or a git revision."),
]
SET_PARAM = Annotated[
    list[str] | None,
    typer.Option(
        "--set-param", "-S", metavar="KEY=VALUE", help="As in `dvc exp run -S`; repeatable."
    ),
]

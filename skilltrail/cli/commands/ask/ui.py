"""`skilltrail ui`: the live page, and start and stop of a run from it."""

from __future__ import annotations

from typing import Annotated

import typer

from skilltrail.cli.commands.ask.runs import all_runs
from skilltrail.cli.sources import project
from skilltrail.core.errors import UsageError
from skilltrail.store.place import find_place


def ui(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8631,
) -> None:
    """Serve the live page of this project: follow, start and stop a run, compare runs.

    The address that is printed works once; the browser that opens it is let in from then on.

    Example: skilltrail ui
    """
    try:
        from skilltrail.ui.server import listen, serve
    except ModuleNotFoundError as error:
        raise UsageError(
            "`skilltrail ui`", f"{error.name} is not installed", 'Run `pip install -e ".[ui]"`'
        ) from error
    here = project()
    serve(find_place(), lambda: all_runs(here), host, listen(host, port))

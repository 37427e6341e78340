"""`skilltrail ui`: the live page, and start and stop of a run from it."""

from __future__ import annotations

from typing import Annotated

import typer

from skilltrail.cli.commands.runs import all_runs
from skilltrail.core.errors import UsageError
from skilltrail.history.ask.sources import Project
from skilltrail.runtime.console import say
from skilltrail.store.place import find_place


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ui")(ui)


def ui(
    host: Annotated[
        str, typer.Option(help="Address to listen on; beyond loopback a token is asked for.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8631,
    token: Annotated[
        bool, typer.Option("--token", help="Ask for a token on loopback too.")
    ] = False,
) -> None:
    """Serve the live page of this project: follow, start and stop a run, compare runs.

    Example: skilltrail ui
    """
    try:
        from skilltrail.ui.server import guarded, listen, new_token, serve
    except ModuleNotFoundError as error:
        raise UsageError(
            "`skilltrail ui`", f"{error.name} is not installed", 'Run `pip install -e ".[ui]"`'
        ) from error
    place = find_place()
    here = Project(place.workspace, place.root)
    secret = new_token(host, always=token)
    listening = listen(host, port)
    bound = listening.getsockname()[1]
    query = "" if secret is None else f"?token={secret}"
    shown = f"[{host}]" if ":" in host else host
    say(f"live page: http://{shown}:{bound}/{query}")
    say("stop it with Ctrl-C; a run that it started goes on")
    serve(guarded(place, lambda: all_runs(here), host, bound, secret), listening)

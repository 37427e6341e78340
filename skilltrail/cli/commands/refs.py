"""`skilltrail rebuild`, `anchor`: care for the commits of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from skilltrail.cli.commands.history import JSON, project
from skilltrail.core.errors import UsageError
from skilltrail.core.layout import EVENTS
from skilltrail.history.ask.sources import Project, live_logs
from skilltrail.history.git.repository import Git
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import read_whole, scan_log
from skilltrail.runtime.console import emit, emit_json, say, table


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("rebuild")(rebuild)
    app.command("anchor")(anchor)


def git_of(here: Project, command: str) -> Git:
    """Return git in the main repository.

    Raises:
        UsageError: the project is not in git.
    """
    found = Git.find(here.root)
    if found is None:
        raise UsageError(
            f"skilltrail {command}", "this project is not in git", "Run `git init`"
        )
    return found


def rebuild(as_json: JSON = False) -> None:
    """Drop every refs/evolution ref and make it again from the logs, with the same hashes.

    Example: skilltrail rebuild
    """
    from skilltrail.history.ask.evaluations import evaluation_logs
    from skilltrail.history.git.opening import label_of
    from skilltrail.history.git.rebuild import rebuild as rebuild_refs

    here = project()
    git = git_of(here, "rebuild")
    own = here.workspace / EVENTS
    logs = [_whole(path) for path in (*live_logs(here), *([own] if own.exists() else []))]
    asked = [
        (events, "opened_before" in events[0].data)
        for path in evaluation_logs(here)
        if (events := _whole(path)) and events[0].type == "test.opened"
    ]
    rows = rebuild_refs(git, logs, label_of(git, None), asked)
    if as_json:
        emit_json([row.to_json() for row in rows])
        return
    table(
        ("run", "outcome", "tip", "detail"),
        [(r.name, r.outcome, "-" if r.tip is None else r.tip[:12], r.detail) for r in rows],
    )


def _whole(path: Path) -> list[Event]:
    read = read_whole(path, continues=True)
    if read.torn is not None:
        say(f"{path.parent.name}/{read.torn} Its {len(read.events)} whole events are taken")
    return read.events


def anchor(
    run: Annotated[
        str | None, typer.Argument(help="A run; default: that of skills/events.jsonl.")
    ] = None,
    sign: Annotated[
        bool | None,
        typer.Option(
            "--sign/--no-sign",
            help="Make a signed tag; default: where git has a signing key.",
        ),
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Its name.")] = None,
    as_json: JSON = False,
) -> None:
    """Make a signed tag on a run's last commit, or print the hash to publish.

    Example: skilltrail anchor main
    """
    from skilltrail.history.git.signing import anchors_of, can_sign
    from skilltrail.history.git.signing import sign as sign_tag

    git = git_of(project(), "anchor")
    name = _default_run(git) if run is None else run
    anchors = anchors_of(git, name)
    wanted = tag is not None or can_sign(git) if sign is None else sign
    signed = sign_tag(git, name, anchors, tag) if wanted else None
    if as_json:
        told = {"run": name, "tag": signed, "anchors": [one.to_json() for one in anchors]}
        emit_json(told)
        return
    for one in anchors:
        emit(f"{one.commit}  {one.what} of {name}  {one.ref}")
    if signed is None:
        say("publish these where nobody can rewrite them; `skilltrail verify --anchor HASH`")
        say("holds the run against one. With a signing key of git this makes a signed tag")
    else:
        say(f"signed tag {signed}: push it with `git push REMOTE {signed}`;")
        say(f"`skilltrail verify --anchor {signed}` holds the run against it")


def _default_run(git: Git) -> str:
    """Return the run whose commits hold skills/events.jsonl.

    Raises:
        UsageError: none does.
    """
    from skilltrail.history.git.branches import run_holding
    from skilltrail.history.git.commits import commits_of
    from skilltrail.history.git.opening import label_of

    here = project()
    training = scan_log(here.workspace / EVENTS)
    *_, last = commits_of(training, git.object_format())
    found = run_holding(git, last.sha, label_of(git, None))
    if found is None:
        raise UsageError(
            "skilltrail anchor",
            f"no run in refs/evolution holds {EVENTS.as_posix()}",
            "`skilltrail rebuild` makes its commits, or name a run",
        )
    return found

"""`skilltrail log`: a run's events, those so far or as they come."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Annotated

import typer

from skilltrail.cli.options import JSON, RUN
from skilltrail.cli.sources import answer
from skilltrail.core import schemas
from skilltrail.core.errors import UsageError
from skilltrail.history.ask.sources import LogFound
from skilltrail.history.log.events import Event
from skilltrail.history.log.run_log import RunLog
from skilltrail.runtime.console import emit, emit_json, say, table

POLL_S = 0.5
Wanted = Callable[[Event], bool]


def log(
    run: RUN = None,
    type: Annotated[str | None, typer.Option(help="Only events of this type.")] = None,
    step: Annotated[int | None, typer.Option(help="Only events of this step.")] = None,
    summary: Annotated[bool, typer.Option("--summary", help="One row per epoch.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with new events until Ctrl-C.")
    ] = False,
    as_json: JSON = False,
) -> None:
    """Show a run's events, one line each.

    With --follow: the running one, or the last one until another starts; --json then prints
    one event a line, and --run takes a log file or the digest of a run.

    Example: skilltrail log --type gate.judged
    """

    def wanted(event: Event) -> bool:
        right = step is None or getattr(event.said, "step", None) == step
        return right and type in (None, event.type)

    if type is not None:
        _check_type(type)
    if follow and summary:
        raise UsageError("skilltrail log", "--follow with --summary", "Leave one out")
    if follow:
        _follow(run, wanted, as_json=as_json)
        return

    def show(source: LogFound) -> None:
        if summary:
            _summary(source.log, as_json=as_json)
        else:
            _events([*source.events, *source.evaluation], wanted, as_json=as_json)

    answer(run, show)


def _check_type(type: str) -> None:
    known = schemas.names("events")
    if type not in known:
        near = get_close_matches(type, known, n=1)
        remedy = f"The nearest is {near[0]}" if near else f"One of {', '.join(known)}"
        raise UsageError(f"--type {type}", "no event has that type", remedy)


def _events(events: Sequence[Event], wanted: Wanted, *, as_json: bool) -> None:
    from skilltrail.history.log.words import sentences

    shown = [(event, words) for event, words in sentences(events) if wanted(event)]
    if as_json:
        emit_json([json.loads(event.line) for event, _ in shown])
    elif shown:
        emit("\n".join(_row(event, words) for event, words in shown))
    if not events:
        say("the log is empty: no event stands in it")


def _row(event: Event, words: str) -> str:
    return f"{event.seq:>5}  {words}"


def _follow(run: str | None, wanted: Wanted, *, as_json: bool) -> None:
    """Print events as they come, until Ctrl-C, which is no fault here."""
    from skilltrail.cli.following import Follower
    from skilltrail.store.place import find_place

    follower = Follower(find_place(), run)
    try:
        while True:
            for notice, event, words in follower.news():
                if notice:
                    say(notice)
                if event is None or not wanted(event):
                    continue
                if as_json:
                    emit_json(json.loads(event.line), indent=None)
                else:
                    emit(_row(event, words))
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        return


def _summary(log: RunLog, *, as_json: bool) -> None:
    from skilltrail.history.log.epochs import epoch_rows
    from skilltrail.history.log.words import score

    rows = epoch_rows(log)
    if as_json:
        emit_json(rows)
        return
    table(
        ("epoch", "steps", "acc", "rej", "ind", "none", "train", "best", "saved", "skill"),
        [
            (
                *(row.epoch, row.steps, row.accepted, row.rejected, row.indecisive),
                *(row.unchanged, score(row.train_hard, "-"), score(row.best, "-"), row.saved),
                f"v{row.version}",
            )
            for row in rows
        ],
    )

"""`skilltrail harvest`: propose items from agents' sessions, and review what was proposed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import click
import typer

from skilltrail.cli.options import JSON
from skilltrail.core.errors import UsageError
from skilltrail.core.hidden import spelled_out
from skilltrail.data.sessions.episodes import episodes_of
from skilltrail.data.sessions.proposals import (
    ITEMS,
    PROPOSED,
    Collector,
    Harvest,
    decide,
    decided_in,
    proposed_in,
    write_proposals,
)
from skilltrail.data.sessions.read import read_session, session_files
from skilltrail.history.log.words import count
from skilltrail.models.environ import redactor
from skilltrail.runtime.console import emit, emit_json, say
from skilltrail.skill.risks import risks_of
from skilltrail.store.place import find_place

harvest = typer.Typer(help="Propose items from agents' sessions, and review them.")
Into = Annotated[Path, typer.Option("--into", help="Folder of the data set.")]
_DEFAULT = Path("data/sessions")
_EVERY = 500  # files between two lines of progress


@harvest.callback(invoke_without_command=True)
def find(
    context: typer.Context,
    source: Annotated[
        str | None, typer.Option("--from", help="claude, codex, or a folder.")
    ] = None,
    into: Into = _DEFAULT,
    as_json: JSON = False,
) -> None:
    """Propose items from agents' sessions; `harvest review` goes through them.

    Session files are only read, secrets and personal data are hidden, no model is asked.

    Example: skilltrail harvest --from claude --into data/sessions
    """
    if context.invoked_subcommand is not None:
        return
    if source is None:
        remedy = "Name claude, codex, or a folder with .jsonl files"
        raise UsageError("skilltrail harvest", "no --from", remedy)
    done, waiting = collected(source, find_place().workspace / into)
    path = into / PROPOSED
    if as_json:
        emit_json(
            {
                "sessions": done.sessions,
                "unread_lines": done.unread,
                "found": dict(sorted(done.found.items())),
                "proposed": len(done.proposals),
                "waiting": waiting,
                "file": str(path),
            }
        )
        return
    kinds = ", ".join(f"{name} {count}" for name, count in sorted(done.found.items()))
    emit(f"{done.sessions} sessions; episodes: {kinds or 'none'}")
    if done.unread:
        say(f"note: {done.unread} lines are no JSON or too long, and were passed over")
    before = waiting - len(done.proposals)
    earlier = f", and {before} that waited already" if before else ""
    emit(f"wrote {path}: {len(done.proposals)} proposed items{earlier}")
    if waiting:
        say(f"next: skilltrail harvest review --into {into}")


def collected(source: str, folder: Path) -> tuple[Harvest, int]:
    """Read the sessions of `source` and write what they propose into `folder`; return how many
    proposals wait there, too."""
    done = _read_all(session_files(source, os.environ), decided_in(folder))
    folder.mkdir(parents=True, exist_ok=True)
    return done, write_proposals(folder, done.proposals)


def _read_all(files: list[Path], decided: frozenset[str]) -> Harvest:
    collector = Collector(redactor().text)
    for number, path in enumerate(files, 1):
        try:
            session = read_session(path)
        except OSError as error:
            say(f"warning: {path.name} is passed over: {error.strerror}")
            continue
        collector.harvest.sessions += 1
        collector.harvest.unread += session.unread
        collector.add(episodes_of(session))
        if number % _EVERY == 0:
            say(f"harvest: {number} of {len(files)} files")
    return collector.done(decided)


@harvest.command("review")
def review(
    into: Into = _DEFAULT,
    accept: Annotated[
        list[str] | None, typer.Option(help="Accept this id; `all` for every one.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Drop this id; `all` for the rest.")
    ] = None,
    as_json: JSON = False,
) -> None:
    """Go through proposed items one by one: accept, edit or drop each.

    Example: skilltrail harvest review --into data/sessions
    """
    folder = find_place().workspace / into
    left = proposed_in(folder)
    if accept or drop:
        counts = _named(folder, left, accept or [], drop or [])
    elif not sys.stdin.isatty():
        remedy = "Name ids: --accept ID --drop ID, or --accept all"
        raise UsageError("skilltrail harvest review", "not interactive", remedy)
    else:
        counts = _asked(folder, left, say if as_json else emit)
    if as_json:
        emit_json({**counts, "file": str(into / ITEMS)})
        return
    emit(f"accepted {counts['accepted']}, dropped {counts['dropped']}, left {counts['left']}")
    if (folder / ITEMS).is_file():
        say(
            "next: set `judge` in params.yaml (docs/models/judge.md), then "
            f"dvc exp run -S env=qa -S data.path={into / ITEMS}"
        )


def _named(
    folder: Path, left: list[dict[str, Any]], accept: list[str], drop: list[str]
) -> dict[str, int]:
    known = {record["id"] for record in left} | {"all"}
    for id in (*accept, *drop):
        if id not in known:
            remedy = "`skilltrail harvest review` shows what is left"
            raise UsageError(f"id {id!r}", "no proposal of that id is left", remedy)
    counts = {"accepted": 0, "dropped": 0, "left": 0}
    for record in left:
        if record["id"] in accept or ("all" in accept and record["id"] not in drop):
            decide(folder, record, accepted=True)
            counts["accepted"] += 1
        elif record["id"] in drop or "all" in drop:
            decide(folder, record, accepted=False)
            counts["dropped"] += 1
        else:
            counts["left"] += 1
    return counts


def _asked(
    folder: Path, left: list[dict[str, Any]], show: Callable[[str], None]
) -> dict[str, int]:
    counts = {"accepted": 0, "dropped": 0, "left": len(left)}
    for record in left:
        _show(record, show)
        answer = typer.prompt(
            "accept, edit, drop, later, quit [a/e/d/l/q]", default="l", err=True
        )
        if answer == "q":
            break
        if answer not in ("a", "e", "d"):
            continue
        if answer == "e":
            record = _edited(record)
        decide(folder, record, accepted=answer != "d")
        counts["dropped" if answer == "d" else "accepted"] += 1
        counts["left"] -= 1
    return counts


def _show(record: Mapping[str, Any], show: Callable[[str], None]) -> None:
    """Show a proposal, where a result goes to stdout beside it on stderr."""
    show(
        f"\n{record['id']}  found: {record['found']}, in {count(record['sessions'], 'session')}"
    )
    for name in ("question", "feedback", "command"):
        if name in record:
            show(f"{name}: {spelled_out(str(record[name]))}")
    show(f"answer: {spelled_out(str(record['answers'][0]))}")
    lines = f"{record['question']}\n{record.get('feedback', '')}".split("\n")
    risks = sorted({risk.value for line in lines for risk in risks_of(line)})
    if risks:
        say(f"look twice: {', '.join(risks)}")


def _edited(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record as a person's editor leaves question and answer."""
    mark = "\n--- the answer below this line ---\n"
    text = click.edit(f"{record['question']}{mark}{record['answers'][0]}")
    if text is None or mark.strip() not in text:
        return dict(record)
    question, _, answer = text.partition(mark.strip())
    return {**record, "question": question.strip(), "answers": [answer.strip()]}

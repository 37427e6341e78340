"""`skilltrail note`: tags and notes on runs."""

from __future__ import annotations

from typing import Annotated

import typer

from skilltrail.cli.commands.ask.runs import all_runs
from skilltrail.cli.options import JSON
from skilltrail.cli.sources import project
from skilltrail.core.errors import UsageError
from skilltrail.models.environ import redactor
from skilltrail.report.notes import notes_of, write_note
from skilltrail.runtime.console import emit_json, say, table
from skilltrail.store.ops import Ops
from skilltrail.store.place import find_place


def note(
    run: Annotated[str | None, typer.Argument(help="A run; none = show all notes.")] = None,
    text: Annotated[str | None, typer.Argument(help="The note.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A word to find it by.")] = None,
    untag: Annotated[list[str] | None, typer.Option(help="Take a tag off.")] = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="Take all tags and notes off first.")
    ] = False,
    as_json: JSON = False,
) -> None:
    """Tag a run, or write a note on it; both are shown by `runs` and on the page.

    They stay on this machine, in .skilltrail/ops.jsonl: no event and no commit holds them.

    Example: skilltrail note main "good on dates, poor on names" --tag baseline
    """
    found, place = all_runs(project()), find_place()
    ops = place.state / "ops.jsonl"
    tags, untagged = ([] if some is None else some for some in (tag, untag))
    if run is not None and run not in found:
        raise UsageError(f"run {run!r}", "there is none", f"Runs: {', '.join(found) or 'none'}")
    if text is not None or tags or untagged or clear:
        if run is None:
            raise UsageError(
                "skilltrail note", "no run is named", "`skilltrail runs` lists them"
            )
        kept = Ops(ops, redactor().value)
        write_note(
            kept, run, found[run][-1], note=text, tags=tags, untagged=untagged, cleared=clear
        )
    shown = notes_of(ops, found if run is None else {run: found[run]})
    rows = {name: said for name, said in shown.items() if said}
    if as_json:
        emit_json({n: {"tags": s.tags, "notes": s.notes} for n, s in rows.items()})
    elif rows:
        table(("run", "tags", "notes"), [_row(n, s.tags, s.notes) for n, s in rows.items()])
    else:
        say("no run has a tag or a note")


def _row(name: str, tags: tuple[str, ...], notes: tuple[str, ...]) -> tuple[str, str, str]:
    return name, " ".join(tags), "; ".join(notes)

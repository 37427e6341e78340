"""`skilltrail replay`, `verify`: what a log alone can do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from skilltrail.cli.options import JSON, RUN
from skilltrail.cli.sources import answer, project, tell_fallback
from skilltrail.core.errors import FaultError
from skilltrail.core.files import write_atomic
from skilltrail.core.layout import EVENTS
from skilltrail.history.ask.sources import live_logs, number_of, open_source
from skilltrail.history.log.run_log import RunLog
from skilltrail.history.log.words import count
from skilltrail.runtime.console import emit, emit_exact, emit_json
from skilltrail.skill.folder import is_folder, write_folder
from skilltrail.store.place import find_place
from skilltrail.verify.result import Level, Verification


def replay(
    run: RUN = None,
    version: Annotated[str, typer.Option(help="A number, seed, best or last.")] = "last",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file.")
    ] = None,
    all: Annotated[
        Path | None, typer.Option("--all", help="Write every version into this folder.")
    ] = None,
    as_json: JSON = False,
) -> None:
    """Rebuild a version of the skill from the log alone: no store, no model, no network.

    A skill folder is written as a folder, unless --output ends in .md: then as one text.

    Example: skilltrail replay --run main --version 3 -o v3.md
    """
    answer(run, lambda source: _replay(source.log, version, output, all, as_json=as_json))


def _replay(
    log: RunLog, version: str, output: Path | None, all: Path | None, *, as_json: bool
) -> None:
    if all is not None:
        found = log.versions
        for one in found:
            name = f"v{one.number}" if is_folder(one.text) else f"v{one.number}.md"
            _write_version(all / name, one.text)
        emit(f"{len(found)} versions in {all}")
        return
    one = log.version(number_of(version, f"--version {version}"))
    if as_json:
        emit_json({"version": one.number, "digest": one.digest, "text": one.text})
    elif output is not None:
        _write_version(output, one.text)
        emit(f"v{one.number} in {output}")
    else:
        emit_exact(one.text)


def _write_version(path: Path, text: str) -> None:
    if is_folder(text) and path.suffix != ".md":
        write_folder(path, text)
    else:
        write_atomic(path, text)


def verify(
    run: RUN = None,
    anchor: Annotated[
        str | None, typer.Option("--anchor", help="A published commit hash, or a signed tag.")
    ] = None,
    allow_absent: Annotated[
        list[Level] | None,
        typer.Option("--allow-absent", help="A level that need not be checked whole."),
    ] = None,
    allow_unfinished: Annotated[
        bool, typer.Option("--allow-unfinished", help="A log may end early.")
    ] = False,
    as_json: JSON = False,
) -> None:
    """Check all that a reader is shown, at three levels: log, facts (recorded calls), anchored.

    Nothing is repaired. Exit 0: all was checked and is right. 1: a fault. 3: nothing wrong was
    found, but not all could be checked.

    Example: skilltrail verify
    Example: skilltrail verify --allow-absent facts --anchor 5f0c9b3d9e3a4c1f
    """
    from skilltrail.report.build import drawn
    from skilltrail.runtime.progress import counting
    from skilltrail.verify.evidence import Evidence
    from skilltrail.verify.table import verify as check

    named, place = _named(run), find_place()
    with counting("verify") as (tick, expect):
        evidence = Evidence(
            place,
            drawn,
            named=named,
            allow_unfinished=allow_unfinished,
            anchor=anchor,
            tick=tick,
            expect=expect,
        )
        found = check(evidence)
    code = found.exit_code(() if allow_absent is None else allow_absent)
    _tell(found, code, as_json=as_json)
    if code == FaultError.exit_code:
        remedy = (
            "Each is named above; a rerun (`dvc repro`) writes the log anew,"
            " `skilltrail fork FILE` trains on from a skill edited by hand, and"
            " `skilltrail fetch` brings the commits of somebody else's run"
        )
        raise FaultError(f"verify {found.name}", count(len(found.faults), "fault"), remedy)
    if code:
        raise typer.Exit(code)


def _tell(found: Verification, code: int, *, as_json: bool) -> None:
    if as_json:
        emit_json(found.to_json() | {"exit": code})
    else:
        emit("\n".join(verification(found)))


def verification(found: Verification) -> Iterator[str]:
    """Yield a line per rule, the faults, and what is proven."""
    for level in Level:
        done, of = found.counts(level)
        state = "checked" if found.whole(level) else "not checked:"
        yield f"{level.value:9} {state} {done} of {of}"
        for row in found.at(level):
            check = row.check
            counted = f"{check.done} of {check.of}"
            yield f"  {row.rule:26} {counted:>14}  {check.note}".rstrip()
    yield from (f"{fault.level.value}: {fault}" for fault in found.faults)
    if not found.faults:
        yield "OK"
    yield f"{_proven(found)}; {_trusted(found)}."


def _proven(found: Verification) -> str:
    """Say what a verification proves."""
    if found.faults:
        return f"Proven: nothing, see {count(len(found.faults), 'fault')} above"
    said = {
        Level.LOG: "every decision and every shown number follows from the logs",
        Level.FACTS: "the logs follow from the recorded replies, the params and the data here",
        Level.ANCHORED: "the commits here hold these logs and nothing else",
    }
    whole = [words for level, words in said.items() if found.whole(level)]
    return f"Proven: {', '.join(whole)}" if whole else "Proven: no level as a whole"


def _trusted(found: Verification) -> str:
    """Say what a verification takes on trust."""
    parts = [f"what level {level.value} lists as not checked"
             for level in Level if not found.whole(level)]  # fmt: skip
    parts.append("that the models gave the recorded replies")
    if found.anchor is None:
        parts.append(
            "that nobody rewrote store, logs and commits together (hold them against a "
            "published hash with --anchor)"
        )
    return f"on trust: {', '.join(parts)}"


def _named(run: str | None) -> tuple[str, bytes] | None:
    """Return name and bytes, unread, of the log to verify; None = all of the workspace's own.

    Damage is for verify to name.
    """
    here = project()
    path = here.workspace / (EVENTS if run is None else run)
    if run is not None and path.is_file():
        return path.name, path.read_bytes()
    if run is None and path.is_file():
        return None
    if run is None:
        for live in live_logs(here):
            tell_fallback(here)
            return f"live log {live.parent.name}", live.read_bytes()
    source = open_source(here, run)
    return source.name, b"".join(event.line + b"\n" for event in source.events)

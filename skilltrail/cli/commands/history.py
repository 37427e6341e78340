"""`skilltrail replay`, `verify`: what a log alone can do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from skilltrail.core.errors import FaultError, SkilltrailError, UsageError
from skilltrail.core.files import write_atomic
from skilltrail.history.ask.sources import (
    EVENTS,
    Project,
    Skill,
    Source,
    live_logs,
    open_source,
    stand_in,
)
from skilltrail.history.log.events import Event, Unreadable
from skilltrail.history.log.log import scan_log
from skilltrail.history.log.run_log import Story
from skilltrail.runtime.console import emit, emit_exact, emit_json, say
from skilltrail.store.place import find_place

JSON = Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")]
RUN = Annotated[
    str | None,
    typer.Option("--run", help="A file, a run, a DVC experiment or a git revision."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("replay")(replay)
    app.command("verify")(verify)


def project() -> Project:
    """Return the project's folders."""
    place = find_place()
    return Project(place.workspace, place.root)


def source_of(run: str | None) -> Source:
    """Open the log `run`; where none is named and a live log stands in, say so on stderr."""
    here = project()
    source = open_source(here, run)
    if run is None:
        tell_stand_in(here)
    return source


def answer(run: str | None, show: Callable[[Source], None]) -> None:
    """Let `show` tell what the log `run` says, as far as it is whole; then say where it ends.

    Raises:
        FaultError: the log is damaged; what is whole was shown before.
    """
    source = source_of(run)
    while True:
        try:
            show(source)
            break
        except Unreadable as error:
            if not any(event.seq == error.seq for event in source.events):
                raise
            source = source.before(error.seq, error)
        except SkilltrailError:
            if source.torn is not None:
                say(f"{source.name}: {source.torn}")
            raise
    if source.torn is None:
        return
    whole = f"{source.torn.found}; {len(source.events)} whole events stand before it"
    if source.unfinished:
        say(f"{source.torn.asked}: {whole}")
    else:
        remedy = f"`skilltrail verify --run {source.name}` names every fault"
        raise FaultError(f"{source.name} ends torn at {source.torn.asked}", whole, remedy)


def tell_stand_in(here: Project) -> None:
    """Say on stderr which run answers where it is not the one of skills/events.jsonl."""
    notice = stand_in(here)
    if notice is not None:
        say(notice)


def skill_of(here: Project, name: str) -> Skill:
    """Find the skill `name`; where it names no run and a live log stands in, say so."""
    from skilltrail.history.ask.sources import find_skill, names_no_run

    found = find_skill(here, name)
    if names_no_run(here, name):
        tell_stand_in(here)
    return found


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

    Example: skilltrail replay --run main --version 3 -o v3.md
    """
    answer(run, lambda source: _replay(source.story, version, output, all, as_json=as_json))


def _replay(
    story: Story, version: str, output: Path | None, all: Path | None, *, as_json: bool
) -> None:
    from skilltrail.history.ask.sources import VERSION
    from skilltrail.history.log.replay import version_of, versions

    if all is not None:
        found = versions(story.skeleton())
        for one in found:
            write_atomic(all / f"v{one.number}.md", one.text)
        emit(f"{len(found)} versions in {all}")
        return
    match = VERSION.match(version)
    if match is None:
        raise UsageError(f"--version {version}", "no version", "A number, seed, best or last")
    number = match["number"]
    one = version_of(story.skeleton(), version if number is None else int(number))
    if as_json:
        emit_json({"version": one.number, "digest": one.digest, "text": one.text})
    elif output is not None:
        write_atomic(output, one.text)
        emit(f"v{one.number} in {output}")
    else:
        emit_exact(one.text)


def verify(
    run: RUN = None,
    allow_unfinished: Annotated[
        bool, typer.Option("--allow-unfinished", help="A log may end early.")
    ] = False,
    as_json: JSON = False,
) -> None:
    """Check a run at three levels: log, facts, anchored. Nothing is repaired.

    Example: skilltrail verify
    """
    from skilltrail.verify.verify import verify as check

    data, name = _bytes_of(run)
    found = asyncio.run(
        check(find_place(), data, name, allow_unfinished=allow_unfinished, after=_before(data))
    )
    if as_json:
        emit_json(found.to_json())
    else:
        emit("\n".join(f"{fault.level}: {fault}" for fault in found.faults) or "no fault")
        for level in found.levels:
            emit(f"{level.name:9} {level.state:8} {level.detail}")
    if found.faults:
        raise FaultError(
            f"verify {found.name}",
            f"{len(found.faults)} fault(s)",
            "Each is named above; a rerun (`dvc repro`) writes the log anew, and"
            " `skilltrail fork FILE` trains on from a skill edited by hand",
        )


def _bytes_of(run: str | None) -> tuple[bytes, str]:
    """Return a log's bytes, unread, and its name: damage is for verify to name."""
    here = project()
    path = here.workspace / (EVENTS if run is None else run)
    if path.is_file():
        return path.read_bytes(), path.name
    if run is None:
        for live in live_logs(here):
            tell_stand_in(here)
            return live.read_bytes(), f"live log {live.parent.name}"
    source = open_source(here, run)
    return b"".join(event.line + b"\n" for event in source.events), source.name


def _before(data: bytes) -> Event | None:
    """Return the event that an evaluation's log goes on from, where the workspace has it."""
    first = data.split(b"\n", 1)[0]
    path = project().workspace / EVENTS
    if not first.startswith(b'{"data":') or b'"prev":null,' in first or not path.is_file():
        return None
    last = scan_log(path)[-1]
    return last if f'"prev":"{last.id}"'.encode() in first else None

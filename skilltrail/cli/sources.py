"""The log or skill that a command is asked about, and what is said where it is not whole."""

from __future__ import annotations

from collections.abc import Callable

from skilltrail.core.errors import FaultError, SkilltrailError
from skilltrail.history.ask.sources import (
    LogFound,
    Project,
    SkillFound,
    fallback,
    find_skill,
    names_no_run,
    open_source,
)
from skilltrail.history.log.events import Unreadable
from skilltrail.runtime.console import say
from skilltrail.store.place import find_place


def project() -> Project:
    """Return the project's folders."""
    place = find_place()
    return Project(place.workspace, place.root)


def source_of(run: str | None) -> LogFound:
    """Open the log `run`; where none is named and a live log stands in, say so on stderr."""
    here = project()
    source = open_source(here, run)
    if run is None:
        tell_fallback(here)
    return source


def answer(run: str | None, show: Callable[[LogFound], None]) -> None:
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


def tell_fallback(here: Project) -> None:
    """Say on stderr which run answers where it is not the one of skills/events.jsonl."""
    notice = fallback(here)
    if notice is not None:
        say(notice)


def skill_of(here: Project, name: str) -> SkillFound:
    """Find the skill `name`; where it names no run and a live log stands in, say so."""
    found = find_skill(here, name)
    if names_no_run(here, name):
        tell_fallback(here)
    return found

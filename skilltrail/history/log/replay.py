"""Replay: every version of the skill, byte for byte, from the log alone.

No store, no model, no network: `run_state` rebuilds the documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skilltrail.core.errors import UsageError
from skilltrail.history.log.events import Event
from skilltrail.history.log.evolve import rebuilt
from skilltrail.history.log.run_state import RunState
from skilltrail.history.log.types.outcomes import SkillVersioned


@dataclass(frozen=True)
class Version:
    """One version of the skill, with the event that made it."""

    number: int
    text: str
    event: Event

    @property
    def digest(self) -> str:
        return self.said.digest

    @property
    def said(self) -> SkillVersioned:
        return self.event.read(SkillVersioned)


def versions(events: Iterable[Event]) -> list[Version]:
    """Return all versions, by number; damage after the last of them goes unseen."""
    state, found = RunState(), []
    for event in events:
        state = rebuilt(state, event)
        if event.type == "skill.versioned":
            found.append(Version(event.read(SkillVersioned).version, state.skill, event))
    return found


def version_of(events: Iterable[Event], wanted: int | str) -> Version:
    """Return one version: a number, `seed`, `best` or `last`.

    Raises:
        UsageError: the log has no such version.
    """
    return named_version(versions(events), wanted)


def named_version(found: Sequence[Version], wanted: int | str) -> Version:
    """Return one of the versions that a log holds; see `version_of`."""
    if not found:
        raise UsageError(f"version {wanted}", "the log holds no version yet")
    if wanted == "last":
        return found[-1]
    if wanted == "best":
        return [version for version in found if version.said.best][-1]
    number = 0 if wanted == "seed" else int(wanted)
    for version in found:
        if version.number == number:
            return version
    raise UsageError(
        f"version {number}", f"the log holds 0 to {found[-1].number}", "Choose one of them"
    )

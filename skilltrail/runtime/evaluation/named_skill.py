"""Skills by the names that people give them: a file, RUN:vN, seed, best, last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skilltrail.core.errors import UsageError
from skilltrail.core.layout import EVENTS
from skilltrail.history.ask.sources import skill_text
from skilltrail.history.log.events import Event
from skilltrail.history.log.replay import version_of
from skilltrail.runtime.training import read_seed_skill
from skilltrail.skill.folder import MAIN

FROM_THE_LOG = ("seed", "best", "last")


@dataclass(frozen=True)
class NamedSkill:
    """A skill to measure: `seed`, `best`, `last`, or what a person called it."""

    name: str
    text: str


def skills_of(training: Sequence[Event]) -> list[NamedSkill]:
    """Return seed and best skill of a training log, and the last one where it differs."""
    seed, best, last = (version_of(training, name).text for name in ("seed", "best", "last"))
    skills = [NamedSkill("seed", seed), NamedSkill("best", best)]
    if last != best:
        skills.append(NamedSkill("last", last))
    return skills


def named_skill(workspace: Path, name: str) -> NamedSkill:
    """Return the skill a person named: a file, a version of a run, or one of the last run's.

    Raises:
        UsageError: there is no such file, run or version.
    """
    path = workspace / name
    if path.is_file() or (path / MAIN).is_file():
        # An event holds no path of this machine.
        inside = path.resolve().is_relative_to(workspace.resolve())
        return NamedSkill(name if inside else path.name, read_seed_skill(path))
    if name in FROM_THE_LOG and not (workspace / EVENTS).exists():
        raise UsageError(
            f"The skill {name}", f"no {EVENTS}", "Run `dvc repro` first, or name a file"
        )
    return NamedSkill(name, skill_text(name))

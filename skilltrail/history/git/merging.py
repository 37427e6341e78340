"""A merge in which two runs meet: a workspace holds one run, so a person chooses one.

Lines of two logs, or of two `dvc.lock` files, make no third. `.gitattributes` takes git's own
`-merge` for the files that a run writes: it needs no configuration in a clone, unlike a driver
that keeps a side or makes the files anew; `union` would add the lines of both, which are then
nobody's. So git leaves whole files of this side, calls them unmerged, and one command chooses.
"""

from __future__ import annotations

from dataclasses import dataclass

from skilltrail.core.layout import BEST_SKILL, CURVE, EVENTS, METRICS
from skilltrail.history.git.repository import Git

GENERATED = ("dvc.lock", *(path.as_posix() for path in (EVENTS, BEST_SKILL, METRICS, CURVE)))
# What else says which run it is; only where git could not merge its lines.
CHOSEN_WITH = "params.yaml"
SIDES = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD")


@dataclass(frozen=True)
class Meeting:
    """Two runs meet: the files that git could not merge, and a command for each side."""

    unmerged: tuple[str, ...]
    keep: str
    take: str | None


def meeting_of(git: Git) -> Meeting | None:
    """Return what a merge under way leaves to a person, None where no two runs meet."""
    said = git.ask("diff", "--name-only", "--diff-filter=U", "--relative", "-z")
    names = set((b"" if said is None else said).decode("utf-8", "replace").split("\0"))
    unmerged = tuple(name for name in (*GENERATED, CHOSEN_WITH) if name in names)
    if not names.intersection(GENERATED):
        return None
    other = next((side for side in SIDES if git.ask("rev-parse", "-q", "--verify", side)), None)
    return Meeting(
        unmerged,
        _command(git, "HEAD", unmerged),
        None if other is None else _command(git, other, unmerged),
    )


def _command(git: Git, side: str, unmerged: tuple[str, ...]) -> str:
    """Return the command that takes all of one side's run, in this folder."""
    wanted = [*GENERATED, *(name for name in unmerged if name not in GENERATED)]
    there = [
        name for name in wanted if git.ask("cat-file", "-e", f"{side}:./{name}") is not None
    ]
    return f"git checkout {side} -- {' '.join(there)}"

"""Lineage: for every line of a skill version, the one change it comes from.

A lineage is a tuple of origins, one per line (lines as `split_lines` counts them). It is
advanced with the candidate that became the next version, whose `sources` follow from the
applied edits: a line keeps its origin through edits above it, through a move, and through a
replacement of the lines around it that leaves it as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from skilltrail.skill.candidate import Candidate
from skilltrail.skill.document import split_lines

SEED = "seed"


@dataclass(frozen=True)
class Origin:
    """Where a line was first written: the version, and the edit's id (`seed` in version 0)."""

    version: int
    edit: str = SEED


Lineage = tuple[Origin, ...]


def seed_lineage(text: str) -> Lineage:
    """Return the lineage of a seed skill: every line comes from version 0."""
    return (Origin(0),) * len(split_lines(text))


def advance(lineage: Lineage, candidate: Candidate, version: int) -> Lineage:
    """Return the lineage of `version`, the text of `candidate` on the parent of `lineage`.

    Raises:
        ValueError: `lineage` does not belong to the candidate's parent.
    """
    lines = len(split_lines(candidate.parent))
    if len(lineage) != lines:
        raise ValueError(f"a lineage of {len(lineage)} lines for a parent of {lines} lines")
    return tuple(
        lineage[source] if isinstance(source, int) else Origin(version, source)
        for source in candidate.sources
    )

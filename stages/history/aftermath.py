"""Aftermath: what later versions did with the lines that an edit wrote."""

from __future__ import annotations

from dataclasses import dataclass

from stages.history.lines import lineages
from stages.history.story import Story


@dataclass(frozen=True)
class Loss:
    """Lines of an edit that a later version no longer has, and the patch that made it so."""

    version: int
    lines: int
    patch: str | None


@dataclass(frozen=True)
class Fate:
    """What came of the lines that one edit wrote.

    Attributes:
        written, kept: how many lines it wrote, and how many the last version still has.
        last_version: number of the run's last version.
    """

    written: int
    kept: int
    last_version: int
    losses: tuple[Loss, ...]


def fates(story: Story, number: int) -> dict[str, Fate]:
    """Return the fate of every edit that wrote lines of version `number`, by edit id."""
    counts: dict[str, list[tuple[int, int]]] = {}
    last = number
    for version, lineage in lineages(story):
        if version.number < number:
            continue
        last = version.number
        alive = [origin.edit for origin in lineage if origin.version == number]
        if version.number == number:
            counts = {edit: [] for edit in dict.fromkeys(alive)}
        for edit, seen in counts.items():
            seen.append((version.number, alive.count(edit)))
    patches = {v.number: v.event.data["patch"] for v in story.versions}
    return {
        edit: Fate(
            written=seen[0][1],
            kept=seen[-1][1],
            last_version=last,
            losses=tuple(
                Loss(version, before - now, patches[version])
                for (_, before), (version, now) in zip(seen, seen[1:], strict=False)
                if now < before
            ),
        )
        for edit, seen in counts.items()
    }

"""Where each line of a version comes from, read off the log.

`candidate.built.sources` says it for each candidate, packed into runs: `[12, 3]` is three lines
carried over from line 12 of the parent on, `["14.0", 2]` is two lines that edit 14.0 wrote. The
edits themselves determine this (`skilltrail.skill.candidate`), no diff is guessed at; verify
computes it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from skilltrail.core.errors import FaultError
from skilltrail.history.log.events import Event
from skilltrail.history.log.replay import Version
from skilltrail.history.log.run_log import RunLog
from skilltrail.history.log.types import CandidateBuilt
from skilltrail.skill.candidate import Source
from skilltrail.skill.document import split_lines
from skilltrail.skill.lineage import Lineage, Origin, seed_lineage

Packed = list[list[int | str]]


def packed(sources: Iterable[Source]) -> Packed:
    """Return `sources` (0-based parent lines, or edit ids) as runs (1-based)."""
    runs: Packed = []
    for source in sources:
        start = source + 1 if isinstance(source, int) else source
        if runs and _continues(runs[-1], start):
            runs[-1][1] = int(runs[-1][1]) + 1
        else:
            runs.append([start, 1])
    return runs


def _continues(run: list[int | str], start: int | str) -> bool:
    first, length = run
    if isinstance(first, int) and isinstance(start, int):
        return start == first + int(length)
    return first == start


def unpacked(runs: Iterable[Sequence[int | str]]) -> list[Source]:
    """Return what `packed` was given."""
    return list(_unpacked(runs))


def _unpacked(runs: Iterable[Sequence[int | str]]) -> Iterator[Source]:
    for first, length in runs:
        for offset in range(int(length)):
            yield first - 1 + offset if isinstance(first, int) else first


def lineages(story: RunLog) -> Iterator[tuple[Version, Lineage]]:
    """Yield each version with the origin of every one of its lines.

    Raises:
        FaultError: the recorded sources do not fit the documents.
    """
    known: dict[str, Lineage] = {}
    for version in story.versions:
        seq = version.said.candidate
        if seq is None:
            lineage = seed_lineage(version.text)
        else:
            lineage = _lineage(story, known, story.at(seq), version.number)
        known[version.digest] = lineage
        if len(lineage) != len(split_lines(version.text)):
            raise FaultError(version.event.name, "its lines and their sources differ in number")
        yield version, lineage


def lineage_of(story: RunLog, number: int) -> Lineage:
    """Return the origin of every line of one version."""
    for version, lineage in lineages(story):
        if version.number == number:
            return lineage
    return ()


def _lineage(
    story: RunLog, known: Mapping[str, Lineage], built: Event, version: int
) -> Lineage:
    """Return the origins of a candidate's lines; `known` holds those of versions, by digest.

    Where its parent is a document that became no version, that one's lines came with this.
    """
    said = built.read(CandidateBuilt)
    parent = known.get(said.parent)
    if parent is None:
        before = story.built(said.parent, built.seq)
        if before is None:
            raise FaultError(built.name, "its parent is no document of this log")
        parent = _lineage(story, known, before, version)
    return tuple(
        _origin(parent, source, version, built.name) for source in unpacked(said.sources)
    )


def _origin(parent: Lineage, source: Source, version: int, where: str) -> Origin:
    if isinstance(source, str):
        return Origin(version, source)
    if source >= len(parent):
        raise FaultError(where, f"its sources name line {source + 1} of a shorter document")
    return parent[source]

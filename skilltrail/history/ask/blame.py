"""Blame: for every line of a version, which version, step, patch and verdict it comes from.

`candidate.built.sources` says it for each candidate, packed into runs: `[12, 3]` is three lines
carried over from line 12 of the parent on, `["14.0", 2]` is two lines that edit 14.0 wrote. The
edits themselves determine this (`skilltrail.skill.candidate`), no diff is guessed at; verify
computes it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from skilltrail.core.errors import FaultError, UsageError
from skilltrail.history.log.events import Event
from skilltrail.history.log.replay import Version
from skilltrail.history.log.run_log import RunLog
from skilltrail.history.log.types import CandidateBuilt
from skilltrail.history.log.types.outcomes import GateJudged
from skilltrail.skill.candidate import Source
from skilltrail.skill.document import split_lines
from skilltrail.skill.folder import is_folder, parts_of, place_of

SEED = "seed"
Packed = list[list[int | str]]


@dataclass(frozen=True)
class Origin:
    """Where a line was first written: the version, and the edit's id (`seed` in version 0)."""

    version: int
    edit: str = SEED


Lineage = tuple[Origin, ...]  # the origin of each line, as `split_lines` counts them


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


def lineages(log: RunLog) -> Iterator[tuple[Version, Lineage]]:
    """Yield each version with the origin of every one of its lines.

    Raises:
        FaultError: the recorded sources do not fit the documents.
    """
    known: dict[str, Lineage] = {}
    for version in log.versions:
        seq = version.said.candidate
        if seq is None:
            lineage = (Origin(0),) * len(split_lines(version.text))
        else:
            lineage = _lineage(log, known, log.at(seq), version.number)
        known[version.digest] = lineage
        if len(lineage) != len(split_lines(version.text)):
            raise FaultError(version.event.name, "its lines and their sources differ in number")
        yield version, lineage


def lineage_of(log: RunLog, number: int) -> Lineage:
    """Return the origin of every line of one version."""
    for version, lineage in lineages(log):
        if version.number == number:
            return lineage
    return ()


def _lineage(log: RunLog, known: Mapping[str, Lineage], built: Event, version: int) -> Lineage:
    """Return the origins of a candidate's lines; `known` holds those of versions, by digest.

    Where its parent is a document that became no version, that one's lines came with this.
    """
    said = built.read(CandidateBuilt)
    parent = known.get(said.parent)
    if parent is None:
        before = log.built(said.parent, built.seq)
        if before is None:
            raise FaultError(built.name, "its parent is no document of this log")
        parent = _lineage(log, known, before, version)
    return tuple(
        _origin(parent, source, version, built.name) for source in unpacked(said.sources)
    )


def _origin(parent: Lineage, source: Source, version: int, where: str) -> Origin:
    if isinstance(source, str):
        return Origin(version, source)
    if source >= len(parent):
        raise FaultError(where, f"its sources name line {source + 1} of a shorter document")
    return parent[source]


@dataclass(frozen=True)
class BlameLine:
    """One line of a version and where it was first written.

    Attributes:
        version, step, patch, edit: what wrote it; of the seed, step, patch and edit are None.
        verdict: of the gate that let it in; None for the seed.
        gain: gate metric after minus before, of the whole candidate it came with.
        file, file_line: where it stands in a skill folder; the line that names a file is its
            line 0. None for a skill of one file.
    """

    line: int
    text: str
    version: int
    step: int | None
    patch: str | None
    edit: str | None
    verdict: str | None
    gain: float | None
    file: str | None = None
    file_line: int | None = None

    def to_json(self) -> dict[str, Any]:
        told = asdict(self)
        if self.file is None:
            del told["file"], told["file_line"]
        return told


def blame(log: RunLog, wanted: int | str) -> list[BlameLine]:
    """Return the lines of a version (a number, `seed`, `best` or `last`).

    Raises:
        UsageError: the log has no such version.
    """
    version = log.version(wanted)
    lineage = lineage_of(log, version.number)
    births = {v.number: v.said for v in log.versions}
    lines = []
    for number, (text, origin) in enumerate(
        zip(split_lines(version.text), lineage, strict=True), 1
    ):
        born = births[origin.version]
        verdict, gain = _verdict(log, born.gate)
        patch = _patch(log, origin, born.patch)
        edit = None if origin.edit == SEED else origin.edit
        lines.append(
            BlameLine(
                number,
                text,
                origin.version,
                born.step,
                patch,
                edit,
                verdict,
                gain,
                *_place(version.text, number),
            )
        )
    return lines


def line_in(text: str, file: str, line: int) -> int:
    """Return the number, in the whole, of a line of a file of a skill folder.

    Raises:
        UsageError: the skill has no such file, or the file no such line.
    """
    for part in parts_of(text):
        if part.path == file:
            if 1 <= line <= len(split_lines(part.text)):
                return part.start + line
            found = f"it has {len(split_lines(part.text))} lines"
            raise UsageError(f"line {line} of {file}", found, "`skilltrail blame` numbers them")
    known = ", ".join(part.path for part in parts_of(text))
    raise UsageError(f"file {file!r}", "the skill has no such file", f"It has {known}")


def _place(text: str, line: int) -> tuple[str | None, int | None]:
    return place_of(text, line) if is_folder(text) else (None, None)


def gain_of(gate: GateJudged) -> float | None:
    """Return after minus before of a verdict, None where not known."""
    if gate.before is None or gate.after is None:
        return None
    return gate.after - gate.before


def _verdict(log: RunLog, gate: int | None) -> tuple[str | None, float | None]:
    if gate is None:
        return None, None
    said = log.at(gate).read(GateJudged)
    return "forced" if said.forced else said.verdict.value, gain_of(said)


def _patch(log: RunLog, origin: Origin, selected: str | None) -> str | None:
    """Return the patch whose edit wrote the line: notes come beside the selected patch."""
    if origin.edit == SEED:
        return None
    carrier = log.at(int(origin.edit.split(".")[0]))
    patch = carrier.data.get("patch")
    return selected if patch is None else str(patch)

"""Line history: what later versions did with the lines that an edit wrote, or tried to do."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from skilltrail.core.canon import canonical
from skilltrail.history.ask.blame import lineages
from skilltrail.history.log.candidate_events import candidate_around
from skilltrail.history.log.events import Event
from skilltrail.history.log.evolve import CARRIERS
from skilltrail.history.log.run_log import RunLog
from skilltrail.history.log.types.outcomes import GateJudged
from skilltrail.skill.document import split_lines
from skilltrail.skill.edit import Edit


@dataclass(frozen=True)
class Loss:
    """Lines of an edit that a later version no longer has, and the patch that made it so."""

    version: int
    lines: int
    patch: str | None


@dataclass(frozen=True)
class LineHistory:
    """What came of the lines that one edit wrote.

    Attributes:
        written, kept: how many lines it wrote, and how many the last version still has.
        last_version: number of the run's last version.
    """

    written: int
    kept: int
    last_version: int
    losses: tuple[Loss, ...]


def line_histories(log: RunLog, number: int) -> dict[str, LineHistory]:
    """Return what came of every edit that wrote lines of version `number`, by edit id."""
    counts: dict[str, list[tuple[int, int]]] = {}
    last = number
    for version, lineage in lineages(log):
        if version.number < number:
            continue
        last = version.number
        alive = [origin.edit for origin in lineage if origin.version == number]
        if version.number == number:
            counts = {edit: [] for edit in dict.fromkeys(alive)}
        for edit, seen in counts.items():
            seen.append((version.number, alive.count(edit)))
    patches = {v.number: v.said.patch for v in log.versions}
    return {
        edit: LineHistory(
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


@dataclass(frozen=True)
class Attempt:
    """A later edit that would have changed or removed a line, in a candidate that lost.

    Attributes:
        after, after_max: score of the candidate, and the most it could still reach.
    """

    step: int
    edit: str
    op: str
    line: str
    verdict: str
    before: float | None
    after: float | None
    after_max: float | None


def attempts(log: RunLog, number: int, lines: Iterable[str]) -> Iterator[Attempt]:
    """Yield what was tried in vain, after version `number`, on any of `lines`."""
    wanted = {line for line in lines if line.strip()}
    since = log.versions[number].event.seq
    for built in _built_about(log, since, wanted):
        touched = [(edit, _touched(edit, wanted)) for edit in log.edits_of(built)]
        if all(line is None for _, line in touched):
            continue
        candidate = candidate_around(log, built)
        if candidate.gate is None or candidate.versioned is not None:
            continue
        gate = candidate.gate.read(GateJudged)
        for edit, line in touched:
            if line is not None:
                yield Attempt(
                    step=gate.step,
                    edit=edit.id,
                    op=edit.op,
                    line=line,
                    verdict=gate.verdict.value,
                    before=gate.before,
                    after=gate.after,
                    after_max=gate.after_max,
                )


def _built_about(log: RunLog, since: int, lines: Iterable[str]) -> Iterator[Event]:
    """Yield the candidates after event `since` with an edit that names one of `lines`.

    Found by the bytes of the patches, so that a long log is not parsed for it.
    """
    needles = [canonical(line)[1:-1].encode() for line in lines]
    past = since
    for event in log.of_type(*CARRIERS):
        if event.seq > past and any(needle in event.line for needle in needles):
            candidate = candidate_around(log, event)
            past = candidate.last
            if candidate.built is not None and candidate.built.seq > since:
                yield candidate.built


def _touched(edit: Edit, wanted: Container[str]) -> str | None:
    """Return the first line of `wanted` that an edit would change or remove."""
    if edit.op not in ("delete", "replace"):
        return None
    return next((line for line in split_lines(edit.target) if line in wanted), None)

"""Blame: for every line of a version, which version, step, patch and verdict it comes from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from skilltrail.history.ask.lines import lineage_of
from skilltrail.history.log.run_log import RunLog
from skilltrail.skill.document import split_lines
from skilltrail.skill.lineage import SEED, Origin


@dataclass(frozen=True)
class BlameLine:
    """One line of a version and where it was first written.

    Attributes:
        version, step, patch, edit: what wrote it; of the seed, step, patch and edit are None.
        verdict: of the gate that let it in; None for the seed.
        gain: gate metric after minus before, of the whole candidate it came with.
    """

    line: int
    text: str
    version: int
    step: int | None
    patch: str | None
    edit: str | None
    verdict: str | None
    gain: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def blame(story: RunLog, wanted: int | str) -> list[BlameLine]:
    """Return the lines of a version (a number, `seed`, `best` or `last`).

    Raises:
        UsageError: the log has no such version.
    """
    version = story.version(wanted)
    lineage = lineage_of(story, version.number)
    births = {v.number: v.event for v in story.versions}
    lines = []
    for number, (text, origin) in enumerate(
        zip(split_lines(version.text), lineage, strict=True), 1
    ):
        born = births[origin.version].data
        verdict, gain = _verdict(story, born["gate"])
        patch = _patch(story, origin, born["patch"])
        edit = None if origin.edit == SEED else origin.edit
        lines.append(
            BlameLine(
                number, text, origin.version, born.get("step"), patch, edit, verdict, gain
            )
        )
    return lines


def gain_of(data: Any) -> float | None:
    """Return after minus before of a `gate.judged` event's data, None where not known."""
    if data["before"] is None or data["after"] is None:
        return None
    return float(data["after"]) - float(data["before"])


def _verdict(story: RunLog, gate: int | None) -> tuple[str | None, float | None]:
    if gate is None:
        return None, None
    data = story.at(gate).data
    word = "forced" if data["forced"] else data["verdict"]
    return word, gain_of(data)


def _patch(story: RunLog, origin: Origin, selected: str | None) -> str | None:
    """Return the patch whose edit wrote the line: notes come beside the selected patch."""
    if origin.edit == SEED:
        return None
    carrier = story.at(int(origin.edit.split(".")[0]))
    patch = carrier.data.get("patch")
    return selected if patch is None else str(patch)

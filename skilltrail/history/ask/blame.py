"""Blame: for every line of a version, which version, step, patch and verdict it comes from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from skilltrail.core.errors import UsageError
from skilltrail.history.ask.lines import lineage_of
from skilltrail.history.log.run_log import RunLog
from skilltrail.history.log.types.outcomes import GateJudged
from skilltrail.skill.document import split_lines
from skilltrail.skill.folder import is_folder, parts_of, place_of
from skilltrail.skill.lineage import SEED, Origin


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


def blame(story: RunLog, wanted: int | str) -> list[BlameLine]:
    """Return the lines of a version (a number, `seed`, `best` or `last`).

    Raises:
        UsageError: the log has no such version.
    """
    version = story.version(wanted)
    lineage = lineage_of(story, version.number)
    births = {v.number: v.said for v in story.versions}
    lines = []
    for number, (text, origin) in enumerate(
        zip(split_lines(version.text), lineage, strict=True), 1
    ):
        born = births[origin.version]
        verdict, gain = _verdict(story, born.gate)
        patch = _patch(story, origin, born.patch)
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


def _verdict(story: RunLog, gate: int | None) -> tuple[str | None, float | None]:
    if gate is None:
        return None, None
    said = story.at(gate).read(GateJudged)
    return "forced" if said.forced else said.verdict.value, gain_of(said)


def _patch(story: RunLog, origin: Origin, selected: str | None) -> str | None:
    """Return the patch whose edit wrote the line: notes come beside the selected patch."""
    if origin.edit == SEED:
        return None
    carrier = story.at(int(origin.edit.split(".")[0]))
    patch = carrier.data.get("patch")
    return selected if patch is None else str(patch)

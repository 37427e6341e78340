"""Versions of the skill as lists of lines, where each line knows which edit wrote it.

A line that goes through several versions is one line with one number, so a version is a few
runs of numbers, and two versions differ exactly where their numbers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skilltrail.history.ask.blame import Lineage, Origin, lineages
from skilltrail.history.log.replay import Version
from skilltrail.history.log.run_log import RunLog
from skilltrail.report.book.packing import DIGEST_CHARS
from skilltrail.report.book.strings import Strings
from skilltrail.skill.document import split_lines


class Lines:
    """Lines by number: text, and the version and edit that wrote it (`seed` in version 0)."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._numbers: dict[tuple[str, Origin, int], int] = {}
        self.columns: dict[str, list[Any]] = {"text": [], "version": [], "edit": []}

    def runs(self, text: str, lineage: Lineage) -> list[list[int]]:
        """Return the lines of `text` as runs `[first number, how many]`."""
        seen: dict[tuple[str, Origin], int] = {}
        numbers = []
        for line, origin in zip(split_lines(text), lineage, strict=True):
            nth = seen[line, origin] = seen.get((line, origin), -1) + 1
            numbers.append(self._number(line, origin, nth))
        return runs_of(numbers)

    def _number(self, line: str, origin: Origin, nth: int) -> int:
        number = self._numbers.get((line, origin, nth))
        if number is None:
            number = self._numbers[line, origin, nth] = len(self.columns["text"])
            self.columns["text"].append(self._strings.keep(line))
            self.columns["version"].append(origin.version)
            self.columns["edit"].append(origin.edit)
        return number


def runs_of(numbers: Sequence[int]) -> list[list[int]]:
    """Return whole numbers as runs `[first, how many]`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][0] + runs[-1][1] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return runs


def packed_versions(log: RunLog, lines: Lines) -> list[dict[str, Any]]:
    """Return every version of the log, in order."""
    return [
        _packed(version, lines.runs(version.text, lineage))
        for version, lineage in lineages(log)
    ]


def _packed(version: Version, runs: list[list[int]]) -> dict[str, Any]:
    data = version.event.data
    names = ("epoch", "step", "best", "patch", "gate", "candidate", "tokens", "lines_added",
             "lines_removed", "edits", "not_applied")  # fmt: skip
    return {name: data[name] for name in names if name in data} | {
        "version": version.number,
        "seq": version.event.seq,
        "digest": version.digest[:DIGEST_CHARS],
        "lines": runs,
    }

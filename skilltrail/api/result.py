"""What a training came to: the best skill, its scores, every step, the page."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from skilltrail.core.errors import UsageError
from skilltrail.core.files import write_atomic
from skilltrail.core.layout import PAGE
from skilltrail.history.log.events import Event
from skilltrail.history.log.replay import versions
from skilltrail.report.tables import curve, metrics


@dataclass(frozen=True)
class Result:
    """A finished training, whatever its workspace is used for afterwards.

    Attributes:
        workspace: the git repository with log, store, commits and `params.yaml`: every
            command of `skilltrail` works in it.
        best: the text of the best skill.
        seed: the text that it started from.
        events: every decision of the training, in order; see docs/history.md.
        evaluation: the events of the evaluation; none where the test split is sealed.
    """

    workspace: Path
    best: str
    seed: str
    events: Sequence[Event] = field(repr=False)
    evaluation: Sequence[Event] = field(default=(), repr=False)
    _kept: Any = field(default=None, repr=False, compare=False)  # a temporary folder's life

    @cached_property
    def history(self) -> list[dict[str, Any]]:
        """A row per step: verdict, edits, scores; see `skilltrail.report.tables.COLUMNS`."""
        return curve(self.events)

    @cached_property
    def scores(self) -> Mapping[str, Any]:
        """Scores by split: `scores["test"]["gain"]` with `gain_low` and `gain_high` (95 %)."""
        return metrics(self.events, self.evaluation)

    @property
    def gain(self) -> float | None:
        """Gain of the best skill over the seed on the test split; None where it is sealed."""
        found = self.scores.get("test", {}).get("gain")
        return None if found is None else float(found)

    def version(self, number: int) -> str:
        """Return the text of any version (0 = the seed).

        Raises:
            UsageError: there is no such version.
        """
        found = versions(self.events)
        if not 0 <= number < len(found):
            raise UsageError(f"version {number}", f"there are 0 to {len(found) - 1}")
        return found[number].text

    def report(self, path: str | Path | None = None) -> Path:
        """Write the page (one HTML file, no network) and return where it is."""
        from skilltrail.report.build import drawn

        place = self.workspace / PAGE if path is None else Path(path)
        texts = drawn(self.workspace, self.events, self.evaluation, self.workspace)[PAGE]
        write_atomic(place, next(iter(texts)))
        return place

    def save(self, path: str | Path) -> Path:
        """Write the best skill to a file."""
        write_atomic(Path(path), self.best)
        return Path(path)

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self._rows())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(value)}"
            "</td></tr>"
            for name, value in self._rows()
        )
        return f"<table>{rows}</table><pre>{html.escape(self.best)}</pre>"

    def _rows(self) -> list[tuple[str, str]]:
        found = self.scores
        rows = [("steps", f"{found['steps']} ({found['accepted']} accepted)")]
        for split in ("selection", "test"):
            if split in found:
                one = found[split]
                told = f"{one['seed']:.3f} -> {one['best']:.3f} on {one['items']} items"
                if "gain_low" in one:
                    told += f", gain {one['gain']:+.3f} (95 %: {one['gain_low']:+.3f} to "
                    told += f"{one['gain_high']:+.3f})"
                rows.append((split, told))
        return [*rows, ("workspace", str(self.workspace))]

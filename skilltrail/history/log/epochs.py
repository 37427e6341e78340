"""A run in a table: what each epoch came to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from skilltrail.core.score import exact_mean
from skilltrail.history.log.run_log import RunLog


@dataclass
class EpochRow:
    """One epoch. `train_hard` and `train_soft` are means over its train rollouts.

    Attributes:
        best: gate metric of the best skill at the end of the epoch, None where not measured.
        saved: rollouts that early stopping made unnecessary.
    """

    epoch: int
    steps: int = 0
    accepted: int = 0
    rejected: int = 0
    indecisive: int = 0
    unchanged: int = 0
    train_hard: float | None = None
    train_soft: float | None = None
    best: float | None = None
    saved: int = 0
    version: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def epoch_rows(story: RunLog) -> list[EpochRow]:
    """Return one row per epoch that the log has begun."""
    rows: dict[int, EpochRow] = {}
    train: dict[int, list[tuple[float | None, float | None]]] = {}
    best: float | None = None
    made = {e.data["gate"]: e.data["best"] for e in story.of_type("skill.versioned")}
    for event in story.of_type("rollouts.scored", "gate.judged", "step.ended"):
        data = event.data
        if "epoch" not in data:
            continue
        row = rows.setdefault(data["epoch"], EpochRow(data["epoch"], best=best))
        if event.type == "rollouts.scored" and data["purpose"] == "train":
            scores = [(item["hard"], item["soft"]) for item in data["items"]]
            train.setdefault(row.epoch, []).extend(scores)
        elif event.type == "gate.judged":
            best = data["before"] if best is None else best
            best = data["after"] if made.get(event.seq) else best
            row.best, row.saved = best, row.saved + data["saved"]
        elif event.type == "step.ended":
            row.steps, row.version = row.steps + 1, data["version"]
            name = data["result"]
            name = name if name in ("accepted", "rejected", "indecisive") else "unchanged"
            setattr(row, name, getattr(row, name) + 1)
    for epoch, scores in train.items():
        rows[epoch].train_hard = _mean([hard for hard, _ in scores])
        rows[epoch].train_soft = _mean([soft for _, soft in scores])
    return [rows[epoch] for epoch in sorted(rows)]


def _mean(values: list[float | None]) -> float | None:
    mean = exact_mean(None if value is None else Fraction(value) for value in values)
    return None if mean is None else float(mean)

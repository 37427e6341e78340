"""A run in a table: what each epoch came to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from skilltrail.core.score import exact_mean
from skilltrail.history.log import types
from skilltrail.history.log.run_log import RunLog
from skilltrail.history.log.types.parts import Purpose, RowScored, Verdict


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


def epoch_rows(log: RunLog) -> list[EpochRow]:
    """Return one row per epoch that the log has begun."""
    rows: dict[int, EpochRow] = {}
    train: dict[int, list[RowScored]] = {}
    best: float | None = None

    for event in log.of_type("rollouts.scored", "gate.judged", "step.ended"):
        said = event.said
        epoch = getattr(said, "epoch", None)
        if epoch is None:
            continue
        row = rows.setdefault(epoch, EpochRow(epoch, best=best))
        if isinstance(said, types.RolloutsScored) and said.purpose is Purpose.TRAIN:
            train.setdefault(epoch, []).extend(said.items)
        elif isinstance(said, types.GateJudged):
            best = log.best_means[event.seq]
            row.best, row.saved = best, row.saved + said.saved
        elif isinstance(said, types.StepEnded):
            row.steps, row.version = row.steps + 1, said.version
            name = said.result.value if said.result.value in list(Verdict) else "unchanged"
            setattr(row, name, getattr(row, name) + 1)
    for epoch, scored in train.items():
        rows[epoch].train_hard = _mean(row.hard for row in scored)
        rows[epoch].train_soft = _mean(row.soft for row in scored)
    return [rows[epoch] for epoch in sorted(rows)]


def _mean(values: Iterable[float | None]) -> float | None:
    mean = exact_mean(None if value is None else Fraction(value) for value in values)
    return None if mean is None else float(mean)

"""What varies with the step number: the edit budget (learning rate) and the batches.

Both are functions of the step, so there is no scheduler state to save, lose or advance wrongly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from skilltrail.core.order import seeded_order

DECAYING = ("linear", "cosine")  # the schedules that read `lr_min` and the total of steps


@dataclass(frozen=True)
class Step:
    """One step of the plan: 1-based `step` over the whole run, and its batches of item ids."""

    epoch: int
    step: int
    batches: tuple[tuple[str, ...], ...]

    @property
    def where(self) -> dict[str, Any]:
        """Epoch and step, as the step's events name them."""
        return {"epoch": self.epoch, "step": self.step}

    @property
    def items(self) -> tuple[str, ...]:
        """All item ids of the step in batch order (batches are pooled when accumulating)."""
        return tuple(id for batch in self.batches for id in batch)


def steps_per_epoch(n_train: int, batch_size: int, accumulation: int) -> int:
    """Return ceil(n_train / (batch_size * accumulation)); the last step may be short."""
    return -(-n_train // (batch_size * accumulation))


def plan_epoch(
    train_ids: Sequence[str], *, seed: int, epoch: int, batch_size: int, accumulation: int
) -> list[Step]:
    """Return the steps of one epoch (1-based); they cover the train split exactly once."""
    order = seeded_order(train_ids, seed, epoch)
    batches = [tuple(order[at : at + batch_size]) for at in range(0, len(order), batch_size)]
    before = (epoch - 1) * steps_per_epoch(len(order), batch_size, accumulation)
    return [
        Step(epoch, before + 1 + at // accumulation, tuple(batches[at : at + accumulation]))
        for at in range(0, len(batches), accumulation)
    ]


def edit_budget(
    step: int,
    *,
    schedule: str,
    lr: int | None,
    lr_min: int = 1,
    total_steps: int = 1,
    warmup: int = 0,
    phase: str = "start",
    rounding: str = "up",
) -> int | None:
    """Return how many edits step `step` (1-based) may apply; None = no cap (`lr` None too).

    Warm-up rises linearly to `lr` at step `warmup`. Then `constant` (and the upper bound of
    `autonomous`) stays there, `linear` and `cosine` fall from `lr` to `lr_min` at the last
    step. A run of one step has `lr`.

    Args:
        phase: `start` = the first step has `lr` in full; `interval` = it has fallen by one
            interval already, as in SkillOpt's schedulers.
        rounding: what halves of a falling budget become: `up`, or the `even` neighbour.
    """
    if schedule == "none" or lr is None:
        return None
    if step < warmup:
        return max(1, _round_half_up(Fraction(lr * step, warmup)))
    start = max(warmup, 1) if phase == "start" else warmup
    if schedule not in DECAYING or total_steps <= max(start, 1):
        return lr
    rounded = _round_half_up if rounding == "up" else round
    done = Fraction(step - start, total_steps - start)
    if schedule == "linear":
        return rounded(lr - (lr - lr_min) * done)
    # Rounded to 1e-9 first, so that a value that is a half in exact arithmetic rounds up on
    # every CPU.
    cosine = round(math.cos(math.pi * float(done)), 9)
    share = (1 + Fraction(cosine).limit_denominator(10**9)) / 2
    return rounded(lr_min + (lr - lr_min) * share)


def _round_half_up(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))

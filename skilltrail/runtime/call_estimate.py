"""How many calls a run makes, at least and at most: known from its params before any is made.

A candidate that is rejected early costs less than a full evaluation, and what is recorded costs
nothing; hence ranges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from skilltrail.params.fields import Params


@dataclass(frozen=True)
class Size:
    """Items of the three splits, after limits."""

    train: int
    selection: int
    test: int


def steps_of(params: Params, train: int) -> int:
    """Return the number of steps of a run over `train` items."""
    return params.epochs * math.ceil(train / (params.batch_size * params.accumulation))


def call_ranges(params: Params, size: Size) -> list[tuple[str, str, int, int]]:
    """Return (phase, role, fewest calls, most calls) of every phase."""
    steps = steps_of(params, size.train)
    repeats = params.gate.repeats
    rows = [
        ("baseline", "target", size.selection * repeats, size.selection * repeats),
        ("train rollouts", "target", size.train, size.train * params.epochs),
        ("gate", "target", 0, steps * size.selection * repeats),
    ]
    if params.slow_update.enabled and params.epochs > 1:
        most = (params.epochs - 1) * (2 * params.slow_update.samples + size.selection)
        rows.append(("slow update", "target", 0, most))
    if params.compaction:
        rows.append(("compaction", "target", 0, params.epochs * size.selection * repeats))
    if params.evaluate.enabled:
        rows += _evaluation_ranges(params, size)
    if params.judge.backend != "none":
        rows += _judge_ranges(rows)
    if params.optimizer.backend != "rules":
        rows += _optimizer_ranges(params, steps, size)
    return rows


def _judge_ranges(rollouts: list[tuple[str, str, int, int]]) -> list[tuple[str, str, int, int]]:
    """Return the judge's part of each phase: none where rules score all of it, at most two
    calls a rollout. Equal answers to an item are judged once."""
    most: dict[str, int] = {}
    for phase, _, _, high in rollouts:
        most[phase] = most.get(phase, 0) + 2 * high
    return [(phase, "judge", 0, high) for phase, high in most.items()]


def _evaluation_ranges(params: Params, size: Size) -> list[tuple[str, str, int, int]]:
    asked = params.evaluate
    splits = {"train": size.train, "selection": size.selection, "test": size.test}
    items = sum(splits.values()) if asked.split == "all" else splits[asked.split]
    named = len(asked.skills)
    low, high = (named, named) if named else (1, 3)  # seed, best and last may be one text
    roles = ["target", *map(transfer_role, asked.roles)]
    return [("evaluate", role, low * items, high * items) for role in roles]


def transfer_role(name: str) -> str:
    """Return what messages call a role of `evaluate.targets`."""
    return f"evaluate.targets.{name}"


def _optimizer_ranges(
    params: Params, steps: int, size: Size
) -> list[tuple[str, str, int, int]]:
    pooled = min(size.train, params.batch_size * params.accumulation)
    analysts = math.ceil(pooled / params.reflect.minibatch_size) + 1
    merges, groups = 0, analysts
    while groups > 1:
        groups = math.ceil(groups / params.merge_batch_size)
        merges += groups
    rows = [
        ("reflect", "optimizer", steps, 2 * steps * analysts),
        ("merge", "optimizer", 0, 2 * steps * (merges + 1)),
        ("rank", "optimizer", 0, 2 * steps),
    ]
    boundaries = max(0, params.epochs - 1)
    for enabled, name in (
        (params.slow_update.enabled, "slow update"),
        (params.meta_skill.enabled, "meta skill"),
    ):
        if enabled and boundaries:
            rows.append((name, "optimizer", 0, 2 * boundaries))
    if params.compaction:
        rows.append(("compaction", "optimizer", params.epochs, 2 * params.epochs))
    return rows


def most_rollouts(params: Params, size: Size) -> int:
    """Return how many rollouts of the target a training makes at most."""
    ranges = call_ranges(params, size)
    return sum(
        high for phase, role, _, high in ranges if role == "target" and phase != "evaluate"
    )

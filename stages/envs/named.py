"""Further metrics of an environment, by name: where the official value differs from our score.

An environment may have `metrics(item, trajectory) -> dict[str, float]`, each value in [0, 1].
They are computed from trajectories, like scores: no gate reads them, no event holds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Protocol, runtime_checkable

from stages.core.item import Item
from stages.core.trajectory import Trajectory
from stages.envs.protocol import Environment

_SCORED_AS_THEY_STAND = ("answered", "truncated")


@runtime_checkable
class Named(Protocol):
    """An environment with further metrics."""

    def metrics(self, item: Item, trajectory: Trajectory) -> Mapping[str, float]:
        """Return named values in [0, 1]; pure, the same names for items of one kind."""


def named_means(
    environment: Environment, done: Iterable[tuple[Item, Trajectory]]
) -> dict[str, float]:
    """Return the exactly summed mean of each named metric over the items that have it.

    A rollout that ended without an answer counts 0 under every name, as its score does.
    """
    if not isinstance(environment, Named):
        return {}
    values: dict[str, list[Fraction]] = {}
    for item, trajectory in done:
        counts = trajectory.ending in _SCORED_AS_THEY_STAND
        for name, value in environment.metrics(item, trajectory).items():
            values.setdefault(name, []).append(Fraction(value) if counts else Fraction(0))
    return {name: float(sum(found) / len(found)) for name, found in sorted(values.items())}

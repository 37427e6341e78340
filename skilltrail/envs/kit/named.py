"""Further metrics of an environment, by name: where the official value differs from our score.

An environment may have `metrics(item, trajectory) -> dict[str, float]`, each value in [0, 1].
They are computed from trajectories, like scores, and told of evaluations; no gate reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from skilltrail.core.item import Item
from skilltrail.core.score import exact
from skilltrail.core.trajectory import WITHOUT_ANSWER, Trajectory
from skilltrail.envs.protocol import Environment


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
        counts = trajectory.ending not in WITHOUT_ANSWER
        for name, value in environment.metrics(item, trajectory).items():
            values.setdefault(name, []).append(exact(value) if counts else Fraction(0))
    return {name: float(sum(found) / len(found)) for name, found in sorted(values.items())}


def told_means(
    environment: Environment, done: Iterable[tuple[Item, Trajectory]]
) -> list[dict[str, Any]]:
    """Return the named means as an event tells them, by name; [] where there are none."""
    means = named_means(environment, done)
    return [{"name": name, "mean": mean} for name, mean in means.items()]

"""Further metrics of an environment, by name: means over an evaluation's rollouts."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from skilltrail.core.item import Item
from skilltrail.core.score import exact
from skilltrail.core.trajectory import WITHOUT_ANSWER, Trajectory
from skilltrail.envs.protocol import Environment
from skilltrail.envs.scoring import asked


def metric_means(
    environment: Environment, done: Iterable[tuple[Item, Trajectory]]
) -> dict[str, float]:
    """Return the exactly summed mean of each named metric over the items that have it.

    A rollout that ended without an answer counts 0 under every name, as its score does.
    """
    values: dict[str, list[Fraction]] = {}
    for item, trajectory in done:
        counts = trajectory.ending not in WITHOUT_ANSWER
        for name, value in asked(environment.metrics, item, trajectory).items():
            values.setdefault(name, []).append(exact(value) if counts else Fraction(0))
    return {name: float(sum(found) / len(found)) for name, found in sorted(values.items())}


def metric_rows(
    environment: Environment, done: Iterable[tuple[Item, Trajectory]]
) -> list[dict[str, str | float]]:
    """Return the named means as an event tells them, by name; [] where there are none."""
    return [{"name": n, "mean": mean} for n, mean in metric_means(environment, done).items()]

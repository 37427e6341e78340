"""Who makes a rollout that is not recorded yet: this process, or machines that it asks.

Where a rollout is made is no part of any fact: whoever makes it, it is scored, counted, ordered
and recorded here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from skilltrail.core.canon import text_digest
from skilltrail.core.item import Item
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.protocol import Environment
from skilltrail.envs.scoring import rolled_out
from skilltrail.models.panel import member_of
from skilltrail.models.protocol import Model
from skilltrail.models.served import NotingModel


class Maker(Protocol):
    """Makes rollouts of one environment by one target."""

    @property
    def workers(self) -> int:
        """How many rollouts may be in flight at once; may change while a run is on."""

    async def make(self, item: Item, skill: str) -> dict[str, Any]:
        """Return the value that the rollout is recorded as.

        Raises:
            ModelError: the infrastructure failed.
            DataError: the environment raised.
        """


@dataclass(frozen=True)
class Here:
    """Makes rollouts in this process."""

    env: Environment
    target: Model

    @property
    def workers(self) -> int:
        return self.target.workers

    async def make(self, item: Item, skill: str) -> dict[str, Any]:
        target = NotingModel(member_of(self.target, item.target))
        trajectory = await rolled_out(self.env, item, skill, target)
        told = {"skill": text_digest(skill), "trajectory": trajectory.to_json()}
        return told | target.noted(trajectory)


class Counter(Protocol):
    """Counts rollouts as they finish (usage file, progress bar)."""

    def count(self, trajectory: Trajectory | None, *, reused: bool) -> None: ...


class Shared(Protocol):
    """Facts that other machines have; see `skilltrail.store.shared`."""

    async def expect(self, keys: Iterable[str]) -> None: ...

    async def share(self) -> None: ...

"""What a benchmark provides: items, an agent, a scorer.

An environment is a folder `envs/<name>/` whose `env.py` defines `ENVIRONMENT`, a class
built with the environment's own typed params.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast

from skilltrail.core.errors import DataError
from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import WITHOUT_ANSWER, Trajectory
from skilltrail.models.judge import Case
from skilltrail.models.protocol import Model


@dataclass(frozen=True)
class Where:
    """Where a record stands: for error messages only."""

    file: str
    line: int

    def error(self, field: str, found: str, remedy: str) -> DataError:
        """Return the error that names file, line and field."""
        return DataError(f"{self.file}, line {self.line}, field {field!r}", found, remedy)


class Environment(Protocol):
    """One benchmark.

    `version` is part of every rollout key: raise it when prompts or the agent change. A change
    of the scorer alone costs no call, since scores are computed from trajectories.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    Params: ClassVar[type]  # a frozen dataclass with defaults
    params: Any

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of one raw record.

        Raises:
            DataError: via `where.error`, naming the field.
        """

    def content(self, item: Item) -> str:
        """Return the text whose normalised form must differ between splits."""

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        """Let the agent, told `skill`, do `item`.

        Raises:
            ModelError: the infrastructure failed; the rollout is then missing, not wrong.
        """

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Judge a trajectory. Pure: same arguments, same score."""

    def reference(self, item: Item) -> str | None:
        """Return the expected answer for analysts (asked for train items only), or None.

        An environment may also have `feedback(item, trajectory) -> str | None`: what it says of
        a train rollout to analysts, never to the agent.
        """


class Judged(Environment, Protocol):
    """An environment that a model may have to score; see the params `judge`."""

    def needs_judge(self, item: Item) -> bool:
        """Return whether no rule can score this item's answers."""

    def case(self, item: Item, trajectory: Trajectory) -> Case | None:
        """Return what the judge is shown of an answer to such an item. Pure.

        None where a rule decides after all, as over an empty answer: `score` is asked then.
        """


def needs_judge(env: Environment, item: Item) -> bool:
    """Return whether the answers to an item are for a judge."""
    asks = getattr(env, "needs_judge", None)
    return asks is not None and bool(asks(item))


def case_of(env: Environment, item: Item, trajectory: Trajectory) -> Case | None:
    """Return what the judge is to be asked of a rollout; None where it is not."""
    if trajectory.ending in WITHOUT_ANSWER or not needs_judge(env, item):
        return None
    return cast(Judged, env).case(item, trajectory)

"""Scoring: what a trajectory is worth, by the environment's rule or by the run's judge.

Scores are never facts: a rule is pure, and a judge's score is computed from its recorded
judgement (`skilltrail.models.judge`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from skilltrail.core.errors import ParamError
from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.protocol import Environment, case_of
from skilltrail.envs.scoring import Queue, by_rule_aside
from skilltrail.models.judge import Judge


@dataclass(frozen=True)
class Scorer:
    """Scores the trajectories of one environment; `judge` is None where nobody judges."""

    env: Environment
    judge: Judge | None = None
    queue: Queue = field(default_factory=Queue, compare=False)

    def consumed(self, items: Iterable[Item]) -> dict[str, Any]:
        """Return what an event says of the judge of `items`: {} where none is needed."""
        asked = self.judge is not None and any(map(self.needs_judge, items))
        return {"judge": self.judge.identity} if asked and self.judge is not None else {}

    def needs_judge(self, item: Item) -> bool:
        return self.env.needs_judge(item)

    def require_judge(self, items: Iterable[Item]) -> None:
        """Refuse items that only a judge can score when there is none.

        Raises:
            ParamError: names the first such item.
        """
        if self.judge is not None:
            return
        lacking = next((item for item in items if self.needs_judge(item)), None)
        if lacking is not None:
            raise ParamError(
                "judge.backend",
                f"`none`, and no rule can score item {lacking.id!r} of {self.env.name}",
                "Name a judge and its rubric: judge.backend, judge.model, judge.rubric",
            )

    def judgement(self, item: Item, trajectory: Trajectory) -> str | None:
        """Return the fact key of the judgement that decides; None where a rule does."""
        case = case_of(self.env, item, trajectory)
        return None if case is None or self.judge is None else self.judge.key(case)

    async def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Return the score; the judge is asked where it has not been yet.

        Raises:
            ModelError: the judge gave none.
            DataError: no rule can score it; names item, file and line.
        """
        case = case_of(self.env, item, trajectory)
        if case is None or self.judge is None:
            return await by_rule_aside(self.env, item, trajectory, self.queue)
        return await self.judge.score(case)

"""A trajectory: everything one rollout did, turn by turn.

The skill itself is not repeated in each turn (`Request.system` holds it, its digest is in the
fact's key), so trajectories stay small however long the skill grows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skilltrail.core.score import Cost
from skilltrail.core.served import Served

# How a rollout ended without an answer: the agent's own outcome, a score of 0 with that reason.
WITHOUT_ANSWER = ("refused", "too_long", "out_of_turns", "out_of_time")
ENDINGS = ("answered", "truncated", *WITHOUT_ANSWER)
_RECORDED = ("answer", "ending", "model", "usage", "extra")  # and the turns


@dataclass(frozen=True)
class Turn:
    """One exchange: what was sent after the system text, and what came back.

    `sent` is a completion prompt (str) or a list of messages; `observation` is what the
    environment answered to the reply (tool output, game text), if it did.
    """

    sent: Any
    reply: str
    finish: str = "stop"
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    observation: str | None = None


@dataclass(frozen=True)
class Trajectory:
    """All turns of a rollout and the final answer text.

    Attributes:
        answer: the text that the scorer reads.
        ending: one of `ENDINGS`.
        model: the model's name as the provider returned it.
        usage: token counts summed over the turns (`input`, `output`, `cached`, `reasoning`).
        extra: what an environment's scorer needs besides (JSON), e.g. case results.
        served: who gave the replies, where its fact says so; not part of its record.
    """

    turns: tuple[Turn, ...]
    answer: str
    ending: str = "answered"
    model: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    served: tuple[Served, ...] = field(default=(), compare=False)

    def to_json(self) -> dict[str, Any]:
        turns = [
            {**vars(turn), "tool_calls": [dict(call) for call in turn.tool_calls]}
            for turn in self.turns
        ]
        recorded: dict[str, Any] = {name: getattr(self, name) for name in _RECORDED}
        open_ended = {"usage": dict(self.usage), "extra": dict(self.extra)}
        return {"turns": turns} | recorded | open_ended

    @staticmethod
    def from_json(data: Mapping[str, Any], served: tuple[Served, ...] = ()) -> Trajectory:
        turns = (
            Turn(t["sent"], t["reply"], t["finish"], tuple(t["tool_calls"]), t["observation"])
            for t in data["turns"]
        )
        recorded = {name: data[name] for name in _RECORDED}
        return Trajectory(tuple(turns), **recorded, served=served)


def calls_of(trajectory: Trajectory | None) -> int:
    """Return how many target calls a rollout counts: one a turn, at least one."""
    return 1 if trajectory is None else max(1, len(trajectory.turns))


def cost_of(trajectory: Trajectory) -> Cost:
    """Return what a rollout used; tokens are known where both kinds were told."""
    usage = trajectory.usage
    told = [usage[kind] for kind in ("input", "output") if kind in usage]
    return Cost(sum(told) if len(told) == 2 else None, calls_of(trajectory))

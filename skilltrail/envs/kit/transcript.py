"""What an agent and its model have said so far, and the trajectory that it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skilltrail.core.trajectory import Trajectory, Turn
from skilltrail.models.protocol import Decoding, Reply, Request


@dataclass
class Transcript:
    """The turns of one rollout, in order, with the replies they hold."""

    turns: list[Turn] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    def add(
        self,
        sent: Any,
        reply: Reply,
        observation: str | None = None,
        calls: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Add a turn; `calls` where they are not those that the reply has."""
        made = reply.tool_calls if calls is None else calls
        self.replies.append(reply)
        self.turns.append(Turn(sent, reply.text, reply.finish, tuple(made), observation))

    def ended(
        self, ending: str, answer: str = "", extra: Mapping[str, Any] | None = None
    ) -> Trajectory:
        """Return the trajectory; a token count that a reply does not know is not known.

        `opened` in its extra are the files of a skill folder that an agent has opened, where
        the agent was given files.
        """
        first, *others = [reply.usage for reply in self.replies] or [{}]
        told = {} if extra is None else dict(extra)
        opened = [reply.extra["opened"] for reply in self.replies if "opened" in reply.extra]
        if opened:
            told["opened"] = list(dict.fromkeys(path for one in opened for path in one))
        shared = [name for name in first if all(name in other for other in others)]
        return Trajectory(
            turns=tuple(self.turns),
            answer=answer,
            ending=ending,
            model=self.replies[-1].model if self.replies else "",
            usage={name: first[name] + sum(o[name] for o in others) for name in shared},
            extra=told,
        )


def ending_of(reply: Reply) -> str:
    """Return how a rollout ends with its last reply."""
    return {"refusal": "refused", "length": "truncated"}.get(reply.finish, "answered")


def completion(
    skill: str, prompt: str, max_tokens: int, stop: tuple[str, ...] = ("\n",), turn: int = 0
) -> Request:
    """Return the request to a plain completion model: the skill, a blank line, the prompt."""
    return Request(
        system=f"{skill.rstrip()}\n\n" if skill.strip() else "",
        prompt=prompt,
        decoding=Decoding(max_tokens=max_tokens, temperature=0.0, stop=stop),
        turn=turn,
    )

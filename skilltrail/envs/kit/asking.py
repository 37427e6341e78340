"""The one-turn agent of question answering: ask, and perhaps let the model look again.

A plain completion model goes on after the prompt up to the end of the line; a chat model gets a
message and answers in `<answer>` tags. With `limits.turns` above 1 each further turn asks for a
review of the answer, and the last answer counts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from skilltrail.core.item import Item
from skilltrail.core.trajectory import Trajectory, Turn
from skilltrail.envs.kit.answers import extract_answer
from skilltrail.envs.kit.prompts import Prompts
from skilltrail.envs.kit.transcript import Transcript, completion, ending_of
from skilltrail.envs.protocol import Environment
from skilltrail.models.protocol import Message, Model, Part, Reply, Request
from skilltrail.params.knob import knob

REVIEW = Prompts(Path(__file__).parent / "prompts", "review_chat", "review_completion")


@dataclass(frozen=True)
class TurnLimits:
    """Limits of a one-turn agent."""

    turns: int = knob(
        1, "Turns per item; from the second on the answer is reviewed.", low=1, high=50
    )


@dataclass(frozen=True)
class Question:
    """One item as it is put to a model.

    Attributes:
        completion: the text that a completion model goes on with.
        chat: the parts of the message for a chat model.
        answer_tokens: longest answer of a completion model; a longer one is `truncated`.
        stop: what ends the answer of a completion model.
    """

    completion: str
    chat: tuple[Part, ...]
    answer_tokens: int
    stop: tuple[str, ...] = ("\n",)


async def ask(
    question: Question,
    skill: str,
    target: Model,
    turns: int = 1,
    read: Callable[[str], str] = extract_answer,
) -> Trajectory:
    """Return the trajectory of `turns` turns; `read` finds the answer in a reply.

    Raises:
        ModelError: the infrastructure failed.
    """
    is_chat = target.style == "chat"
    request = (
        Request(system=skill, messages=(Message("user", question.chat),))
        if is_chat
        else completion(skill, question.completion, question.answer_tokens, question.stop)
    )
    said = Transcript()
    for number in range(turns):
        asked = replace(request, turn=number) if number else request
        reply = await target.complete(asked)
        said.add(_sent(request, said.turns), reply)
        if reply.finish == "refusal":
            break
        request = _reviewed(request, reply)
    return said.ended(ending_of(reply), read(reply.text))


class OneTurn(Environment):
    """Base of an environment that puts each item to its model as one question.

    Its params have `limits.turns`.
    """

    def most_calls(self) -> int:
        return int(self.params.limits.turns)

    @abstractmethod
    def question(self, item: Item) -> Question:
        """Return an item as it is put to a model."""

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        """Ask; a completion model goes on after the prompt up to the end of the line."""
        return await ask(self.question(item), skill, target, self.params.limits.turns)

    def golds(self, item: Item) -> list[str]:
        """Return the accepted answers."""
        return list(item.gold)

    def reference(self, item: Item) -> str | None:
        """Return the first of the accepted answers; None where none can be listed."""
        return next(iter(self.golds(item)), None)


def _reviewed(request: Request, reply: Reply) -> Request:
    """Return the request that asks to look again at a reply."""
    if request.prompt is not None:
        review = REVIEW.fill("review_completion")
        return replace(request, prompt=f"{request.prompt} {reply.text.strip()}\n{review}")
    said = (
        Message.text("assistant", reply.text),
        Message.text("user", REVIEW.fill("review_chat")),
    )
    return replace(request, messages=request.messages + said)


def _sent(request: Request, before: list[Turn]) -> str | list[object]:
    """Return what a turn adds to what was sent before: all at first, then the review."""
    if request.prompt is not None:
        return REVIEW.fill("review_completion") if before else request.prompt
    new = request.messages[-1:] if before else request.messages
    return [message.to_json() for message in new]

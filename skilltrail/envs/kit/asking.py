"""The one-turn agent of question answering: ask, and perhaps let the model look again.

A plain completion model goes on after the prompt up to the end of the line; a chat model gets a
message and answers in `<answer>` tags. With `limits.turns` above 1 each further turn asks for a
review of the answer, and the last answer counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from skilltrail.core.trajectory import Trajectory, Turn
from skilltrail.envs.kit.answers import extract_answer
from skilltrail.envs.kit.prompts import Prompts
from skilltrail.models.protocol import Decoding, Message, Model, Part, Reply, Request
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
    request = _chat(question, skill) if is_chat else _completion(question, skill)
    done: list[Turn] = []
    replies: list[Reply] = []
    for number in range(turns):
        reply = await target.complete(replace(request, turn=number))
        done.append(Turn(_sent(request, done), reply.text, reply.finish))
        replies.append(reply)
        if reply.finish == "refusal":
            break
        request = _reviewed(request, reply)
    return Trajectory(
        turns=tuple(done),
        answer=read(reply.text),
        ending=ending_of(reply),
        model=reply.model,
        usage=total_usage(replies),
    )


def ending_of(reply: Reply) -> str:
    """Return how a rollout ends with its last reply."""
    return {"refusal": "refused", "length": "truncated"}.get(reply.finish, "answered")


def total_usage(replies: list[Reply]) -> dict[str, int]:
    """Return the token counts summed over replies; one that a reply does not know is none."""
    first, *others = [reply.usage for reply in replies] or [{}]
    shared = [name for name in first if all(name in other for other in others)]
    return {name: first[name] + sum(other[name] for other in others) for name in shared}


def system_text(skill: str) -> str:
    """Return the skill as the front part of a completion: a blank line ends it."""
    return f"{skill.rstrip()}\n\n" if skill.strip() else ""


def _completion(question: Question, skill: str) -> Request:
    return Request(
        system=system_text(skill),
        prompt=question.completion,
        decoding=Decoding(
            max_tokens=question.answer_tokens, temperature=0.0, stop=question.stop
        ),
    )


def _chat(question: Question, skill: str) -> Request:
    return Request(system=skill, messages=(Message("user", question.chat),))


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

"""A question to the optimizer's model, and what came of it. Plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from skilltrail.optimizers.llm.prompts import Prompt
from skilltrail.optimizers.protocol import Answer, RejectedReply

T = TypeVar("T")


@dataclass(frozen=True)
class Parsed(Generic[T]):
    """What an object of a reply comes to.

    Attributes:
        value: what is valid; None when nothing is.
        faults: what a second try may put right, one sentence each.
        dropped: what is left out for good, one sentence each.
    """

    value: T | None
    faults: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Query(Generic[T]):
    """One question to the optimizer's model.

    Attributes:
        stage: what events call it: reflect, merge, rank, budget, rewrite, slow, meta, …
        options: the stage that params call it (`options.STAGES`).
        schema: name of the reply's schema.
        read: turns the reply's object into a value; pure, and can be pickled.
        otherwise: what happens when there is no usable reply, for the record.
        narrow: changes the schema that is asked for, e.g. to ids that exist.
        repeat: which of several replies to the same question.
        if_too_long: what happens when the model's context cannot hold the request, where that
            differs from `otherwise`.
    """

    stage: str
    options: str
    prompt: Prompt
    schema: str
    read: Callable[[Mapping[str, Any]], Parsed[T]]
    otherwise: str
    narrow: Callable[[dict[str, Any]], dict[str, Any]] = lambda schema: schema
    if_too_long: str | None = None
    repeat: int = 0


@dataclass(frozen=True)
class QueryResult(Generic[T]):
    """What came of a question. `too_long`: the model's context cannot hold the request."""

    value: T | None
    reply: str | None
    rejected: tuple[RejectedReply, ...] = ()
    repairs: tuple[str, ...] = ()
    too_long: bool = False

    def because(self, reason: str) -> str:
        """Return the reason for an answer, with what had to be let pass to read it."""
        if not self.repairs:
            return reason
        return f"{reason} (repaired: {', '.join(self.repairs)})".lstrip()

    def answer(
        self: QueryResult[tuple[Any, str]], otherwise: Any, why: str, rule: str
    ) -> Answer:
        """Return the value that was read with a reason, else what `rule` puts in its place."""
        if self.value is None:
            return Answer(otherwise, why, rule, self.rejected, self.reply)
        value, reason = self.value
        return Answer(value, self.because(reason), None, self.rejected, self.reply)


def reasoning_of(found: Mapping[str, Any]) -> str:
    """Return what a reply's object says of its reasons, "" where it says nothing."""
    reasoning = found.get("reasoning")
    return reasoning if isinstance(reasoning, str) else ""

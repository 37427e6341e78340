"""The one door to the optimizer's model: a question, one corrective retry, an accounted answer.

Every call is a fact of kind `call` under `Request.key`, with its request and its reply, so
what a model said can always be looked up and is never paid for twice. A reply that cannot be
used is named (`RejectedReply` carries its key) and asked for again once: told what is wrong,
or, when it was cut off, with a larger output limit. After that what is valid in it is taken,
each part that is not is named, and a reply with nothing valid gives no value. Infrastructure
failures are no replies: they go through to the caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from skilltrail.core.tokens import count_tokens
from skilltrail.models.client.facts import CountReply, Facts
from skilltrail.models.errors import TooLong
from skilltrail.models.protocol import Decoding, Message, Model, Reply, Request
from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.optimizers.llm.prompts import Prompt, Templates
from skilltrail.optimizers.llm.question import Parsed, Query, QueryResult
from skilltrail.optimizers.llm.reading.replies import ReplyFault, asked_form, read_aside
from skilltrail.optimizers.llm.shown.room import CHARS_PER_TOKEN, reply_tokens, request_tokens
from skilltrail.optimizers.protocol import RejectedReply
from skilltrail.skill.fence import clip, fenced

_LARGER = 4
_FIRST_LIMIT_TOKENS = 4096  # taken for the limit where neither params nor usage tells one
_SHOWN_AGAIN_CHARS = 8000
_MESSAGE_CHARS = 2000
_FENCE_TOKENS = 80  # of the lines around what is quoted, and of what is said of a cut
AGAIN = "asked once more, told what is wrong"
LONGER = "asked once more with a larger output limit"

T = TypeVar("T")


@dataclass(frozen=True)
class _Heard(Generic[T]):
    key: str
    reply: Reply
    fault: ReplyFault | None
    reading: Parsed[T]
    repairs: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        return self.fault is None and not self.reading.faults

    @property
    def message(self) -> str:
        said = str(self.fault) if self.fault is not None else "; ".join(self.reading.faults)
        return clip(said, _MESSAGE_CHARS)[0]


@dataclass(frozen=True)
class Asker:
    """Asks questions of the models of the optimizer's stages."""

    model_of: Callable[[str], Model]
    facts: Facts
    options: LlmOptions
    prompts: Templates
    count: CountReply
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # of bulk to be read

    def fill(self, name: str, values: Mapping[str, str]) -> Prompt:
        """Return a prompt with its values and with what every question is told."""
        return self.prompts.fill(name, {"setting": self.options.setting.text(), **values})

    async def ask(self, question: Query[T]) -> QueryResult[T]:
        """Return the answer.

        Raises:
            ModelError: the infrastructure failed, or the run must stop.
        """
        over = self._over(question)
        if over is not None:
            then = question.if_too_long
            then = question.otherwise if then is None else then
            rejected = RejectedReply(question.stage, over, None, then)
            return QueryResult(None, None, (rejected,), (), True)
        model = self.model_of(question.options)
        request = self._first_request(question, model)
        first = await self._hear(question, model, request)
        if first.is_clean:
            return _accepted(question, first, ())
        code = None if first.fault is None else first.fault.code
        if code in ("too_long", "refused"):
            too_long = code == "too_long"
            then = question.if_too_long if too_long else None
            then = question.otherwise if then is None else then
            return QueryResult(
                None, first.key, (_rejected(question, first, then),), (), too_long
            )
        cut = code == "truncated"
        again = (
            self._longer_request(question, model, request, first.reply)
            if cut
            else self._corrective_request(question, model, request, first)
        )
        second = await self._hear(question, model, again)
        rejected = _rejected(question, first, LONGER if cut else AGAIN)
        return _settled(question, first, second, rejected)

    def _over(self, question: Query[Any]) -> str | None:
        """Return why the stated context cannot hold a question, or None."""
        size = count_tokens(question.prompt.system) + count_tokens(question.prompt.user)
        limit = self.options.max_tokens_of(question.options)
        most = request_tokens(self.options.context_tokens, limit)
        if size <= most:
            return None
        stated = self.options.context_tokens
        return (
            f"too_long: the request holds about {size} tokens; a context of {stated} leaves "
            f"room for {most}"
        )

    def _first_request(self, question: Query[Any], model: Model) -> Request:
        schema = None
        if "schema" in model.abilities:
            schema = question.narrow(asked_form(question.schema))
        stage = self.options.stages.get(question.options)
        decoding = Decoding(
            max_tokens=self.options.max_tokens_of(question.options),
            effort=None if stage is None else stage.effort,
        )
        return _with_user_text(
            Request(
                system=question.prompt.system,
                decoding=decoding,
                schema=schema,
                repeat=question.repeat,
            ),
            model,
            question.prompt.user,
        )

    def _left(self, question: Query[Any], request: Request) -> int:
        """Return how many tokens the stated context has beside a request and its reply.

        The margin that first requests keep is what their corrections may use.
        """
        limit = self.options.max_tokens_of(question.options)
        stated = self.options.context_tokens
        return stated - reply_tokens(stated, limit) - count_tokens(text_of(request))

    def _corrective_request(
        self, question: Query[Any], model: Model, request: Request, heard: _Heard[Any]
    ) -> Request:
        """Return the request that shows the model its reply and what is wrong with it.

        Both are cut to what the context has left: the faults first get half of it.
        """
        ask_again = self.prompts.text("correction", fenced({"faults": ""}))
        left = self._left(question, request) - count_tokens(ask_again) - _FENCE_TOKENS
        room = max(0, left * CHARS_PER_TOKEN)
        message = clip(heard.message, room // 2)[0]
        ask_again = self.prompts.text("correction", fenced({"faults": message}))
        said = clip(heard.reply.text, min(_SHOWN_AGAIN_CHARS, room - len(message)))[0]
        if request.prompt is not None:
            told = "" if not said.strip() else "\n\n" + fenced({"reply": said})["reply"]
            return replace(request, prompt=f"{request.prompt}{told}\n\n{ask_again}")
        turns = [Message.text("assistant", said)] if said.strip() else []
        if not turns:
            return _with_user_text(request, model, f"{_user_text(request)}\n\n{ask_again}")
        messages = (*request.messages, *turns, Message.text("user", ask_again))
        return replace(request, messages=messages)

    def _longer_request(
        self, question: Query[Any], model: Model, request: Request, cut: Reply
    ) -> Request:
        limit = request.decoding.max_tokens
        if limit is None:
            limit = max(cut.usage.get("output", 0), _FIRST_LIMIT_TOKENS)
        text = f"{question.prompt.user}\n\n{self.prompts.text('cut')}"
        over = self.options.context_tokens - count_tokens(text_of(request)) - _FENCE_TOKENS
        most = max(limit, min(limit * _LARGER, over))
        decoding = replace(request.decoding, max_tokens=most)
        return _with_user_text(replace(request, decoding=decoding), model, text)

    async def _hear(self, question: Query[T], model: Model, request: Request) -> _Heard[T]:
        key, reply = await self._call(model, request)
        found = await read_aside(reply, question.schema, question.read, self.turn)
        return _Heard(key, reply, *found)

    async def _call(self, model: Model, request: Request) -> tuple[str, Reply]:
        """Return the fact key and the reply, made or recalled."""
        key = request.key(model.identity)

        async def make() -> Mapping[str, Any]:
            try:
                reply = await model.complete(request)
            except TooLong:
                # An outcome of its own: kept, so that a rerun needs no model to find it.
                reply = Reply("", finish="too_long")
            return {
                "model": dict(model.identity),
                "request": request.to_json(),
                "reply": reply.to_json(),
            }

        made = await self.facts.get_or_make("call", key, make)
        reply = Reply.from_json(made.value["reply"])
        self.count(reply, reused=made.reused)
        return key, reply


def _with_user_text(request: Request, model: Model, text: str) -> Request:
    if model.style == "completion":
        # Plain completions are joined without a break between the two parts.
        return replace(request, system=request.system.rstrip("\n") + "\n\n", prompt=text)
    return replace(request, messages=(Message.text("user", text),))


def text_of(request: Request) -> str:
    """Return all of a request's text."""
    said = [part.text for message in request.messages for part in message.parts]
    prompt = [] if request.prompt is None else [request.prompt]
    return "\n".join([request.system, *said, *prompt])


def _user_text(request: Request) -> str:
    return "".join(part.text for part in request.messages[0].parts)


def _settled(
    question: Query[T], first: _Heard[T], second: _Heard[T], rejected: RejectedReply
) -> QueryResult[T]:
    """Return what two replies come to: the second if it is of use, else the first."""
    if second.is_clean:
        return _accepted(question, second, (rejected,))
    for heard in (second, first):
        if heard.reading.value is None:
            continue
        named = [
            RejectedReply(question.stage, fault, heard.key, "dropped; the rest is kept")
            for fault in heard.reading.faults
        ]
        other = []
        if heard is first:
            other = [_rejected(question, second, "the first reply's valid part is used")]
        return _accepted(question, heard, (rejected, *other, *named))
    last = _rejected(question, second, question.otherwise)
    return QueryResult(None, second.key, (rejected, last))


def _accepted(
    question: Query[T], heard: _Heard[T], before: tuple[RejectedReply, ...]
) -> QueryResult[T]:
    dropped = tuple(
        RejectedReply(question.stage, reason, heard.key, "dropped; the rest is kept")
        for reason in heard.reading.dropped
    )
    return QueryResult(heard.reading.value, heard.key, (*before, *dropped), heard.repairs)


def _rejected(question: Query[Any], heard: _Heard[Any], then: str) -> RejectedReply:
    return RejectedReply(question.stage, heard.message, heard.key, then)

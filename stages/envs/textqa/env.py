"""`textqa`: a question about a text, answered by a span of it, in SearchQA's item shape.

    {"id": "harbour-40072a98d2-berth", "question": "At which berth did the Grey Anchor tie up?",
     "context": "The Grey Anchor came into Holmbruck at 8:45 and tied up at berth G1. …",
     "answers": ["G1"], "task_type": "code", "group": "harbour-40072a98d2"}

Official scorer: SQuAD v1.1 (`stages.envs.qa_scoring`): exact match is `hard`, token F1 `soft`.
SearchQA and SQuAD questions in this shape load the same way. Departures from SkillOpt's own
SearchQA environment stand in `README.md`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from stages.core.item import Item
from stages.core.score import Score
from stages.core.trajectory import Trajectory, Turn
from stages.envs.protocol import Where
from stages.envs.qa_scoring import exact_match, token_f1
from stages.envs.teaching import Catalogue, load_catalogue
from stages.envs.textqa.prompt import chat_prompt, question_prompt, worked_example
from stages.envs.textqa.reasons import form, question_words, reason_of
from stages.models.protocol import Decoding, Message, Model, Reply, Request

_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.IGNORECASE | re.DOTALL)
_KNOWN = frozenset({"id", "question", "context", "answers", "task_type", "group"})


@dataclass(frozen=True)
class TextQaParams:
    """Options of `textqa`.

    Attributes:
        context_chars: longest context shown to the agent; what is over is cut off.
        answer_tokens: longest answer of a completion model; a longer one is `truncated`.
        example_chars: longest context inside a worked example, cut around the answer.
    """

    context_chars: int = 6000
    answer_tokens: int = 24
    example_chars: int = 600


class TextQa:
    """The environment; `params` are its typed options."""

    name: ClassVar[str] = "textqa"
    version: ClassVar[str] = "textqa/1"
    Params: ClassVar[type] = TextQaParams

    def __init__(self, params: TextQaParams | None = None) -> None:
        self.params = TextQaParams() if params is None else params

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of one record; fields beyond the known ones are kept in `extra`."""
        texts = {field: _text(record, field, where) for field in ("question", "context")}
        return Item(
            id=_id(record, where),
            input=texts,
            gold=_answers(record, where),
            group=_label(record, "group", where),
            task_type=_label(record, "task_type", where),
            extra={key: value for key, value in record.items() if key not in _KNOWN},
        )

    def content(self, item: Item) -> str:
        """Return question and context: what may not stand in two splits."""
        return f"{item.input['question']}\n{item.input['context']}"

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        """Ask once. A completion model goes on after `Answer:` up to the end of the line."""
        chat = target.style == "chat"
        request = self._chat(item, skill) if chat else self._completion(item, skill)
        reply = await target.complete(request)
        sent = request.prompt if request.prompt is not None else request.messages[0].to_json()
        return Trajectory(
            turns=(Turn(sent, reply.text, reply.finish),),
            answer=answer_in(reply.text) if chat else reply.text.strip(),
            ending=_ending(reply),
            model=reply.model,
            usage=reply.usage,
        )

    def _completion(self, item: Item, skill: str) -> Request:
        return Request(
            system=f"{skill.rstrip()}\n\n" if skill.strip() else "",
            prompt=question_prompt(item, self.params.context_chars),
            decoding=Decoding(
                max_tokens=self.params.answer_tokens, temperature=0.0, stop=("\n",)
            ),
        )

    def _chat(self, item: Item, skill: str) -> Request:
        message = Message.text("user", chat_prompt(item, self.params.context_chars))
        return Request(system=skill, messages=(message,))

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Judge by SQuAD v1.1; the reason says in which way an answer is wrong."""
        if trajectory.ending not in ("answered", "truncated"):
            return Score.scored(0.0, reason=trajectory.ending)
        answer, golds = trajectory.answer, item.gold
        reason = reason_of(
            answer,
            golds,
            item.input["context"],
            item.input["question"],
            truncated=trajectory.ending == "truncated",
        )
        return Score.scored(exact_match(answer, golds), token_f1(answer, golds), reason)

    def reference(self, item: Item) -> str | None:
        """Return the first of the accepted answers."""
        return str(item.gold[0])

    @cached_property
    def catalogue(self) -> Catalogue:
        """Failure types and instruction lines, from `rules.yaml`."""
        return load_catalogue(Path(__file__).with_name("rules.yaml"))

    def example(self, item: Item) -> str | None:
        """Return the solved item as a paragraph of the skill document."""
        return worked_example(item, str(item.gold[0]), self.params.example_chars)

    def traits(self, item: Item) -> frozenset[str]:
        """Return the question's common words, and the form of the answer in brackets."""
        words = question_words(item.input["question"])
        return words | {f"<{form(str(item.gold[0]))}>"}


ENVIRONMENT = TextQa


def answer_in(text: str) -> str:
    """Return the text of the last closed `<answer>` pair, else the last line, else "".

    Source: the reading rule of SkillOpt's question-answering environments.
    """
    pairs = _ANSWER.findall(text)
    if pairs:
        return str(pairs[-1]).strip()
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return lines[-1] if lines else ""


def _ending(reply: Reply) -> str:
    if reply.finish == "refusal":
        return "refused"
    return "truncated" if reply.finish == "length" else "answered"


def _id(record: Mapping[str, Any], where: Where) -> str:
    found = record.get("id")
    if isinstance(found, bool) or not isinstance(found, (str, int)) or found == "":
        raise where.error("id", repr(found), "give each item an id: a text or a whole number")
    return str(found)


def _text(record: Mapping[str, Any], field: str, where: Where) -> str:
    found = record.get(field)
    if not isinstance(found, str) or not found.strip():
        raise where.error(field, repr(found), "give a text that is not empty")
    return found


def _answers(record: Mapping[str, Any], where: Where) -> list[str]:
    """Return the accepted answers: a list, or a text as tables hold it (see `_listed`)."""
    found = record.get("answers")
    answers = _listed(found) if isinstance(found, str) else found
    if not isinstance(answers, list) or not answers:
        raise where.error("answers", repr(found), "give a list of at least one accepted answer")
    for answer in answers:
        if not isinstance(answer, str) or not answer.strip():
            raise where.error("answers", repr(answer), "each answer is a text, not empty")
    return list(answers)


def _listed(cell: str) -> Any:
    """Return the list that a table cell spells out, else the cell as the only answer."""
    if cell.lstrip().startswith("["):
        try:
            return json.loads(cell)
        except ValueError:
            return [cell]
    return [cell]


def _label(record: Mapping[str, Any], field: str, where: Where) -> str | None:
    found = record.get(field)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, (str, int)) or found == "":
        raise where.error(field, repr(found), "give a text, or leave the field out")
    return str(found)

"""`textqa`: a question about a text, answered by a span of it, in SearchQA's item shape.

    {"id": "harbour-40072a98d2-berth", "question": "At which berth did the Grey Anchor tie up?",
     "context": "The Grey Anchor came into Holmbruck at 8:45 and tied up at berth G1. …",
     "answers": ["G1"], "task_type": "code", "group": "harbour-40072a98d2"}

Official scorer: SQuAD v1.1 (`envs.kit.qa_scoring`): exact match is `hard`, token F1 `soft`.
SearchQA and SQuAD questions in this shape load the same way. Departures from SkillOpt's own
SearchQA environment stand in `README.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.answers import extract_answer
from skilltrail.envs.kit.asking import Question, ask
from skilltrail.envs.kit.fields import ident, optional_text, shown, text, texts
from skilltrail.envs.kit.qa_scoring import exact_match, token_f1
from skilltrail.envs.kit.reasons import form, question_words, reason_of
from skilltrail.envs.kit.teaching import Catalogue, load_catalogue
from skilltrail.envs.protocol import Where
from skilltrail.envs.textqa.prompt import chat_prompt, question_prompt, worked_example
from skilltrail.models.protocol import Model, Part

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
        shown_texts = {name: text(record, name, where) for name in ("question", "context")}
        answers = texts(record, "answers", where)
        if not answers or not all(answer.strip() for answer in answers):
            raise where.error("answers", shown(answers), "Give accepted answers, none blank")
        return Item(
            id=ident(record, ("id",), where),
            input=shown_texts,
            gold=answers,
            group=optional_text(record, "group", where),
            task_type=optional_text(record, "task_type", where),
            extra={key: value for key, value in record.items() if key not in _KNOWN},
        )

    def content(self, item: Item) -> str:
        """Return question and context: what may not stand in two splits."""
        return f"{item.input['question']}\n{item.input['context']}"

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        """Ask once. A completion model goes on after `Answer:` up to the end of the line."""
        chars = self.params.context_chars
        question = Question(
            question_prompt(item, chars),
            (Part(chat_prompt(item, chars)),),
            self.params.answer_tokens,
        )
        read = extract_answer if target.style == "chat" else str.strip
        return await ask(question, skill, target, read=read)

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

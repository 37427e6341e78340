"""Questions about a text: one turn over a context, solved inside a skill document.

For environments whose items have `question` and `context` and whose prompts `completion` and
`chat` have these two places. A worked example is the very text that a completion model is asked
to go on with, plus the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.asking import OneTurn, Question, TurnLimits
from skilltrail.envs.kit.excerpts import around, fold
from skilltrail.envs.kit.fields import accepted, ident, optional_text, text
from skilltrail.envs.kit.prompts import Prompts
from skilltrail.envs.kit.qa_scoring import exact_match, token_f1
from skilltrail.envs.kit.reasons import reason_of
from skilltrail.envs.protocol import ScoredBy, Where
from skilltrail.models.protocol import Part
from skilltrail.params.knob import knob


@dataclass(frozen=True)
class PassageParams:
    """Options of an environment of questions about a text."""

    context_chars: int = knob(6000, "Longest context shown; what is over is cut off.", low=1)
    answer_tokens: int = knob(24, "Longest answer of a completion model.", low=1)
    example_chars: int = knob(300, "Longest context inside a worked example.", low=1)
    limits: TurnLimits = field(default_factory=TurnLimits)


class PassageQa(OneTurn):
    """Base of an environment of questions about a text; its scorer is its own.

    Its params are or extend `PassageParams`.
    """

    scored_by: ClassVar[ScoredBy] = ScoredBy.ANSWER
    Params: ClassVar[type] = PassageParams
    prompts: ClassVar[Prompts]
    fields: ClassVar[tuple[str, ...]] = ("id", "question", "context", "answers", "task_type")

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of one record `{id, question, context, answers, task_type}`."""
        return Item(
            id=ident(record, self.id_fields, where),
            input={name: text(record, name, where) for name in ("question", "context")},
            gold=accepted(record, "answers", where),
            task_type=optional_text(record, "task_type", where),
        )

    def content(self, item: Item) -> str:
        """Return question and context: what may not stand in two splits."""
        return f"{item.input['question']}\n{item.input['context']}"

    def question(self, item: Item) -> Question:
        shown = {
            "context": item.input["context"][: self.params.context_chars],
            "question": item.input["question"],
        }
        chat = (Part(self.prompts.fill("chat", **shown)),)
        completion = self.prompts.fill("completion", **shown)
        return Question(completion, chat, self.params.answer_tokens)

    def example(self, item: Item) -> str | None:
        """Return the solved item as a paragraph of the skill document, or None.

        White space is folded, so that no line can read as Markdown. A longer context is cut
        around the answer; None when it does not hold the answer in the answer's own words, or
        the answer is blank.
        """
        answer = fold(item.gold[0])
        context = around(fold(item.input["context"]), answer, self.params.example_chars)
        if context is None or not answer:
            return None
        shown = {"context": context, "question": fold(item.input["question"])}
        return f"{self.prompts.fill('completion', **shown)} {answer}"


class SquadQa(PassageQa):
    """Base of one that is scored by SQuAD v1.1; reasons are those of `kit.reasons`."""

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Judge by exact match (hard) and token F1 (soft); the reason says what is wrong."""
        answer, golds = trajectory.answer, item.gold
        reason = reason_of(
            answer,
            golds,
            item.input["context"],
            item.input["question"],
            truncated=trajectory.ending == "truncated",
        )
        hard = exact_match(answer, golds)
        return Score.scored(hard, max(hard, token_f1(answer, golds)), reason)

"""`_template`: what an item asks for, with one real example and the official scorer.

    {"id": "1", "question": "What is 6 plus 7?", "answers": ["13"]}

Official scorer: name it here, and say where you depart from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.asking import REVIEW, OneTurn, Question, TurnLimits
from skilltrail.envs.kit.fields import accepted, ident, optional_text, text
from skilltrail.envs.kit.prompts import Prompts, versioned
from skilltrail.envs.kit.qa_scoring import exact_match, token_f1
from skilltrail.envs.protocol import ScoredBy, Where
from skilltrail.models.protocol import Part
from skilltrail.params.knob import knob

_HERE = Path(__file__).parent
PROMPTS = Prompts(_HERE / "prompts", "completion", "chat")


@dataclass(frozen=True)
class TemplateParams:
    """Options of `_template`; each is set by `envs._template.<name>` in params.yaml."""

    answer_tokens: int = knob(24, "Longest answer of a completion model.", low=1)
    limits: TurnLimits = field(default_factory=TurnLimits)


class Template(OneTurn):
    """The environment; `params` are its typed options."""

    name: ClassVar[str] = "_template"
    # Raise the number when the agent changes; prompts are counted in by themselves.
    version: ClassVar[str] = versioned("_template/1", PROMPTS, REVIEW)
    fields: ClassVar[tuple[str, ...]] = (
        "question", "answers", "task_type",
    )  # fmt: skip
    scored_by: ClassVar[ScoredBy] = ScoredBy.ANSWER
    Params: ClassVar[type] = TemplateParams

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of one record; the agent sees `input` and never `gold`."""
        return Item(
            id=ident(record, self.id_fields, where),
            input={"question": text(record, "question", where)},
            gold=accepted(record, "answers", where),
            task_type=optional_text(record, "task_type", where),
        )

    def content(self, item: Item) -> str:
        """Return what may not stand in two splits."""
        return str(item.input["question"])

    def question(self, item: Item) -> Question:
        """Return the item as it is put to a completion model and to a chat model."""
        chat = (Part(PROMPTS.fill("chat", **item.input)),)
        return Question(
            PROMPTS.fill("completion", **item.input), chat, self.params.answer_tokens
        )

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Judge by exact match; the reason is one of those in `rules.yaml`. Pure."""
        hard = exact_match(trajectory.answer, item.gold)
        soft = token_f1(trajectory.answer, item.gold)
        if hard:
            return Score.scored(hard, soft, "correct")
        return Score.scored(hard, soft, "wrong" if trajectory.answer else "empty")

    def example(self, item: Item) -> str | None:
        """Return the solved item as one paragraph of the skill document, or None."""
        return f"{self.question(item).completion} {item.gold[0]}"


ENVIRONMENT = Template

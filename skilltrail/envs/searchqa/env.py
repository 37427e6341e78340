"""`searchqa`: a trivia clue and search snippets; the answer is a name or a few words.

    {"id": "5093b6d997674d25be29a4c94fcd5185", "question": "Ferdinand VII,Juan Carlos",
     "context": "[DOC] [TLE] … [PAR] … [DOC] [TLE] … [PAR] …", "answers": ["Spain"]}

Official scorer: SQuAD v1.1 (`envs.kit.qa_scoring`): exact match is `hard`, token F1 `soft`.
Departures from SkillOpt's environment: F1 of two empty texts is 0, as officially; its
sub-string match is the named metric `reference_sub_em` only, since an empty answer passes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.asking import REVIEW, TurnLimits, ask
from skilltrail.envs.kit.fields import ident, optional_text, shown, text, texts
from skilltrail.envs.kit.passages import passage_example, passage_question
from skilltrail.envs.kit.prompts import Prompts, versioned
from skilltrail.envs.kit.qa_scoring import exact_match, normalize, token_f1
from skilltrail.envs.kit.reasons import reason_of
from skilltrail.envs.kit.taught import Taught
from skilltrail.envs.protocol import Where
from skilltrail.models.protocol import Model
from skilltrail.params.knob import knob

_HERE = Path(__file__).parent
PROMPTS = Prompts(_HERE / "prompts", "completion", "chat")


@dataclass(frozen=True)
class SearchQaParams:
    """Options of `searchqa`."""

    context_chars: int = knob(6000, "Longest context shown; what is over is cut off.", low=1)
    answer_tokens: int = knob(24, "Longest answer of a completion model.", low=1)
    example_chars: int = knob(300, "Longest context inside a worked example.", low=1)
    limits: TurnLimits = field(default_factory=TurnLimits)


class SearchQa(Taught):
    """The environment; `params` are its typed options."""

    name: ClassVar[str] = "searchqa"
    version: ClassVar[str] = versioned("searchqa/1", PROMPTS, REVIEW)
    Params: ClassVar[type] = SearchQaParams

    def __init__(self, params: SearchQaParams | None = None) -> None:
        self.params = SearchQaParams() if params is None else params

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of one record; its id is `id`, or `key` in the published table."""
        answers = texts(record, "answers", where)
        if not any(answer.strip() for answer in answers):
            raise where.error("answers", shown(answers), "Give at least one accepted answer")
        return Item(
            id=ident(record, ("id", "key"), where),
            input={name: text(record, name, where) for name in ("question", "context")},
            gold=answers,
            task_type=optional_text(record, "task_type", where),
        )

    def content(self, item: Item) -> str:
        """Return clue and snippets: what may not stand in two splits."""
        return f"{item.input['question']}\n{item.input['context']}"

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        """Ask once; a completion model goes on after `Answer:` to the end of the line."""
        chars, tokens = self.params.context_chars, self.params.answer_tokens
        question = passage_question(PROMPTS, item, chars, tokens)
        return await ask(question, skill, target, self.params.limits.turns)

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Judge by SQuAD v1.1; the reason says in which way an answer is wrong."""
        reason = reason_of(
            trajectory.answer,
            item.gold,
            item.input["context"],
            item.input["question"],
            truncated=trajectory.ending == "truncated",
        )
        hard = exact_match(trajectory.answer, item.gold)
        return Score.scored(hard, token_f1(trajectory.answer, item.gold), reason)

    def metrics(self, item: Item, trajectory: Trajectory) -> dict[str, float]:
        """Return SkillOpt's sub-string match, and its F1, in which two empty texts agree."""
        said = normalize(trajectory.answer)
        golds = [normalize(gold) for gold in item.gold]
        both_empty = not said and "" in golds
        return {
            "reference_sub_em": float(any(said in gold or gold in said for gold in golds)),
            "reference_f1": 1.0 if both_empty else token_f1(trajectory.answer, item.gold),
        }

    def reference(self, item: Item) -> str | None:
        """Return the first of the accepted answers."""
        return str(item.gold[0])

    def example(self, item: Item) -> str | None:
        """Return the solved item as a paragraph of the skill document."""
        return passage_example(PROMPTS, item, item.gold[0], self.params.example_chars)


ENVIRONMENT = SearchQa

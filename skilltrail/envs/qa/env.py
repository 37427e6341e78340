"""`qa`: a benchmark without code. Questions in a JSONL file, scored by what the file declares.

    {"id": "till-3", "question": "What does the lamp cost?", "context": "Lamp 12.50 …",
     "answers": ["12.50"], "scorer": "number"}

The scorers are listed in `scorers.py`, a record's fields in `records.py`. There is no official
scorer: the set's author is the authority.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.answers import extract_answer
from skilltrail.envs.kit.asking import REVIEW, OneTurn, Question, TurnLimits, ask
from skilltrail.envs.kit.excerpts import around, fold
from skilltrail.envs.kit.fields import ident, optional_text, text
from skilltrail.envs.kit.http_scorer import asked
from skilltrail.envs.kit.prompts import Prompts, versioned
from skilltrail.envs.protocol import KnownAnswers, ScoredBy, Where
from skilltrail.envs.qa.checks import is_format_only, passed
from skilltrail.envs.qa.records import AUTO, choices_of, gold_of, scorer_of
from skilltrail.envs.qa.scorers import HTTP, JUDGE, SCORERS, WHOLE
from skilltrail.models.judge import Case
from skilltrail.models.protocol import Model, Part
from skilltrail.params.knob import knob, operational

_HERE = Path(__file__).parent
PROMPTS = Prompts(_HERE / "prompts", "completion", "chat_short", "chat_whole")
_NEXT_TASK = "\nQuestion:"  # where a completion model goes on to invent the next item


@dataclass(frozen=True)
class QaParams:
    """Options of `qa`."""

    scorer: str = knob(
        AUTO,
        "Scorer of records that name none; auto = by their fields.",
        choices=(AUTO, *SCORERS, JUDGE, HTTP),
        scorer=True,
    )
    url: str | None = operational(None, "`http`: where the scorer listens.")
    tolerance: float = knob(
        0.0,
        "Error allowed by `number`, as a share; records may say.",
        low=0,
        high=1,
        scorer=True,
    )
    context_chars: int = knob(6000, "Longest context shown; what is over is cut off.", low=1)
    answer_tokens: int = knob(32, "Longest short answer of a completion model.", low=1)
    reply_tokens: int = knob(512, "Longest reply for `checks` and `judge`.", low=1)
    example_chars: int = knob(400, "Longest context inside a worked example.", low=1)
    limits: TurnLimits = field(default_factory=TurnLimits)


class Qa(OneTurn):
    """The environment; `params` are its typed options."""

    name: ClassVar[str] = "qa"
    version: ClassVar[str] = versioned("qa/1", PROMPTS, REVIEW)
    fields: ClassVar[tuple[str, ...]] = (
        "id", "question", "context", "answers", "answer", "choices", "checks", "scorer",
        "tolerance", "task_type",
    )  # fmt: skip
    scored_by: ClassVar[ScoredBy] = ScoredBy.ANSWER
    Params: ClassVar[type] = QaParams

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of one record; see `records.py`."""
        scorer = scorer_of(record, self.params.scorer, where)
        choices = choices_of(record, where)
        context = optional_text(record, "context", where)
        shown: dict[str, Any] = {"question": text(record, "question", where)}
        if context is not None:
            shown["context"] = context
        if choices is not None:
            shown["choices"] = [[label, words] for label, words in choices.items()]
        if scorer in WHOLE:
            shown["reply"] = "whole"
        return Item(
            id=ident(record, self.id_fields, where),
            input=shown,
            gold=gold_of(record, scorer, choices, self.params.tolerance, where),
            task_type=optional_text(record, "task_type", where),
        )

    def content(self, item: Item) -> str:
        """Return all that the agent is shown: what may not stand in two splits."""
        choices = sorted(words for _, words in item.input.get("choices", []))
        return "\n".join([item.input["question"], item.input.get("context", ""), *choices])

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        """Ask for an answer, or for a whole reply where the scorer reads one."""
        whole = "reply" in item.input
        read = str.strip if whole else extract_answer
        return await ask(self.question(item), skill, target, self.params.limits.turns, read)

    def question(self, item: Item) -> Question:
        context = item.input.get("context", "")[: self.params.context_chars]
        task = self._task(item, context)
        completion = PROMPTS.fill("completion", task=task)
        if "reply" in item.input:
            chat = (Part(PROMPTS.fill("chat_whole", task=task)),)
            return Question(completion, chat, self.params.reply_tokens, (_NEXT_TASK,))
        chat = (Part(PROMPTS.fill("chat_short", task=task)),)
        return Question(completion, chat, self.params.answer_tokens)

    def _task(self, item: Item, context: str) -> str:
        lines = [f"Context: {context}"] if context else []
        lines.append(f"Question: {item.input['question']}")
        lines += [f"{label}. {words}" for label, words in item.input.get("choices", [])]
        return "\n".join(lines)

    def needs_guard(self, item: Item) -> bool:
        """Return whether a pattern of the record is run."""
        checks = item.gold.get("checks", ())
        return item.gold["scorer"] in ("regex", HTTP) or any("regex" in c["op"] for c in checks)

    def needs_judge(self, item: Item) -> bool:
        """Return whether the record leaves its scoring to a model."""
        return bool(item.gold["scorer"] == JUDGE)

    def case(self, item: Item, trajectory: Trajectory) -> Case | None:
        """Return the task as the agent saw it, its reply and the first accepted answer."""
        if not trajectory.answer.strip():
            return None
        context = item.input.get("context", "")[: self.params.context_chars]
        return Case(self._task(item, context), trajectory.answer, self.reference(item))

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Score by the rule that the record declares; a judge is not asked of nothing."""
        if self.needs_judge(item):
            return Score.scored(0.0, reason="empty")
        if item.gold["scorer"] == HTTP:
            said, _ = asked(self.params.url, self._told(item), trajectory.answer)
            return Score.scored(said, reason="correct" if said >= 1 else "wrong")
        score = SCORERS[item.gold["scorer"]](item.gold, trajectory.answer)
        if trajectory.ending == "truncated" and score.reason in ("wrong", "wrong_form"):
            return Score.scored(0.0, score.soft, "truncated")
        return score

    def feedback(self, item: Item, trajectory: Trajectory) -> str | None:
        """Return what a scorer of one's own says of a reply; the others say nothing."""
        if item.gold["scorer"] != HTTP:
            return None
        return asked(self.params.url, self._told(item), trajectory.answer)[1]

    def known_answers(self, item: Item) -> KnownAnswers:
        """Return the answers with known scores; none where a service of one's own scores."""
        if item.gold["scorer"] == HTTP:
            return KnownAnswers(unchecked=ScoredBy.FUNCTION)
        return super().known_answers(item)

    def _told(self, item: Item) -> dict[str, Any]:
        """Return an item as a scorer of one's own is told it."""
        return {"id": item.id, **item.input, "answers": item.gold["answers"]}

    def metrics(self, item: Item, trajectory: Trajectory) -> dict[str, float]:
        """Return the shares of passed checks of content and of form; {} for other scorers."""
        found: dict[str, float] = {}
        for name, form in (("content_checks", False), ("format_checks", True)):
            checks = [c for c in item.gold.get("checks", []) if is_format_only(c) is form]
            if checks:
                passes = sum(passed(check, trajectory.answer) for check in checks)
                found[name] = passes / len(checks)
        return found

    def golds(self, item: Item) -> list[str]:
        """Return the accepted answers; a pattern or checks do not say one."""
        is_pattern = item.gold["scorer"] in ("regex", "checks")
        return [] if is_pattern else list(item.gold["answers"])

    def example(self, item: Item) -> str | None:
        """Return the solved item as a paragraph of the skill document; None without answer."""
        answer = self.reference(item)
        if answer is None:
            return None
        context = fold(item.input.get("context", ""))
        shown = around(context, fold(answer), self.params.example_chars)
        if shown is None:
            return None
        lines = [fold(line) for line in self._task(item, shown).split("\n")]
        task = "\n".join(line for line in lines if line)
        return f"{PROMPTS.fill('completion', task=task)} {fold(answer)}"


ENVIRONMENT = Qa

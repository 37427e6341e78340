"""`metric`: items of a program, scored by the Python function that the program gave.

    optimize(items=[{"question": "1+1", "answer": "2"}], metric=lambda item, reply: …)

The function takes the item as it was given and the reply, and returns a score in [0, 1], or a
score and a text of feedback, which analysts read of train items. It lives in the program:
elsewhere (`skilltrail verify` in the workspace) nothing can be scored again, and that is said.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from skilltrail.core.errors import UsageError
from skilltrail.core.item import Item
from skilltrail.core.score import InvalidScore, Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.asking import REVIEW, Question, ask
from skilltrail.envs.kit.catalogue import Catalogue, load_catalogue
from skilltrail.envs.kit.excerpts import around, fold
from skilltrail.envs.kit.fields import ident
from skilltrail.envs.kit.prompts import versioned
from skilltrail.envs.protocol import Environment, ScoredBy, Where
from skilltrail.envs.qa.env import PROMPTS
from skilltrail.models.protocol import Model, Part
from skilltrail.params.knob import knob

Item_ = Mapping[str, Any]
Metric = Callable[[Item_, str], "float | tuple[float, str]"]
FUNCTION: ContextVar[Metric | None] = ContextVar("skilltrail_metric", default=None)
_NEXT_TASK = "\nQuestion:"  # where a completion model goes on to invent the next item


class MetricAbsentError(UsageError):
    """The function that scores is not in this program."""


@dataclass(frozen=True)
class MetricParams:
    """Options of `metric`."""

    function: str = knob("", "Name and digest of the function's source.", scorer=True)
    whole: bool = knob(False, "A completion model's reply may have more than one line.")
    context_chars: int = knob(6000, "Longest context shown; what is over is cut off.", low=1)
    reply_tokens: int = knob(512, "Longest reply of several lines.", low=1)
    answer_tokens: int = knob(32, "Longest reply of one line.", low=1)
    example_chars: int = knob(400, "Longest context inside a worked example.", low=1)


@dataclass
class FunctionReply:
    """What the function said of a reply."""

    score: float
    feedback: str | None


def named(metric: Metric) -> str:
    """Return a function's name and the first digits of its source's SHA-256."""
    name = getattr(metric, "__qualname__", type(metric).__name__)
    try:
        source = inspect.getsource(metric)
    except (OSError, TypeError):
        source = ""
    return f"{name}:{hashlib.sha256(source.encode()).hexdigest()[:12]}" if source else name


def _said(value: Any) -> FunctionReply:
    """Return what a function's value says.

    Raises:
        InvalidScore: it is neither a score nor a score and a text.
    """
    score, feedback = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    if not (feedback is None or isinstance(feedback, str)):
        raise InvalidScore(f"feedback is a text, found {feedback!r:.80}")
    if isinstance(score, tuple):
        raise InvalidScore(f"a score, or a score and a text, found {score!r:.80}")
    # A comparison of NumPy's is a number to NumPy alone, and a decimal to nobody else.
    if isinstance(score, Decimal | np.bool_):
        score = float(score)
    return FunctionReply(score, feedback)


@dataclass
class _Memory:
    said: dict[tuple[str, str], FunctionReply] = field(default_factory=dict)


class MetricEnv(Environment):
    """The environment; the function is that of the context it was made in."""

    name: ClassVar[str] = "metric"
    version: ClassVar[str] = versioned("metric/1", PROMPTS, REVIEW)
    fields: ClassVar[tuple[str, ...]] = (
        "id",
        "question",
        "context",
        "answer",
        "record",
        "task_type",
    )
    scored_by: ClassVar[ScoredBy] = ScoredBy.FUNCTION
    Params: ClassVar[type] = MetricParams

    def __init__(self, params: Any = None) -> None:
        super().__init__(params)
        self._function = FUNCTION.get()
        self._memory = _Memory()

    @property
    def catalogue(self) -> Catalogue:
        """Those of `qa`: what goes wrong with short answers."""
        return load_catalogue(Path(inspect.getfile(Environment)).parent / "qa" / "rules.yaml")

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        """Return the item of a record; `record` in it is what the function is given."""
        shown = {name: record[name] for name in ("question", "context") if record.get(name)}
        return Item(
            id=ident(record, self.id_fields, where),
            input=shown,
            gold={"record": record.get("record"), "answer": record.get("answer")},
            group=record.get("group"),
            task_type=record.get("task_type"),
        )

    def content(self, item: Item) -> str:
        """Return what the agent is shown."""
        return f"{item.input['question']}\n{item.input.get('context', '')}"

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        """Ask once; the reply is taken whole."""
        return await ask(self._question(item), skill, target, read=str.strip)

    def _question(self, item: Item) -> Question:
        task = self._task(item, item.input.get("context", "")[: self.params.context_chars])
        completion = PROMPTS.fill("completion", task=task)
        chat = (Part(PROMPTS.fill("chat_whole", task=task)),)
        if self.params.whole:
            return Question(completion, chat, self.params.reply_tokens, (_NEXT_TASK,))
        return Question(completion, chat, self.params.answer_tokens)

    def _task(self, item: Item, context: str) -> str:
        lines = [f"Context: {context}"] if context else []
        return "\n".join([*lines, f"Question: {item.input['question']}"])

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        """Return what the function says of the reply, as hard and soft score."""
        said = self._said(item, trajectory.answer)
        right = Score.scored(said.score).hard == 1.0  # what is no score is refused here
        reason = "correct" if right else "empty" if not trajectory.answer else "wrong"
        return Score.scored(said.score, reason=reason)

    def feedback(self, item: Item, trajectory: Trajectory) -> str | None:
        """Return the function's feedback on the reply."""
        return self._said(item, trajectory.answer).feedback

    def _said(self, item: Item, reply: str) -> FunctionReply:
        known = self._memory.said.get((item.id, reply))
        if known is not None:
            return known
        if self._function is None:
            raise MetricAbsentError(
                f"Scoring item {item.id!r}",
                "a Python function of another program scores this run",
                "Call `skilltrail.optimize` there, with this folder as `workspace`",
            )
        said = _said(self._function(item.gold["record"], reply))
        self._memory.said[item.id, reply] = said
        return said

    def reference(self, item: Item) -> str | None:
        """Return the item's own answer, where it has one."""
        answer = item.gold["answer"]
        return None if answer is None else str(answer)

    def example(self, item: Item) -> str | None:
        """Return the solved item as a paragraph of the skill document; None without answer."""
        answer = self.reference(item)
        if not answer or "\n" in answer.strip():
            return None
        shown = around(
            fold(item.input.get("context", "")), fold(answer), self.params.example_chars
        )
        if shown is None:
            return None
        task = "\n".join(fold(line) for line in self._task(item, shown).split("\n") if line)
        return f"{PROMPTS.fill('completion', task=task)} {fold(answer)}"


ENVIRONMENT_FILE = '''\
"""Items of a program, scored by a function in it; see `skilltrail.optimize`."""

from skilltrail.envs.by_function import MetricEnv

ENVIRONMENT = MetricEnv
'''

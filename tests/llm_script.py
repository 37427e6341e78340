"""A scripted optimizer model and small views: what tests of the optimizer `llm` are made of."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory, Turn
from skilltrail.models.errors import UnseenRequest
from skilltrail.models.protocol import Reply, Request
from skilltrail.optimizers.llm.optimizer import LlmOptimizer
from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.optimizers.protocol import EpochView, Observation, Pair, StepRecord, StepView

SKILL = "# Answers\n\n- Answer briefly.\n- Explain your answer.\n"
Say = Callable[[Request], "Reply | str | dict[str, Any]"]


@dataclass
class ScriptedModel:
    """Answers from `say`, or from a list in the order of asking; keeps every request.

    A request beyond the list's end is an error: a script says all that may be asked.
    """

    say: Say | list[Any]
    stage: str = "any"
    style: str = "chat"
    abilities: frozenset[str] = frozenset({"schema"})
    workers: int = 16
    jitter: bool = False
    requests: list[Request] = field(default_factory=list)
    closed: int = 0

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"backend": "scripted", "stage": self.stage}

    async def complete(self, request: Request) -> Reply:
        number = len(self.requests)
        self.requests.append(request)
        if self.jitter:
            await asyncio.sleep(random.random() / 200)
        if callable(self.say):
            return as_reply(self.say(request))
        if number >= len(self.say):
            raise UnseenRequest(f"scripted {self.stage}", f"request {number + 1}", "Extend it")
        said = self.say[number]
        if isinstance(said, Exception):
            raise said
        return as_reply(said)

    async def close(self) -> None:
        self.closed += 1


def as_reply(said: Reply | str | dict[str, Any] | list[Any]) -> Reply:
    if isinstance(said, Reply):
        return said
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return Reply(text, model="scripted", usage={"input": 100, "output": 20})


@dataclass(frozen=True)
class Kept:
    value: dict[str, Any]
    reused: bool


@dataclass
class MemoryFacts:
    """Facts in a dict: the first value of a key stands."""

    values: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def get_or_make(
        self, kind: str, key: str, make: Callable[[], Awaitable[Mapping[str, Any]]]
    ) -> Kept:
        assert kind == "call"
        if key in self.values:
            return Kept(self.values[key], True)
        self.values[key] = json.loads(json.dumps(await make()))
        return Kept(self.values[key], False)


def optimizer_of(
    say: Say | list[Any] | Mapping[str, ScriptedModel] | ScriptedModel,
    facts: MemoryFacts | None = None,
    env: str = "toy",
    **options: Any,
) -> tuple[LlmOptimizer, ScriptedModel]:
    """Return an optimizer all of whose stages ask one scripted model, and that model."""
    model = say if isinstance(say, ScriptedModel) else ScriptedModel(say)  # type: ignore[arg-type]
    kept = MemoryFacts() if facts is None else facts
    return LlmOptimizer(lambda stage: model, kept, LlmOptions(**options), env), model


def observation(
    id: str,
    hard: float = 0.0,
    *,
    task: str | None = None,
    answer: str = "wrong",
    reference: str | None = None,
    reason: str = "wrong",
    observed: str | None = None,
    gold: Any = None,
) -> Observation:
    asked = f"Question {id}?" if task is None else task
    turn = Turn(asked, answer, observation=observed)
    score = Score.scored(hard, reason=reason)
    item = Item(id, {"question": asked}, gold)
    return Observation(item, Trajectory((turn,), answer), score, f"k{id}", reference)


def step_view(observations: Sequence[Observation] = (), **changes: Any) -> StepView:
    view = StepView(
        epoch=1,
        step=2,
        seed=42,
        skill=SKILL,
        budget=4,
        observations=tuple(observations),
        pool={o.item.id: o for o in observations},
        history=(),
    )
    return replace(view, **changes)


def epoch_view(pairs: Sequence[Pair], **changes: Any) -> EpochView:
    view = EpochView(
        epoch=2,
        seed=42,
        skill=SKILL,
        previous_skill="# Answers\n\n- Answer briefly.\n",
        pairs=tuple(pairs),
        guidance="",
        guidance_result="",
        history=(StepRecord(2, 3, "rejected", before=0.5, after=0.25),),
    )
    return replace(view, **changes)


def append(content: str, *items: str, **more: Any) -> dict[str, Any]:
    return {"op": "append", "content": content, "items": list(items), **more}


def run(awaitable: Awaitable[Any]) -> Any:
    async def go() -> Any:
        return await awaitable

    return asyncio.run(go())

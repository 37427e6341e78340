"""A toy world for tests of the loop: a plain-function model, environment and optimizer.

Each item asks for a word. The "model" knows a word when the skill has a line `- know <word>`;
the optimizer proposes such lines for the failures it sees, and a useless line beside them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory, Turn
from skilltrail.envs.protocol import Environment, Where
from skilltrail.history.log.recorder import Recorder
from skilltrail.method.calls import limited
from skilltrail.method.rollout import Rollouts
from skilltrail.method.run import Run, State, gate_rule
from skilltrail.methods.registry import train
from skilltrail.models.protocol import Model, Reply, Request
from skilltrail.optimizers.protocol import Answer, StepRecord, StepView
from skilltrail.params.fields import Params
from skilltrail.params.read import params_of
from skilltrail.skill.edit import Edit, Patch
from skilltrail.store.protocol import Store

WORDS = ("ash", "birch", "cedar", "elm", "fir", "oak", "pine", "yew")
SEED_SKILL = "# Trees\n\n- know ash\n"


@dataclass(frozen=True)
class ToyParams:
    pass


@dataclass(frozen=True)
class ToyEnvironment(Environment):
    params: ToyParams = ToyParams()
    name = "toy"
    version = "toy/1"
    Params = ToyParams

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        return Item(record["id"], {"word": record["word"]}, record["word"])

    def content(self, item: Item) -> str:
        return str(item.input["word"])

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        reply = await target.complete(Request(system=skill, prompt=item.input["word"]))
        turn = Turn(item.input["word"], reply.text, reply.finish)
        return Trajectory((turn,), reply.text, model=reply.model, usage=reply.usage)

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        right = trajectory.answer == item.gold
        return Score.scored(float(right), reason="correct" if right else "wrong")

    def reference(self, item: Item) -> str | None:
        return str(item.gold)


@dataclass
class ToyModel:
    """Answers after a random moment, so that arrival order differs from item order."""

    workers: int = 2
    calls: list[str] = field(default_factory=list)
    fail: Callable[[str], Exception | None] = lambda word: None
    jitter: bool = True
    identity = {"backend": "toy"}
    style = "completion"
    abilities = frozenset()

    async def complete(self, request: Request) -> Reply:
        word = request.prompt
        assert word is not None
        self.calls.append(word)
        if self.jitter:
            await asyncio.sleep(random.random() / 1000)
        error = self.fail(word)
        if error is not None:
            raise error
        known = f"- know {word}" in request.system.replace("\r\n", "\n").split("\n")
        return Reply(word if known else "", usage={"input": 7, "output": 1})

    async def close(self) -> None:
        pass


class ToyOptimizer:
    """Proposes what is missing; ranks by support, then by order."""

    tag = "toy/1"

    async def reflect(self, view: StepView) -> Answer:
        failed = [o for o in view.observations if o.score.hard == 0]
        edits = [
            Edit("append", content=f"- know {o.item.input['word']}", items=(o.item.id,))
            for o in failed
        ]
        edits.append(Edit("append", content=f"- step {view.step} passed"))
        ids = tuple(o.item.id for o in failed)
        return Answer([Patch("failure", ids, tuple(edits))], rule=self.tag)

    async def merge(self, view: StepView, patches: Sequence[Patch]) -> Answer:
        edits = [replace(e, parents=(e.id,), id="") for p in patches for e in p.edits]
        return Answer(edits, rule=self.tag)

    async def choose_budget(self, view: StepView, edits: Sequence[Edit]) -> Answer:
        return Answer(len(edits), rule=self.tag)

    async def rank(self, view: StepView, edits: Sequence[Edit]) -> Answer:
        order = sorted(range(len(edits)), key=lambda index: -edits[index].support)
        return Answer(order, rule=self.tag)

    def is_done(self, history: Sequence[StepRecord]) -> bool:
        return False

    async def close(self) -> None:
        pass


class Tally:
    """Counts rollouts made and reused."""

    def __init__(self) -> None:
        self.made = self.reused = 0

    def count(self, trajectory: Trajectory | None, *, reused: bool) -> None:
        if reused:
            self.reused += 1
        else:
            self.made += 1


def toy_params(**changes: Any) -> Params:
    """Return small params; dotted sections are given as nested mappings."""
    values = {"epochs": 2, "batch_size": 2, "lr": 2, "lr_schedule": "constant"} | changes
    return params_of({"env": "toy"} | values, {"toy": ToyParams})


def items_of(split: str) -> tuple[Item, ...]:
    return tuple(Item(f"{split}-{word}", {"word": word}, word) for word in WORDS)


@dataclass
class ToyRun:
    """One training of the toy world: its final state, its log and its counts."""

    state: State
    recorder: Recorder
    tally: Tally
    model: ToyModel
    rollouts: Rollouts

    @property
    def log(self) -> bytes:
        return self.recorder.path.read_bytes()

    def events(self, type: str) -> list[dict[str, Any]]:
        return [dict(e.data) for e in self.recorder.events if e.type == type]


def run_toy(
    folder: Path, store: Store, params: Params, model: ToyModel | None = None, **parts: Any
) -> ToyRun:
    """Train the toy world with its live log in `folder`."""
    model = ToyModel() if model is None else model
    tally = Tally()
    recorder = Recorder(folder / "events.jsonl")
    run = Run(
        params=params,
        train=items_of("train"),
        selection=parts.get("selection", items_of("selection")),
        seed_skill=parts.get("seed_skill", SEED_SKILL),
        rollouts=limited(
            Rollouts(
                parts.get("env", ToyEnvironment()),
                model,
                store,
                tally,
                gaps="toy",
                min_coverage=params.gate.min_coverage,
                maker=parts.get("maker"),
                shared=parts.get("shared"),
                costs=gate_rule(params).counts_cost,
            ),
            params.stop.calls,
        ),
        optimizer=parts.get("optimizer", ToyOptimizer()),
        history=recorder,
    )
    try:
        state = asyncio.run(train(run))
        recorder.finish()
    finally:
        recorder.close()
    return ToyRun(state, recorder, tally, model, run.rollouts)

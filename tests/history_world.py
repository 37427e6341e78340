"""Long, varied runs of the real loop for tests of the history, made in a moment.

The "model" answers each item with a number that follows from the skill's lines, so that every
line helps some items and harms others; the optimizer adds, changes, moves and removes lines in
an order that follows from the step number. About half of the candidates are accepted.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from null_store import NullStore
from toy_world import Tally, ToyOptimizer, ToyParams

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory, Turn
from skilltrail.envs.protocol import Environment, Where
from skilltrail.history.log.recorder import Projection, Recorder
from skilltrail.method.rollout import Rollouts
from skilltrail.method.run import History, Run
from skilltrail.methods.registry import train
from skilltrail.models.protocol import Model, Reply, Request
from skilltrail.optimizers.protocol import Answer, StepView
from skilltrail.params.read import params_of
from skilltrail.skill.edit import Edit, Patch
from skilltrail.store.protocol import Store

SEED_SKILL = "# Rules\n\n" + "".join(f"- seed rule {n}\n" for n in range(6))


def number(*parts: object) -> int:
    """Return a number that follows from `parts` alone."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6], "big")


@lru_cache(maxsize=1 << 20)
def weight(line: str, item: str) -> float:
    return (number(line, item) % 2001 - 1000) / 50_000


@lru_cache(maxsize=64)
def rules_of(skill: str) -> tuple[str, ...]:
    return tuple(line for line in skill.split("\n") if line.startswith("- "))


class LinesModel:
    """Answers with the item's score under the skill it was told."""

    workers = 4
    identity: Mapping[str, Any] = {"backend": "lines"}
    style = "completion"
    abilities: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.calls = 0

    async def complete(self, request: Request) -> Reply:
        self.calls += 1
        item = str(request.prompt)
        value = 0.4 + sum(weight(line, item) for line in rules_of(request.system))
        return Reply(f"{min(1.0, max(0.0, value)):.3f}", usage={"input": 9, "output": 2})

    async def close(self) -> None:
        pass


@dataclass(frozen=True)
class LinesEnvironment(Environment):
    params: ToyParams = ToyParams()
    name = "toy"
    version = "lines/1"
    Params = ToyParams

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        return Item(record["id"], record["input"])

    def content(self, item: Item) -> str:
        return item.id

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        reply = await target.complete(Request(system=skill, prompt=item.input["name"]))
        return Trajectory((Turn(item.input["name"], reply.text, reply.finish),), reply.text)

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        soft = float(trajectory.answer)
        return Score.scored(float(soft >= 0.5), soft, "right" if soft >= 0.5 else "low")

    def reference(self, item: Item) -> str | None:
        return "1.000"


class RestlessOptimizer(ToyOptimizer):
    """Proposes appends, insertions, replacements and deletions, some of which cannot apply."""

    async def reflect(self, view: StepView) -> Answer:
        patches = [
            Patch(source, items, self._edits(view, source, items), f"seen {len(items)}")
            for source, items in self._sides(view)
            if items
        ]
        return Answer(patches, rule=self.tag)

    def _sides(self, view: StepView) -> list[tuple[str, tuple[str, ...]]]:
        low = tuple(o.item.id for o in view.observations if o.score.hard == 0)
        high = tuple(o.item.id for o in view.observations if o.score.hard == 1)
        return [("failure", low), ("success", high)]

    def _edits(self, view: StepView, source: str, items: tuple[str, ...]) -> tuple[Edit, ...]:
        lines = [line for line in view.skill.split("\n") if line.startswith("- ")]
        edits = []
        for n in range(3):
            dice = number(view.step, source, n, view.skill)
            text = f"- rule {view.step}{source[0]}{n} has {dice % 97} words"
            target = lines[dice % len(lines)] if lines else "- none"
            kind = (dice // 7) % 5 if len(lines) < 40 else 3
            some = items[: 1 + dice % len(items)]
            edits.append(
                [
                    Edit("append", content=text, items=some),
                    Edit("insert_after", target, text, items=some),
                    Edit("replace", target, text, items=some),
                    Edit("delete", target, items=some),
                    Edit("replace", "- a line that is not there", text, items=some),
                ][kind]
            )
        return tuple(edits)


def items_of(split: str, size: int) -> tuple[Item, ...]:
    return tuple(Item(f"{split}-{n}", {"name": f"{split} {n}"}) for n in range(size))


@dataclass
class World:
    """Sizes of a run and its params."""

    n_train: int = 24
    n_selection: int = 12
    seed_skill: str = SEED_SKILL
    store: Store = field(default_factory=NullStore)
    params: Mapping[str, Any] = field(default_factory=dict)
    parent: str | None = None
    optimizer: ToyOptimizer = field(default_factory=RestlessOptimizer)

    def run(self, folder: Path, projection: Projection | None = None) -> Recorder:
        """Train with the live log in `folder`; return the finished recorder."""
        recorder = Recorder(folder / "events.jsonl", projection=projection)
        try:
            asyncio.run(self.train(recorder))
            recorder.finish()
        finally:
            recorder.close()
        return recorder

    async def train(self, recorder: History) -> None:
        gate = {"metric": "soft"}
        values = {"env": "toy", "epochs": 2, "batch_size": 4, "lr": 4, "gate": gate}
        params = params_of(values | self.params, {"toy": ToyParams})
        await train(
            Run(
                params=params,
                train=items_of("train", self.n_train),
                selection=items_of("selection", self.n_selection),
                seed_skill=self.seed_skill,
                rollouts=Rollouts(LinesEnvironment(), LinesModel(), self.store, Tally()),
                optimizer=self.optimizer,
                history=recorder,
                parent=self.parent,
            )
        )

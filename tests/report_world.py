"""A finished toy project for tests of the report: logs, exported rollouts, an evaluation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from test_method import Whole
from toy_world import SEED_SKILL, WORDS, Tally, ToyEnvironment, ToyModel, items_of, toy_params

from skilltrail.core.item import Item
from skilltrail.history.log.events import Event
from skilltrail.history.log.recorder import Recorder
from skilltrail.method.gate import GateRule
from skilltrail.method.rollout import Rollouts
from skilltrail.method.run import Run
from skilltrail.methods.registry import train
from skilltrail.optimizers.protocol import Answer, StepView
from skilltrail.report.build import build
from skilltrail.runtime.evaluation import measure, skills_of
from skilltrail.runtime.outputs import facts_named
from skilltrail.store.exports import export_shards
from skilltrail.store.facts import FactStore

EVERYTHING = {
    "epochs": 3,
    "batch_size": 4,
    "slow_update": {"enabled": True, "samples": 4},
    "meta_skill": {"enabled": True},
    "skill_aware": {"enabled": True},
}
MARKER = "planted_marker"
HOSTILE = (
    f"<script>window.{MARKER}=1</script>",
    f"</script><img src=x onerror='window.{MARKER}=1'>",
    f"![x](http://evil.invalid/{MARKER}.png) [y](javascript:window.{MARKER}=1)",
    "\u202egnp.exe \u2066turned\u2069",
    "\x1b[31mred\x1b]0;title\x07",
    "{{ 7*7 }} ${7*7} <!-- --> ]]>",
    "\u2028line\u2029ends\x00\x7f",
    "x" * 1_000_000,
)


@dataclass(frozen=True)
class Project:
    """A folder as a clone has it after `dvc repro`."""

    folder: Path
    training: list[Event]
    evaluation: list[Event]

    @property
    def page(self) -> Path:
        return self.folder / "reports/out/index.html"


class HostileOptimizer(Whole):
    """Says hostile things wherever it says anything."""

    async def reflect(self, view: StepView) -> Answer:
        answer = await super().reflect(view)
        patch = answer.value[0]
        bad = HOSTILE[view.step % len(HOSTILE)]
        edits = [
            replace(edit, reason=bad, content=f"{edit.content}\n- {HOSTILE[n % 3]}")
            for n, edit in enumerate(patch.edits)
        ]
        edits += [replace(edits[-1], content=f"- {one}") for one in HOSTILE[:3]]
        types = dict.fromkeys(patch.items, bad[:40])
        return replace(
            answer,
            value=[replace(patch, edits=tuple(edits), reasoning=bad, failure_types=types)],
        )


class HostileModel(ToyModel):
    """Answers right or with hostile text, to each word with another one."""

    async def complete(self, request: Any) -> Any:
        reply = await super().complete(request)
        return (
            reply if reply.text else replace(reply, text=HOSTILE[-WORDS.index(request.prompt)])
        )


def hostile_items(split: str) -> tuple[Item, ...]:
    return tuple(
        Item(f"{item.id} {HOSTILE[n % len(HOSTILE)][:200]}", item.input, item.gold)
        for n, item in enumerate(items_of(split))
    )


def make_project(
    folder: Path, params: Mapping[str, Any] = EVERYTHING, *, hostile: bool = False
) -> Project:
    """Train, evaluate and export the toy world in `folder`, and build its report."""
    find = hostile_items if hostile else items_of
    model = HostileModel() if hostile else ToyModel()
    (folder / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    with FactStore.open(folder) as store:
        rollouts = Rollouts(ToyEnvironment(), model, store, Tally(), gaps="toy")
        recorder = Recorder(folder / "skills/events.jsonl")
        run = Run(
            params=toy_params(**params),
            train=find("train"),
            selection=find("selection"),
            seed_skill=SEED_SKILL,
            rollouts=rollouts,
            optimizer=HostileOptimizer() if hostile else Whole(),
            history=recorder,
        )
        asyncio.run(train(run))
        recorder.finish()
        training = recorder.events
        after = Recorder(folder / "reports/out/evaluation.jsonl", after=training[-1])
        asyncio.run(
            measure(rollouts, GateRule(), find("test"), skills_of(training), after, "test")
        )
        after.finish()
        export_shards(store, facts_named(training), folder / "data/rollouts/train")
        export_shards(store, facts_named(after.events), folder / "data/rollouts/test")
    build(folder)
    return Project(folder, training, after.events)

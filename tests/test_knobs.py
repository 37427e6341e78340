"""Every knob of the method changes a run: two logs that differ in that knob alone differ.

Knobs of environments: `test_env_knobs.py`. `docs/knobs.md` names the test of each knob.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from methods_world import Teaching, prompted
from null_store import NullStore
from test_compaction import Brief
from toy_world import ToyParams, run_toy

from skilltrail.optimizers.protocol import Answer, StepView
from skilltrail.optimizers.registry import llm_options
from skilltrail.params.fields import Params
from skilltrail.params.knob import knobs_of
from skilltrail.params.methods import NEED_A_MODEL
from skilltrail.params.read import params_of
from skilltrail.skill.edit import Patch

SLOW = {"slow_update.enabled": True, "slow_update.samples": 4, "lr": 1}
BOOTSTRAP = {"method": "bootstrap"}
GEPA = {"method": "gepa"}
RANDOM = {"method": "random_search"}
ASKING = {"optimizer.backend": "openai", "optimizer.model": "scripted"}
MIPRO = ASKING | {
    "method": "mipro", "methods.mipro.trials": 3, "methods.mipro.sets": 4,
    "methods.mipro.minibatch": 3, "methods.mipro.full_every": 2,
    "methods.mipro.max_bootstrapped": 2, "methods.mipro.max_labelled": 3,
}  # fmt: skip
OPRO = ASKING | {
    "method": "opro", "methods.opro.rounds": 2, "methods.opro.proposals": 2,
    "methods.opro.shown": 2, "methods.opro.sample": 4,
}  # fmt: skip
BREEDER = ASKING | {
    "method": "promptbreeder", "methods.promptbreeder.population": 2,
    "methods.promptbreeder.generations": 2, "methods.promptbreeder.sample": 4,
}  # fmt: skip
TEXTGRAD = ASKING | {"method": "textgrad", "epochs": 1}
AWARE = {"skill_aware.enabled": True}
ELSEWHERE = (
    "env",
    "envs",
    "skill",
    "data",
    "target",
    "targets",
    "optimizer",
    "judge",
    "evaluate",
    "executor",
    "ray",
    "store",
)

# Another value of each knob, and what must be set besides for it to count.
METHOD: Mapping[str, tuple[Any, Mapping[str, Any]]] = {
    "seed": (43, {}),
    "method": ("bootstrap", {}),
    "stop.calls": (30, {}),
    "methods.bootstrap.candidates": (1, BOOTSTRAP),
    "methods.bootstrap.max_bootstrapped": (1, BOOTSTRAP),
    "methods.bootstrap.max_labelled": (1, BOOTSTRAP),
    "methods.gepa.minibatch": (2, GEPA),
    "methods.gepa.merges": (0, GEPA | {"seed": 1}),
    "methods.mipro.proposals": (2, MIPRO),
    "methods.mipro.sets": (2, MIPRO),
    "methods.mipro.trials": (1, MIPRO),
    "methods.mipro.minibatch": (4, MIPRO),
    "methods.mipro.full_every": (1, MIPRO),
    "methods.mipro.max_bootstrapped": (1, MIPRO),
    "methods.mipro.max_labelled": (1, MIPRO),
    "methods.opro.rounds": (1, OPRO),
    "methods.opro.proposals": (1, OPRO),
    "methods.opro.shown": (1, OPRO),
    "methods.opro.sample": (3, OPRO),
    "methods.opro.exemplars": (1, OPRO),
    "methods.promptbreeder.population": (3, BREEDER),
    "methods.promptbreeder.generations": (1, BREEDER),
    "methods.promptbreeder.sample": (3, BREEDER),
    "methods.promptbreeder.crossover": (1.0, BREEDER),
    "methods.textgrad.batch": (2, TEXTGRAD),
    "methods.textgrad.momentum": (1, TEXTGRAD),
    "methods.textgrad.revert": (False, TEXTGRAD),
    "methods.random_search.candidates": (1, RANDOM),
    "methods.random_search.most_edits": (1, RANDOM),
    "epochs": (1, {}),
    "batch_size": (4, {}),
    "accumulation": (2, {}),
    "lr": (1, {}),
    "lr_min": (2, {"lr": 4, "lr_schedule": "linear"}),
    "lr_schedule": ("linear", {}),
    "lr_phase": ("interval", {"lr": 4, "lr_schedule": "linear"}),
    "lr_rounding": ("even", {"lr": 4, "lr_schedule": "linear"}),
    "lr_bound": ("none", {"lr_schedule": "autonomous"}),
    "lr_warmup": (2, {}),
    "update_mode": ("rewrite_from_suggestions", {}),
    "max_skill_tokens": (12, {}),
    "patience": (1, {"lr": 1, "epochs": 4, "batch_size": 4}),
    "use_gate": (False, {}),
    "merge_batch_size": (2, {"batch_size": 8}),
    "compaction": (True, {}),
    "reflect.success_threshold": (0.0, SLOW),
    "gate.rule": ("no_regression", {}),
    "gate.metric": ("soft", {}),
    "gate.mixed_weight": (0.2, {"gate.metric": "mixed"}),
    "gate.alpha": (0.9, {"gate.rule": "paired"}),
    "gate.tolerance": (1.0, {"gate.rule": "no_regression"}),
    "gate.prefer_shorter": (False, {"compaction": True, "lr": 3}),
    "gate.min_coverage": (0.5, {}),
    "gate.repeats": (2, {}),
    "gate.min_items": (9, {}),
    "slow_update.enabled": (True, {"lr": 1}),
    "slow_update.samples": (2, SLOW),
    "slow_update.mode": ("force", SLOW),
    "slow_update.pairs": ("changed", SLOW),
    "slow_update.max_extra": (2, SLOW | {"slow_update.pairs": "changed"}),
    "meta_skill.enabled": (True, {"lr": 1}),
    "meta_skill.from_epoch": (2, {"meta_skill.enabled": True}),
    "skill_aware.enabled": (True, {}),
    "skill_aware.source": ("failure_only", AWARE),
    "skill_aware.consolidate_over": (1, AWARE),
}
# What the prompted optimizer alone is told.
PROMPTED: Mapping[str, Any] = {
    "reflect.minibatch_size": 2,
    "reflect.success": "never",
    "reflect.grouping": "shuffled",
    "reflect.per_batch": True,
    "reflect.most_edits": 3,
    "merge_ask": "always",
    "slow_update.ask": "always",
    "meta_skill.told_to": ["analyst"],
    "optimizer.past": "epoch",
    "optimizer.past_to": ["analyst"],
    "reflect.show": ["prompt"],
    "reflect.trajectory_chars": 900,
    "skill_aware.enabled": True,
    "skill_aware.source": "failure_only",
    "optimizer.workers": 3,
    "optimizer.max_tokens": 700,
    "optimizer.stages.rank.max_tokens": 50,
}


class Curious(Brief):
    """One analyst per failed item, and one for the successes, all with notes."""

    async def reflect(self, view: StepView) -> Answer:
        answer = await super().reflect(view)
        whole = answer.value[0]
        if view.update_mode != "patch":
            return answer
        single = [replace(whole, edits=(edit,), items=edit.items) for edit in whole.edits]
        passed = Patch("success", (), (), notes=("go on",))
        return Answer([*single, passed], rule=self.tag)


def params(values: Mapping[str, Any]) -> Params:
    tree: dict[str, Any] = {"env": "toy"}
    for key, value in values.items():
        place = tree
        *sections, name = key.split(".")
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = value
    return params_of(tree, {"toy": ToyParams})


def log(folder: Path, values: Mapping[str, Any]) -> bytes:
    small = {"epochs": 2, "batch_size": 2, "lr": 2, "lr_schedule": "constant"}
    folder.mkdir()
    asking = values.get("method") in NEED_A_MODEL
    optimizer = prompted(NullStore()) if asking else Curious()
    parts = {"optimizer": optimizer, "env": Teaching()}
    return run_toy(folder, NullStore(), params(small | values), **parts).log


@pytest.mark.parametrize("knob", METHOD)
def test_a_knob_of_the_method_changes_the_run(tmp_path: Path, knob: str) -> None:
    value, besides = METHOD[knob]
    assert log(tmp_path / "a", besides) != log(tmp_path / "b", dict(besides) | {knob: value})


def test_one_run_made_twice_has_one_log(tmp_path: Path) -> None:
    assert log(tmp_path / "a", SLOW) == log(tmp_path / "b", SLOW)


def test_another_seed_skill_is_another_run(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    one = run_toy(tmp_path / "a", NullStore(), params({}), seed_skill="# Trees\n")
    assert one.log != run_toy(tmp_path / "b", NullStore(), params({})).log


@pytest.mark.parametrize("knob", PROMPTED)
def test_a_knob_of_the_prompted_optimizer_reaches_it(knob: str) -> None:
    assert llm_options(params({knob: PROMPTED[knob]}), "toy") != llm_options(params({}), "toy")


def test_every_knob_of_the_method_is_listed_here() -> None:
    keys = {knob.key for knob in knobs_of(Params)}
    here = {key for key in keys if key.split(".")[0] not in ELSEWHERE}
    assert here - {"skill.parent"} == METHOD.keys() | {k for k in PROMPTED if k in here}

"""What `plan` foresees at most is never exceeded, whatever params say and models answer."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from llm_script import MemoryFacts, ScriptedModel
from methods_world import SCRIPTED, Teaching, method_params, write
from null_store import NullStore
from toy_world import ToyModel, run_toy, toy_params

from skilltrail.models.errors import TooLong
from skilltrail.models.protocol import Reply, Request
from skilltrail.optimizers.llm.optimizer import LlmOptimizer
from skilltrail.optimizers.registry import llm_options
from skilltrail.params.fields import Params
from skilltrail.runtime.call_estimate import Size, call_ranges, most_rollouts
from skilltrail.store.facts import FactStore
from tests.test_llm_modes import say as sound

SIZE = Size(8, 8, 0)
GARBAGE = Reply("no JSON at all", usage={"input": 9, "output": 9})


def noted(request: Request) -> dict[str, Any]:
    """Answer as a sound model does, with a note beside every patch and shorter reminders."""
    if "reminders" in json.dumps(request.schema):
        return {"reminders": ["Mind the rules."]}
    if request.system.startswith("You shorten"):
        return {"document": None}
    said = sound(request)
    if "edits" in said and "notes" in json.dumps(request.schema):
        many = len(json.dumps(request.to_json()))
        said["notes"] = [{"rule": "- know ash", "note": f"Ash is number {many}."}]
    return said


class Moody(ScriptedModel):
    """Answers soundly, in garbage first, in garbage only, or finds requests too long first."""

    def __init__(self, mood: str) -> None:
        super().__init__(self.answer)
        self.mood, self.seen = mood, 0

    def answer(self, request: Request) -> Any:
        self.seen += 1
        if self.mood == "too long" and self.seen % 5:
            raise TooLong("scripted")
        if self.mood == "cut off":
            return Reply('{"edits": [', finish="length", usage={"input": 9, "output": 9})
        if self.mood == "garbage" or (self.mood == "garbage first" and self.seen % 2):
            return GARBAGE
        try:
            return noted(request)
        except (AssertionError, KeyError):
            return GARBAGE


SETTINGS = st.fixed_dictionaries(
    {
        "epochs": st.integers(1, 3),
        "batch_size": st.integers(1, 8),
        "accumulation": st.integers(1, 3),
        "lr": st.integers(1, 3),
        "lr_min": st.just(1),
        "lr_schedule": st.sampled_from(["constant", "cosine", "autonomous", "none"]),
        "update_mode": st.sampled_from(
            ["patch", "rewrite_from_suggestions", "full_rewrite_minibatch"]
        ),
        "merge_batch_size": st.integers(2, 4),
        "merge_ask": st.sampled_from(["touching", "always"]),
        "max_skill_tokens": st.sampled_from([0, 12, 40]),
        "stop": st.fixed_dictionaries({"calls": st.sampled_from([0, 0, 20, 40])}),
        "compaction": st.booleans(),
        "patience": st.integers(0, 2),
        "use_gate": st.booleans(),
        "gate": st.fixed_dictionaries(
            {
                "repeats": st.integers(1, 2),
                "rule": st.sampled_from(["strict", "paired", "no_regression", "pareto"]),
                "prefer_shorter": st.booleans(),
            }
        ),
        "reflect": st.fixed_dictionaries(
            {
                "minibatch_size": st.integers(1, 3),
                "success": st.sampled_from(["auto", "always", "never"]),
                "grouping": st.sampled_from(["cause", "shuffled"]),
                "per_batch": st.booleans(),
                "most_edits": st.integers(0, 1),
            }
        ),
        "skill_aware": st.fixed_dictionaries(
            {"enabled": st.booleans(), "consolidate_over": st.integers(0, 2)}
        ),
        "slow_update": st.fixed_dictionaries(
            {
                "enabled": st.booleans(),
                "samples": st.integers(1, 10),
                "pairs": st.sampled_from(["mixed", "changed", "unchanged"]),
                "max_extra": st.integers(0, 9),
                "mode": st.sampled_from(["gated", "force"]),
                "ask": st.sampled_from(["needed", "always"]),
            }
        ),
        "meta_skill": st.fixed_dictionaries(
            {"enabled": st.booleans(), "from_epoch": st.integers(1, 3)}
        ),
    }
)
MOODS = st.sampled_from(["sound", "garbage first", "garbage", "too long", "cut off"])


def foreseen(params: Params, role: str) -> tuple[int, int]:
    rows = [row for row in call_ranges(params, SIZE) if row.role == role]
    return sum(row.fewest for row in rows), sum(row.most for row in rows)


@settings(max_examples=60, deadline=None)
@given(SETTINGS, MOODS)
@example(
    {
        "epochs": 3, "batch_size": 4, "update_mode": "rewrite_from_suggestions",
        "lr_schedule": "autonomous", "meta_skill": {"enabled": True},
        "slow_update": {"pairs": "changed", "samples": 2, "max_extra": 9},
        "skill_aware": {"enabled": True, "consolidate_over": 1}, "compaction": True,
        "reflect": {"minibatch_size": 1},
    },
    "garbage first",
)  # fmt: skip
def test_no_run_makes_more_calls_than_plan_foresees_at_most(
    values: dict[str, Any], mood: str
) -> None:
    params = toy_params(
        **values, optimizer={"backend": "openai", "model": "x"}, evaluate={"enabled": False}
    )
    model = Moody(mood)
    optimizer = LlmOptimizer(
        lambda stage: model, MemoryFacts(), llm_options(params, "toy"), "toy"
    )
    target = ToyModel(jitter=False)
    with TemporaryDirectory() as folder:
        # What `stop.calls` counts as known must be known.
        store = FactStore.open(Path(folder)) if params.stop.calls else NullStore()
        run_toy(Path(folder), store, params, target, optimizer=optimizer)
    fewest, most = foreseen(params, "optimizer")
    assert fewest <= len(model.requests) <= most
    fewest, most = foreseen(params, "target")
    assert fewest <= len(target.calls) <= most == most_rollouts(params, SIZE)


SMALL = st.integers(1, 4)
RIVALS = {
    "gepa": {"minibatch": SMALL, "merges": st.integers(0, 3)},
    "bootstrap": {
        "candidates": SMALL, "max_bootstrapped": st.integers(0, 2),
        "max_labelled": st.integers(0, 2),
    },
    "random_search": {"candidates": SMALL, "most_edits": SMALL},
    "opro": {
        "rounds": SMALL, "proposals": SMALL, "shown": SMALL, "sample": st.integers(1, 9),
        "exemplars": st.integers(0, 3),
    },
    "promptbreeder": {
        "population": st.integers(2, 5), "generations": SMALL, "sample": st.integers(1, 9),
        "crossover": st.sampled_from([0.0, 0.3, 1.0]),
    },
    "mipro": {
        "proposals": st.integers(2, 4), "sets": st.integers(2, 4), "trials": st.integers(1, 6),
        "minibatch": st.integers(1, 9), "full_every": SMALL,
        "max_bootstrapped": st.integers(0, 2), "max_labelled": st.integers(0, 2),
    },
    "textgrad": {"batch": SMALL, "momentum": st.integers(0, 2), "revert": st.booleans()},
}  # fmt: skip


class Writing(Moody):
    """The same moods where a rival method asks."""

    def answer(self, request: Request) -> Any:
        said = super().answer(request)
        return write(request) if said is GARBAGE and self.mood == "sound" else said


@settings(max_examples=15, deadline=None)
@given(st.data(), MOODS)
@pytest.mark.parametrize("method", RIVALS)
def test_no_rival_makes_more_calls_than_plan_foresees_at_most(
    method: str, data: st.DataObject, mood: str
) -> None:
    own = {method: data.draw(st.fixed_dictionaries(RIVALS[method]))}
    more = {"epochs": data.draw(st.integers(1, 2)), "evaluate": {"enabled": False}}
    params = method_params(method, methods=own, **more, optimizer=SCRIPTED)
    model = Writing(mood)
    optimizer = LlmOptimizer(
        lambda stage: model, MemoryFacts(), llm_options(params, "toy"), "toy"
    )
    target = ToyModel(jitter=False)
    with TemporaryDirectory() as folder:
        store = FactStore.open(Path(folder))  # a rollout in flight when enough are solved stays
        run_toy(Path(folder), store, params, target, optimizer=optimizer, env=Teaching())
    fewest, most = foreseen(params, "optimizer")
    assert fewest <= len(model.requests) <= most
    fewest, most = foreseen(params, "target")
    assert fewest <= len(target.calls) <= most


@pytest.mark.parametrize(
    ("changes", "phase"),
    [
        ({"update_mode": "rewrite_from_suggestions"}, "rewrite"),
        ({"lr_schedule": "autonomous"}, "budget"),
        ({"skill_aware": {"enabled": True, "consolidate_over": 2}}, "consolidate"),
        ({"meta_skill": {"enabled": True}}, "comparison"),
        ({"meta_skill": {"enabled": True}}, "meta skill"),
        ({"slow_update": {"enabled": True}}, "comparison"),
        ({"compaction": True}, "compaction"),
    ],
)
def test_every_setting_that_asks_for_more_has_a_line(changes: Any, phase: str) -> None:
    off = {"slow_update": {"enabled": False}, "meta_skill": {"enabled": False}}
    asks = {"optimizer": {"backend": "openai", "model": "x"}, **off}
    assert phase in {row.phase for row in call_ranges(toy_params(**asks | changes), SIZE)}
    assert phase not in {row.phase for row in call_ranges(toy_params(**asks), SIZE)}


def test_further_comparisons_count() -> None:
    def most(**more: Any) -> int:
        params = toy_params(slow_update={"enabled": True, "samples": 2, **more})
        return sum(r.most for r in call_ranges(params, SIZE) if r.phase == "comparison")

    assert most(pairs="mixed", max_extra=6) == 4
    assert most(pairs="changed", max_extra=6) == 10
    assert most(pairs="changed", max_extra=99) == 16


@settings(max_examples=200)
@given(SETTINGS)
def test_the_likely_number_lies_between_the_bounds(values: dict[str, Any]) -> None:
    model = {"backend": "openai", "model": "x"}
    params = toy_params(**values, optimizer=model, judge=model | {"rubric": "r.md"})
    for row in call_ranges(params, Size(8, 8, 8)):
        assert 0 <= row.fewest <= row.likely <= row.most

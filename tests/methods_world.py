"""A toy world in which every method can learn: items ask for words that lines teach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toy_world import ToyEnvironment, ToyModel, ToyOptimizer, ToyParams, ToyRun, run_toy

from skilltrail.core.item import Item
from skilltrail.params.fields import Params
from skilltrail.params.read import params_of
from skilltrail.store.protocol import Store

# Every method, with settings small enough for the toy world.
METHODS: Mapping[str, Mapping[str, Any]] = {
    "skillopt": {"epochs": 2, "batch_size": 2, "lr": 2, "lr_schedule": "constant"},
    "bootstrap": {
        "methods": {"bootstrap": {"candidates": 9, "max_bootstrapped": 2, "max_labelled": 3}}
    },
    "gepa": {"epochs": 2, "methods": {"gepa": {"minibatch": 2, "merges": 3}}},
    "random_search": {"methods": {"random_search": {"candidates": 12, "most_edits": 4}}},
}

REGION_SEED = (
    "# Trees\n\n- know ash\n\n<!-- SLOW_UPDATE_START -->\nkeep this\n<!-- SLOW_UPDATE_END -->\n"
)


@dataclass(frozen=True)
class Teaching(ToyEnvironment):
    """Shows a solved item as the line that teaches its word."""

    def example(self, item: Item) -> str | None:
        return f"- know {item.input['word']}"


def method_params(method: str, **changes: Any) -> Params:
    values = {"env": "toy", "method": method} | dict(METHODS[method]) | changes
    return params_of(values, {"toy": ToyParams})


def run_method(
    folder: Path, store: Store, method: str, model: ToyModel | None = None, **changes: Any
) -> ToyRun:
    """Train the toy world by a method."""
    parts = {
        name: changes.pop(name)
        for name in ("optimizer", "env", "seed_skill")
        if name in changes
    }
    params = method_params(method, **changes)
    parts = {"env": Teaching(), "optimizer": ToyOptimizer()} | parts
    return run_toy(folder, store, params, model, **parts)

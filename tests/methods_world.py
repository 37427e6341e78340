"""A toy world in which every method can learn: items ask for words that lines teach."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_script import ScriptedModel
from toy_world import WORDS, ToyEnvironment, ToyModel, ToyOptimizer, ToyParams, ToyRun, run_toy

from skilltrail.core.item import Item
from skilltrail.models.protocol import Request
from skilltrail.optimizers.llm.optimizer import LlmOptimizer
from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.params.fields import Params
from skilltrail.params.methods import NEED_A_MODEL
from skilltrail.params.read import params_of
from skilltrail.store.protocol import Store

SCRIPTED = {"backend": "openai", "api": "chat", "model": "scripted", "provider": "lab"}

# Every method, with settings small enough for the toy world.
METHODS: Mapping[str, Mapping[str, Any]] = {
    "skillopt": {"epochs": 2, "batch_size": 2, "lr": 2, "lr_schedule": "constant"},
    "bootstrap": {
        "methods": {"bootstrap": {"candidates": 9, "max_bootstrapped": 2, "max_labelled": 3}}
    },
    "gepa": {"epochs": 2, "methods": {"gepa": {"minibatch": 2, "merges": 3}}},
    "mipro": {
        "optimizer": SCRIPTED,
        "methods": {
            "mipro": {
                "proposals": 5,
                "sets": 5,
                "trials": 12,
                "minibatch": 4,
                "full_every": 3,
                "max_bootstrapped": 2,
                "max_labelled": 3,
            }
        },
    },
    "opro": {
        "optimizer": SCRIPTED,
        "methods": {"opro": {"rounds": 4, "proposals": 3, "shown": 4, "sample": 4}},
    },
    "promptbreeder": {
        "optimizer": SCRIPTED,
        "methods": {"promptbreeder": {"population": 4, "generations": 5, "sample": 4}},
    },
    "random_search": {"methods": {"random_search": {"candidates": 12, "most_edits": 4}}},
    "textgrad": {
        "optimizer": SCRIPTED,
        "epochs": 2,
        "methods": {"textgrad": {"batch": 2, "momentum": 1}},
    },
}

REGION_SEED = (
    "# Trees\n\n- know ash\n\n<!-- SLOW_UPDATE_START -->\nkeep this\n<!-- SLOW_UPDATE_END -->\n"
)


@dataclass(frozen=True)
class Teaching(ToyEnvironment):
    """Shows a solved item as the line that teaches its word."""

    def example(self, item: Item) -> str | None:
        return f"- know {item.input['word']}"


WORD = re.compile(r"- know (\w+)|train-(\w+)")


def write(request: Request) -> dict[str, Any]:
    """Answer what a rival method asks for: the first document shown, taught one word more."""
    told = request.system + "".join(part.text for part in request.messages[0].parts)
    assert request.schema is not None
    key = int(request.key({})[:8], 16)
    if "text" in request.schema["properties"]:
        named = [word for known, word in WORD.findall(told) if word]
        return {"text": f"teach {named[0] if named else 'trees'}, {key % 7}"}
    known = list(dict.fromkeys(word for word, _ in WORD.findall(told) if word))
    asked = [word for _, word in WORD.findall(told) if word and word not in known]
    more = [*asked, *WORDS][key % (len(asked) + len(WORDS))]
    lines = [*known[: 2 + key % 7], more]
    return {"document": "# Trees\n\n" + "".join(f"- know {word}\n" for word in lines)}


def prompted(store: Any, say: Any = write) -> LlmOptimizer:
    """Return the prompted optimizer over a scripted model, its calls kept in `store`."""
    model = ScriptedModel(say, jitter=True)
    return LlmOptimizer(lambda stage: model, store, LlmOptions(), "toy")


def method_params(method: str, **changes: Any) -> Params:
    values = {"env": "toy", "method": method} | dict(METHODS[method]) | changes
    return params_of(values, {"toy": ToyParams})


def run_method(
    folder: Path, store: Store, method: str, model: ToyModel | None = None, **changes: Any
) -> ToyRun:
    """Train the toy world by a method."""
    parts = {
        name: changes.pop(name)
        for name in ("optimizer", "env", "seed_skill", "selection")
        if name in changes
    }
    params = method_params(method, **changes)
    optimizer = prompted(store) if method in NEED_A_MODEL else ToyOptimizer()
    parts = {"env": Teaching(), "optimizer": optimizer} | parts
    return run_toy(folder, store, params, model, **parts)

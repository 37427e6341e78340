"""Small runs whose optimizer is a scripted model: one for each ability of the method.

`test_llm_golden.py` replays each from its recorded replies, to the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import test_llm_loop
import test_llm_modes
from llm_script import MemoryFacts, ScriptedModel, append
from null_store import NullStore
from toy_world import ToyRun, run_toy, toy_params

from skilltrail.models.protocol import Reply, Request
from skilltrail.optimizers.llm.optimizer import LlmOptimizer
from skilltrail.optimizers.llm.options import LlmOptions

SLOW = {"enabled": True, "samples": 4}
RUNS: Mapping[str, Mapping[str, Any]] = {
    "faulty": {},
    "patch": {"epochs": 1},
    "suggestions": {"update_mode": "rewrite_from_suggestions", "epochs": 1},
    "documents": {"update_mode": "full_rewrite_minibatch", "epochs": 1},
    "slow": {"slow_update": SLOW, "lr": 1},
    "forced": {"slow_update": SLOW | {"mode": "force"}, "lr": 1},
    "meta": {"meta_skill": {"enabled": True}, "lr": 1},
    "notes": {"skill_aware": {"enabled": True, "consolidate_over": 1}, "epochs": 1},
    "autonomous": {"lr_schedule": "autonomous", "epochs": 1},
    "compact": {"compaction": True, "epochs": 1},
}


def say(request: Request) -> Reply | dict[str, Any]:
    """Answer as the prompts ask, in every part of the method."""
    told = "".join(part.text for part in request.messages[0].parts)
    role = " ".join(request.system.split()[:2])
    if role == "You shorten":
        return {"document": test_llm_modes.skill_in(request).replace("# Trees\n\n", "")}
    properties = {} if request.schema is None else request.schema["properties"]
    if "reminders" in properties:
        return {"reminders": ["know all trees"]}
    if role == "You improve" and "notes" in properties and "failed runs" in request.system:
        failed = test_llm_modes._ITEM.findall(told)
        edits = [append(f"- know {word}", id) for id, word in failed]
        notes = [{"note": f"mind the {word}", "rule": "- know ash"} for _, word in failed]
        return {"edits": edits, "notes": notes}
    return test_llm_modes.say(request)


def script(name: str) -> ScriptedModel:
    """Return the model that a run was recorded with."""
    return ScriptedModel(test_llm_loop.say if name == "faulty" else say)


def train(name: str, folder: Path, facts: MemoryFacts, model: Any, **options: Any) -> ToyRun:
    """Make one of `RUNS` with its live log in `folder`."""
    folder.mkdir(exist_ok=True)
    params = toy_params(**{"batch_size": 4, "lr": 2} | RUNS[name])
    told = {"minibatch_size": 1 if name == "faulty" else 2}
    told |= {"skill_aware": params.skill_aware.enabled} | options
    optimizer = LlmOptimizer(lambda stage: model, facts, LlmOptions(**told), "toy")
    return run_toy(folder, NullStore(), params, optimizer=optimizer)

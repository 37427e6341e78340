"""The prompted optimizer in every update mode: a scripted model that follows its prompts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from llm_script import MemoryFacts, ScriptedModel, append
from null_store import NullStore
from toy_world import ToyRun, run_toy, toy_params

from skilltrail.models.protocol import Request
from skilltrail.optimizers.llm.optimizer import LlmOptimizer
from skilltrail.optimizers.llm.options import LlmOptions

_ITEM = re.compile(r'^item "(train-(\w+))"$', re.MULTILINE)
_SKILL = re.compile(r"==== BEGIN skill \w+ ====\n(.*?)\n==== END skill", re.DOTALL)


def skill_in(request: Request) -> str:
    found = _SKILL.search(request.system)
    assert found is not None
    return found[1] + "\n"


def analyst(request: Request, told: str) -> dict[str, Any]:
    failed = _ITEM.findall(told) if "failed runs" in request.system else []
    if "suggest changes" in request.system:
        said = [{"content": f"Add: - know {word}", "items": [id]} for id, word in failed]
        return {"suggestions": said}
    if "write the whole document anew" in request.system:
        lines = "".join(f"- know {word}\n" for _, word in failed)
        return {"document": skill_in(request) + lines, "items": [id for id, _ in failed]}
    return {"edits": [append(f"- know {word}", id) for id, word in failed]}


def merger(request: Request, offered: list[dict[str, Any]]) -> dict[str, Any]:
    if "whole versions" in request.system.split("\n")[0]:
        longest = max((one["content"] for one in offered), key=len)
        return {"document": longest, "parents": [one["id"] for one in offered]}
    kept = [{"content": one["content"], "parents": [one["id"]]} for one in offered]
    assert request.schema is not None
    if "suggestions" in request.schema["properties"]:
        return {"suggestions": kept}
    return {"edits": [{"op": "append", **one} for one in kept]}


def say(request: Request) -> dict[str, Any]:
    told = "".join(part.text for part in request.messages[0].parts)
    offered = [json.loads(line) for line in told.split("\n") if line.startswith('{"')]
    role = " ".join(request.system.split()[:2])
    if role == "You improve":
        return analyst(request, told)
    if role == "You merge":
        return merger(request, offered)
    if role == "You choose":
        return {"order": [one["number"] for one in offered]}
    if role == "You set":
        return {"budget": 1}
    if role == "You steer":
        return {"guidance": "- Keep calm."}
    if role == "You keep":
        return {"memory": "- All edits were lines."}
    assert role == "You write", role
    lines = "".join(one["content"].removeprefix("Add: ") + "\n" for one in offered)
    return {"document": skill_in(request) + lines}


def train(folder: Path, **params: Any) -> ToyRun:
    model = ScriptedModel(say)
    options = LlmOptions(minibatch_size=2)
    optimizer = LlmOptimizer(lambda stage: model, MemoryFacts(), options, "toy")
    return run_toy(
        folder, NullStore(), toy_params(batch_size=4, lr=2, **params), optimizer=optimizer
    )


@pytest.mark.parametrize(
    "mode", ["patch", "rewrite_from_suggestions", "full_rewrite_minibatch"]
)
def test_every_update_mode_learns(tmp_path: Path, mode: str) -> None:
    trained = train(tmp_path, update_mode=mode)
    assert trained.state.skill.count("- know") > 4
    assert trained.events("reply.rejected") == []


def test_the_budget_that_the_model_chose_holds(tmp_path: Path) -> None:
    trained = train(tmp_path, lr_schedule="autonomous")
    assert all(len(event["selected"]) <= 1 for event in trained.events("edits.selected"))
    assert trained.state.version > 0

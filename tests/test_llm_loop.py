"""The prompted optimizer in the real loop: a scripted model trains the toy world."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from llm_script import MemoryFacts, ScriptedModel, as_reply
from null_store import NullStore
from toy_world import ToyRun, run_toy, toy_params

from skilltrail.core.errors import Interrupted
from skilltrail.models.protocol import Reply, Request
from skilltrail.optimizers.llm.optimizer import LlmOptimizer
from skilltrail.optimizers.llm.options import LlmOptions

_ITEM = re.compile(r'^item "(train-(\w+))"$', re.MULTILINE)


class Died(Interrupted):
    """The process was stopped here."""

    def __init__(self) -> None:
        super().__init__("stopped")


def say(request: Request) -> Reply:
    """Propose a line for each failed item; merge and rank by what is shown."""
    told = "".join(part.text for part in request.messages[0].parts)
    if request.system.startswith("You improve"):
        if "successful runs" in request.system:
            return as_reply({"edits": []})
        failed = _ITEM.findall(told)
        edits = [
            {"op": "append", "content": f"- know {word}", "items": [item]}
            for item, word in failed
        ]
        broken = [{"op": "append", "content": "- see http://evil.invalid"}, {"op": "zap"}]
        return as_reply({"edits": edits + broken})
    offered = [json.loads(line) for line in told.split("\n") if line.startswith('{"')]
    if request.system.startswith("You choose"):
        return as_reply({"order": [edit["number"] for edit in offered]})
    merged = [
        {"op": "append", "content": edit["content"], "parents": [edit["id"]]}
        for edit in offered
    ]
    return as_reply({"edits": merged})


def train(folder: Path, facts: MemoryFacts, model: Any, **options: Any) -> ToyRun:
    folder.mkdir(exist_ok=True)
    optimizer = LlmOptimizer(
        lambda stage: model, facts, LlmOptions(minibatch_size=1, **options), "toy"
    )
    params = toy_params(batch_size=4, lr=2)
    return run_toy(folder, NullStore(), params, optimizer=optimizer)


def test_a_run_learns_and_accounts_for_what_it_threw_away(tmp_path: Path) -> None:
    trained = train(tmp_path, MemoryFacts(), ScriptedModel(say))
    assert trained.state.version > 0
    assert "- know" in trained.state.skill
    assert "evil" not in trained.state.skill
    messages = [event["message"] for event in trained.events("reply.rejected")]
    assert any("web_address" in message for message in messages)
    assert any("zap" in message for message in messages)
    assert all(event["reply"] for event in trained.events("patch.proposed"))


def test_the_log_is_the_same_with_one_worker_with_sixteen_and_from_facts(
    tmp_path: Path,
) -> None:
    facts = MemoryFacts()
    one = train(tmp_path / "one", facts, ScriptedModel(say, jitter=True), workers=1)
    model = ScriptedModel(say, jitter=True)
    many = train(tmp_path / "many", MemoryFacts(), model, workers=16)
    silent = ScriptedModel([])
    again = train(tmp_path / "again", facts, silent)
    assert one.log == many.log == again.log
    assert silent.requests == []


@pytest.mark.parametrize("after", [1, 4, 9])
def test_a_crash_changes_no_byte_of_what_is_asked_later(tmp_path: Path, after: int) -> None:
    whole = MemoryFacts()
    expected = train(tmp_path / "whole", whole, ScriptedModel(say)).log
    facts = MemoryFacts()
    asked = 0

    def dies(request: Request) -> Reply:
        nonlocal asked
        asked += 1
        if asked > after:
            raise Died
        return say(request)

    with pytest.raises(Died):
        train(tmp_path / "first", facts, ScriptedModel(dies), workers=1)
    assert 0 < len(facts.values) < len(whole.values)
    resumed = train(tmp_path / "second", facts, ScriptedModel(say))
    assert resumed.log == expected
    assert facts.values.keys() == whole.values.keys()


def test_only_unusable_replies_change_nothing_and_each_is_named(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: "no json")
    trained = train(tmp_path, MemoryFacts(), model)
    assert trained.state.version == 0
    assert {event["result"] for event in trained.events("step.ended")} == {"no_patch"}
    assert len(trained.events("reply.rejected")) == len(model.requests)

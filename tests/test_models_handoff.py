"""The backend `handoff`: questions are files, answers are picked up as they come."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from llm_script import MemoryFacts, append, observation, step_view

from skilltrail.core.errors import Interrupted
from skilltrail.models.errors import ModelConfigError
from skilltrail.models.protocol import Message, Request
from skilltrail.models.registry import open_model
from skilltrail.optimizers.llm.optimizer import LlmOptimizer
from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.params.model_options import HandoffOptions, RoleOptions


def role(wait_s: float | None = 0.0, **more: Any) -> RoleOptions:
    handoff = HandoffOptions(folder="asked", wait_s=wait_s)
    return RoleOptions(backend="handoff", model="a-colleague", handoff=handoff, **more)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    return tmp_path / "asked"


def question(text: str = "How many?") -> Request:
    return Request(system="Be exact.", messages=(Message.text("user", text),), schema={"a": 1})


def questions_in(folder: Path) -> list[Path]:
    return sorted(p for p in folder.glob("*.md") if not p.name.endswith(".reply.md"))


def test_a_question_that_nobody_answered_stops_the_run_and_says_where_it_lies(
    folder: Path,
) -> None:
    model = open_model("optimizer", role())
    with pytest.raises(Interrupted, match="Answer the .md files there") as stopped:
        asyncio.run(model.complete(question()))
    assert stopped.value.exit_code == 75
    (asked,) = questions_in(folder)
    text = asked.read_text(encoding="utf-8")
    assert asked.stem + ".reply.md" in text
    assert "Be exact." in text
    assert "How many?" in text
    assert '"a": 1' in text


def test_an_answer_is_taken_up_whole_and_the_question_goes(folder: Path) -> None:
    model = open_model("optimizer", role())
    with pytest.raises(Interrupted):
        asyncio.run(model.complete(question()))
    (asked,) = questions_in(folder)
    asked.with_suffix(".reply.md").write_text("Fünf.\n", encoding="utf-8")
    reply = asyncio.run(model.complete(question()))
    assert (reply.text, reply.model) == ("Fünf.\n", "a-colleague")
    assert questions_in(folder) == []


def test_a_run_that_waits_goes_on_when_the_answer_comes(folder: Path) -> None:
    def answer() -> None:
        while not questions_in(folder):
            time.sleep(0.05)
        (asked,) = questions_in(folder)
        part = asked.with_suffix(".writing")
        part.write_text("here", encoding="utf-8")
        part.replace(asked.with_suffix(".reply.md"))

    helper = threading.Thread(target=answer)
    helper.start()
    reply = asyncio.run(open_model("optimizer", role(wait_s=30)).complete(question()))
    helper.join()
    assert reply.text == "here"


def test_all_questions_of_a_round_are_written_before_the_run_stops(folder: Path) -> None:
    seen = [observation(id) for id in "abcd"]
    facts = MemoryFacts()

    def optimizer() -> LlmOptimizer:
        model = open_model("optimizer", role())
        return LlmOptimizer(lambda stage: model, facts, LlmOptions(minibatch_size=2), "toy")

    with pytest.raises(Interrupted):
        asyncio.run(optimizer().reflect(step_view(seen)))
    asked = questions_in(folder)
    assert len(asked) == 2
    for path in asked:
        said = {"edits": [append(f"- Heed point {path.stem[0]}.", "a")]}
        path.with_suffix(".reply.md").write_text(json.dumps(said), encoding="utf-8")
    answer = asyncio.run(optimizer().reflect(step_view(seen)))
    assert len(answer.value) == 2
    assert len(facts.values) == 2
    assert questions_in(folder) == []


def test_the_folder_is_the_main_repositorys_in_an_experiment_of_its_own(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DVC_ROOT", str(tmp_path / "main"))
    with pytest.raises(Interrupted):
        asyncio.run(open_model("optimizer", role()).complete(question()))
    assert len(questions_in(tmp_path / "main" / "asked")) == 1


def test_tools_and_a_folder_that_cannot_be_used_are_named(folder: Path) -> None:
    tools = Request(messages=(Message.text("user", "x"),), tools=({"name": "t"},))
    with pytest.raises(ModelConfigError, match="tools"):
        asyncio.run(open_model("target", role()).complete(tools))
    folder.write_text("a file", encoding="utf-8")
    with pytest.raises(ModelConfigError, match=r"handoff\.folder"):
        asyncio.run(open_model("optimizer", role()).complete(question()))

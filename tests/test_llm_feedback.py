"""What people and judges say of train rollouts reaches analysts, and nobody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from env_world import WHERE, env_of
from verify_project import says, write_project
from verify_world import verified

from skilltrail.core.errors import DataError
from skilltrail.data.find import NOTHING, find_source
from skilltrail.data.load import read_items
from skilltrail.models.judge import reasons_in
from tests.fault_server import Answer, Call, FaultServer
from tests.model_world import run_stages

SEEN: list[str] = []


def listens(call: Call) -> Answer:
    """Answer as the project's models do, and keep what the optimizer was asked."""
    if call.body["model"] in ("optimizer", "target"):
        SEEN.append(call.body["model"] + json.dumps(call.body["messages"]))
    return says(call)


@pytest.fixture
def server() -> Iterator[FaultServer]:
    SEEN.clear()
    with FaultServer(say=listens) as found:
        yield found


def told(role: str) -> str:
    return "\n".join(text for text in SEEN if text.startswith(role))


@pytest.mark.parametrize("shown", [True, False])
def test_the_judges_reasons_are_shown_only_where_params_say_so(
    shown: bool, server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"epochs": 1}
    write_project(tmp_path, server.url, settings, judged=True)
    text = (tmp_path / "params.yaml").read_text(encoding="utf-8")
    if shown:
        text = text.replace("threshold: 0.8\n", "threshold: 0.8\n  show_reasons: true\n")
        (tmp_path / "params.yaml").write_text(text, encoding="utf-8", newline="\n")
    run_stages(tmp_path, monkeypatch)
    assert ("the judge: as asked" in told("optimizer")) == shown
    assert "as asked" not in told("target")
    log = (tmp_path / "skills" / "events.jsonl").read_text(encoding="utf-8")
    assert ('"judge_reasons":true' in log) == shown
    assert [str(fault) for fault in verified(tmp_path).faults] == []


def test_what_people_say_of_train_items_reaches_analysts_alone(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path, server.url, {"epochs": 1})
    folder = tmp_path / "data" / "small"
    lines = (folder / "train.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[0]) | {"feedback": "Too long for my taste."}
    (folder / "train.jsonl").write_text(
        "\n".join([json.dumps(first), *lines[1:]]) + "\n", "utf-8"
    )
    said = [{"item": f"train-w{n}", "text": "Name the tree first."} for n in range(6)]
    said.append({"item": "selection-w1", "text": "NEVER SHOWN"})
    text = "".join(f"{json.dumps(one)}\n" for one in said)
    (folder / "feedback.jsonl").write_text(text, "utf-8")
    run_stages(tmp_path, monkeypatch)
    asked = told("optimizer")
    assert "feedback: a person: Name the tree first." in asked
    assert "a person: Too long for my taste." in asked
    assert "NEVER SHOWN" not in asked
    assert "taste" not in told("target")
    assert [str(fault) for fault in verified(tmp_path).faults] == []


@pytest.mark.parametrize(
    "line",
    [
        '{"item": "stranger", "text": "x"}',
        '{"item": "1"}',
        '{"text": "x"}',
        '{"item": "1", "text": 3}',
    ],
)
def test_a_line_of_feedback_that_cannot_be_used_is_named(line: str, tmp_path: Path) -> None:
    record = '{"id": "1", "question": "q", "answers": ["x"]}\n'
    for split in ("train", "selection", "test"):
        own = record.replace('"1"', f'"{split[0]}1"' if split != "train" else '"1"')
        (tmp_path / f"{split}.jsonl").write_text(own, "utf-8")
    (tmp_path / "feedback.jsonl").write_text(line + "\n", "utf-8")
    source = find_source(tmp_path, "qa", NOTHING, str(tmp_path))
    with pytest.raises(DataError, match=r"feedback\.jsonl, line 1"):
        read_items(source, env_of("qa"), tmp_path)


def test_feedback_that_is_no_text_is_named() -> None:
    from skilltrail.data.feedback import with_feedback

    item = env_of("qa").parse({"id": "1", "question": "q", "answers": ["x"]}, WHERE)
    with pytest.raises(DataError, match="feedback"):
        with_feedback(item, {"feedback": 3}, WHERE)
    assert with_feedback(item, {"feedback": " "}, WHERE) == item


def test_a_judgement_without_words_says_nothing() -> None:
    fact = {"reply": {"text": '```json\n{"score": 1}\n```', "finish": "stop", "tool_calls": [],
                      "model": "m", "usage": {}}}  # fmt: skip
    assert reasons_in(fact) == ""

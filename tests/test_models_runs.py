"""Whole runs over the wire: with a real model, through faults, against faults alone."""

from __future__ import annotations

import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skilltrail.cli.main import run
from skilltrail.models.backends.weights import EMBEDDED, PACKAGE, find_weights
from tests.fault_server import Fault, FaultServer
from tests.llama_server import llama_server
from tests.model_world import ROOT, Learner, Weather, project, results, run_stages

KEY = "lab-key-0b5d17c2"


def target(url: str, **changes: Any) -> dict[str, Any]:
    return {
        "backend": "openai",
        "api": "chat",
        "model": "m",
        "provider": "lab",
        "base_url": f"{url}/v1",
        "key_env": "LAB_KEY",
        "max_tokens": 32,
        "timeout_s": 60,
        **changes,
    }


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", KEY)


def events_of(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "skills/events.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def facts_of(folder: Path) -> int:
    """Return how many facts the store holds."""
    path = next((folder / ".skilltrail").glob("*.db"), None)
    if path is None:
        return 0
    with sqlite3.connect(path) as database:
        count: int = database.execute("SELECT COUNT(*) FROM facts").fetchone()[0]
    return count


def test_a_run_through_faults_is_the_undisturbed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    learner = Learner()
    with FaultServer(say=learner) as server:
        learner.learn(project(calm, target(server.url), items=16))
        run_stages(calm, monkeypatch)
    weather = Weather.over(server.calls)
    # A busy machine lets more calls time out than those that are never answered.
    slow = {"timeout_s": 4, "retry": {"after_timeout": 9, "attempts": 12}}
    with FaultServer(weather, learner) as server:
        project(rough, target(server.url, **slow), items=16)
        run_stages(rough, monkeypatch)
    assert weather.met == {"429", "hang", "cut"}
    assert results(rough) == results(calm)
    judged = [e["data"] for e in events_of(rough) if e["type"] == "rollouts.scored"]
    assert {row["outcome"] for data in judged for row in data["items"]} == {"scored"}
    assert any(e["type"] == "gate.judged" for e in events_of(rough))
    assert run(["verify", "--allow-absent", "anchored"]) == 0


def test_a_run_against_nothing_but_failures_stops_with_the_cause_and_keeps_nothing(
    tmp_path: Path,
) -> None:
    with FaultServer(lambda _: Fault(status=500)) as server:
        project(tmp_path, target(server.url, retry={"give_up_after": 3}))
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        stages = ["split", "train"]
        done = [
            subprocess.run(
                [sys.executable, "-m", f"stages.{stage}"],
                cwd=tmp_path, env=environ, capture_output=True, text=True, encoding="utf-8",
            )
            for stage in stages
        ]  # fmt: skip
    assert (done[0].returncode, done[0].stderr.count("error:")) == (0, 0)
    assert done[1].returncode != 0
    assert done[1].stderr.count("error:") == 1
    assert "500" in done[1].stderr
    assert "run again" in done[1].stderr
    assert facts_of(tmp_path) == 0
    assert not (tmp_path / "skills/events.jsonl").exists()
    assert not (tmp_path / "skills/best_skill.md").exists()


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    for package in (PACKAGE, "xllamacpp"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: run `make setup`")
    with llama_server(Path(find_weights(EMBEDDED).path), n_ctx=1024) as at:
        yield at


@pytest.mark.parametrize("backend", ["openai", "anthropic"])
def test_a_run_over_the_wire_with_a_real_model_is_finished_and_verified(
    backend: str, llama: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = {"model": "smollm2", "max_tokens": 6, "temperature": 0.0, "timeout_s": 300}
    if backend == "anthropic":
        real |= {"backend": "anthropic", "api": "auto", "base_url": llama}
    project(tmp_path, target(llama, **real), items=2, batch_size=2)
    run_stages(tmp_path, monkeypatch)
    events = events_of(tmp_path)
    assert events[0]["data"]["target"]["backend"] == backend
    assert events[-1]["type"] == "run.finished"
    usage = json.loads((tmp_path / ".skilltrail/usage.json").read_text("utf-8"))
    assert usage["total"]["target"]["tokens"]["input"] > 0
    assert run(["verify", "--allow-absent", "anchored"]) == 0

"""Further metrics of an environment stand in evaluations, and verify computes them again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from skilltrail.cli.main import run
from skilltrail.core.item import Item
from skilltrail.core.layout import EVALUATION, METRICS
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.scoring import metric_means, metric_rows
from skilltrail.history.log.events import make_event
from skilltrail.history.log.log import read_log
from skilltrail.history.log.recorder import Recorder
from skilltrail.method.gate import GateRule
from skilltrail.method.rollout import Rollouts
from skilltrail.runtime.evaluation import measure
from skilltrail.runtime.evaluation.named_skill import NamedSkill
from skilltrail.store.facts import FactStore
from tests.fault_server import Answer, FaultServer
from tests.model_world import project, run_stages
from tests.toy_world import SEED_SKILL, Tally, ToyEnvironment, ToyModel, items_of


class MeasuredToy(ToyEnvironment):
    """The toy environment with a metric of its own: the share of letters that are said."""

    def metrics(self, item: Item, trajectory: Trajectory) -> Mapping[str, float]:
        return {"letters": len(set(trajectory.answer)) / 26}


def test_a_mean_counts_rollouts_without_answer_as_zero_and_sums_exactly() -> None:
    item = items_of("test")[0]
    done = [(item, Trajectory((), "a" * n, ending=e)) for n, e in ((1, "answered"),) * 3]
    lost = [(item, Trajectory((), "abc", ending="refused"))]
    assert metric_means(MeasuredToy(), done) == {"letters": 1 / 26}
    assert metric_means(MeasuredToy(), done + lost) == {"letters": float(Fraction(3, 104))}
    assert metric_rows(ToyEnvironment(), done) == []


@pytest.mark.parametrize("env", [ToyEnvironment(), MeasuredToy()])
def test_an_evaluation_has_them_where_the_environment_has(
    tmp_path: Path, env: ToyEnvironment
) -> None:
    items = items_of("test")
    with FactStore.open(tmp_path) as store:
        recorder = Recorder(tmp_path / "evaluation.jsonl", after=None)
        rollouts = Rollouts(env, ToyModel(), store, Tally())
        skills = [NamedSkill("seed", SEED_SKILL)]
        asyncio.run(measure(rollouts, GateRule(), items, skills, recorder, "test"))
        recorder.finish()
        last = recorder.events[-1]
        assert ("metrics" in last.data) is isinstance(env, MeasuredToy)


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A whole small run of `searchqa` by a model that says nothing."""
    with FaultServer(say=lambda call: Answer("<answer></answer>")) as server:
        target = {"backend": "openai", "api": "chat", "model": "m", "provider": "lab",
                  "base_url": f"{server.url}/v1", "max_tokens": 32}  # fmt: skip
        skill = {"seed": "skills/seeds/textqa.md"}
        project(tmp_path, target, items=4, env="searchqa", skill=skill)
        run_stages(tmp_path, monkeypatch)
    return tmp_path


def test_a_run_shows_them_and_verify_computes_them_again(
    finished: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = finished / EVALUATION
    told = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])["data"]
    means: list[dict[str, Any]] = told["metrics"]
    # An empty answer passes SkillOpt's sub-string match: why no gate reads it.
    assert means == [
        {"name": "reference_f1", "mean": 0.0},
        {"name": "reference_sub_em", "mean": 1.0},
    ]
    assert told["mean_hard"] == 0.0
    numbers = json.loads((finished / METRICS).read_text(encoding="utf-8"))
    assert numbers["test"]["metrics"]["seed"]["reference_sub_em"] == 1.0
    page = (finished / "reports/out/index.html").read_text(encoding="utf-8")
    assert "Besides: reference_f1 0.000 → 0.000, reference_sub_em 1.000 → 1.000." in page
    assert run(["verify", "--allow-absent", "anchored"]) == 0
    last = read_log(path, continues=True)[-1]
    for tag in (last.data["interval"], "adjusted_wald/1"):  # by which nothing is run again
        rows = [{"name": "reference_f1", "mean": 0.5}]
        data = {**last.data, "metrics": rows, "interval": tag}
        forged = make_event(last.type, data, seq=last.seq, prev=last.prev)
        path.write_bytes(path.read_bytes().replace(last.line, forged.line))
        assert run(["verify"]) == 1
        assert f"facts: event {last.seq} (skill.evaluated): metrics" in capfd.readouterr().out
        path.write_bytes(path.read_bytes().replace(forged.line, last.line))
    assert run(["summary"]) == 0
    assert "test, seed: reference_f1 0.000, reference_sub_em 1.000" in capfd.readouterr().out

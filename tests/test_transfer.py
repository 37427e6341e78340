"""What a skill gains on other targets: the share that carries over, and its record."""

from __future__ import annotations

import asyncio
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrail.cli.main import run
from skilltrail.core.errors import ParamError, UsageError
from skilltrail.core.share import share_of
from skilltrail.core.stats import gain_interval, share_interval
from skilltrail.params.read import params_of
from skilltrail.runtime.evaluation.transfer import target_named
from stages.evaluate import main as evaluate
from tests.fault_server import Answer, Call, FaultServer
from tests.model_world import Learner, project, run_stages, set_params
from tests.toy_world import ToyParams

ONE, NONE = Fraction(1), Fraction(0)
gains = st.sampled_from([Fraction(n, 2) for n in range(-2, 3)])
pairs_of_gains = st.lists(st.tuples(gains, gains), min_size=1, max_size=60)


def target(url: str, model: str = "m") -> dict[str, Any]:
    return {"backend": "openai", "api": "chat", "model": model, "provider": "lab",
            "base_url": f"{url}/v1", "max_tokens": 32}  # fmt: skip


def test_a_gain_that_is_kept_whole_is_a_share_of_one() -> None:
    pairs = [(ONE, ONE)] * 12 + [(NONE, NONE)] * 4
    found = share_interval(pairs)
    assert found is not None
    assert found[0] < 1 < found[1]


def test_by_hand_half_of_the_gain_is_kept() -> None:
    home, there = [ONE] * 8, [ONE] * 4 + [NONE] * 4
    found = share_of([NONE] * 8, home, [NONE] * 8, there)
    assert found["share"] == 0.5
    # n = 10, a = 0.8, b = 0.4, with sums of squares 10 and 6 and of products 4; z^2 / n = 0.384
    # lead 0.502, middle 0.289, rest -0.009
    assert found["share_low"] == pytest.approx(-0.0153, abs=1e-3)
    assert found["share_high"] == pytest.approx(1.1686, abs=1e-3)


def test_without_a_gain_at_home_there_is_no_share() -> None:
    found = share_of([ONE] * 3, [ONE] * 3, [NONE] * 3, [ONE] * 3)
    assert (found["share"], found["share_low"], found["share_high"]) == (None, None, None)


@given(pairs_of_gains)
def test_bounds_exist_exactly_when_the_gain_at_home_is_clear_of_zero(
    pairs: list[tuple[Fraction, Fraction]],
) -> None:
    low, high = gain_interval([a for a, _ in pairs])
    assert (share_interval(pairs) is None) == (low <= 0 <= high)


@given(pairs_of_gains)
def test_the_share_lies_within_its_bounds_and_does_not_hang_on_the_order(
    pairs: list[tuple[Fraction, Fraction]],
) -> None:
    found = share_interval(pairs)
    if found is not None:
        share = sum(b for _, b in pairs) / sum(a for a, _ in pairs)
        assert found[0] <= share + 1e-12
        assert share <= found[1] + 1e-12
        assert share_interval(pairs[::-1]) == found


def test_a_target_is_read_as_strictly_as_the_role() -> None:
    for values, message in (
        ({"bckend": "local"}, r"evaluate\.targets\.x\.backend"),
        ({"backend": "vllm"}, r"evaluate\.targets\.x\.base_url"),
        ([], "expected a mapping"),
    ):
        given = {"env": "toy", "evaluate": {"targets": {"x": values}}}
        with pytest.raises(ParamError, match=message):
            params_of(given, {"toy": ToyParams})


def test_a_person_may_name_a_gguf_file_and_nothing_unknown() -> None:
    params = params_of({"env": "toy", "evaluate": {"targets": {"x": {}}}}, {"toy": ToyParams})
    assert target_named(params, "x").model == params.target.model
    assert target_named(params, "a/b.gguf").model == "a/b.gguf"
    with pytest.raises(UsageError, match=r"evaluate\.targets.*\(x\)"):
        target_named(params, "y")


def events_of(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "reports/out/evaluation.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_an_evaluation_on_another_target_is_recorded_verified_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    learner = Learner()

    def say(call: Call) -> Answer:
        """The model `weak` reads no skill."""
        if call.body["model"] == "weak":
            call.body["messages"][0]["content"] = ""
        return learner(call)

    with FaultServer(say=say) as server:
        learner.learn(project(tmp_path, target(server.url), items=16))
        run_stages(tmp_path, monkeypatch)
        path = tmp_path / "reports/out/metrics.json"
        alone = json.loads(path.read_text("utf-8"))
        others = {"same": target(server.url, "twin"), "weak": target(server.url, "weak")}
        set_params(tmp_path, target(server.url), evaluate={"targets": others})
        calls = len(server.calls)
        run_stages(tmp_path, monkeypatch)
        both = json.loads(path.read_text("utf-8"))
        assert both.pop("transfer").keys() == {"same", "weak"}
        # Seed and best on each of the others; the training target's rollouts are there.
        assert both.pop("calls") - alone.pop("calls") == len(server.calls) - calls == 4 * 16
        assert both.pop("tokens") > alone.pop("tokens")
        assert both == alone

        told = [e["data"] for e in events_of(tmp_path) if e["type"] == "skill.transferred"]
        best = {data["target"]: data for data in told if data["name"] == "best"}
        assert best["same"]["share"] == 1.0
        assert best["weak"]["share"] == 0.0
        assert best["weak"]["model"]["model"] == "weak"
        assert run(["verify", "--allow-absent", "anchored"]) == 0

        capfd.readouterr()
        asked = ["--skill", "seed", "--skill", "best", "--split", "test", "--target", "weak"]
        assert run(["evaluate", *asked, "--json"]) == 0
        rows = json.loads(capfd.readouterr().out)
        assert [(row["target"], row["skill"]) for row in rows] == [
            ("target", "seed"), ("target", "best"), ("weak", "seed"), ("weak", "best"),
        ]  # fmt: skip
        assert rows[3]["share"] == best["weak"]["share"]
        assert rows[3]["share_low"] == best["weak"]["share_low"]
        assert run(["evaluate", *asked]) == 0
        assert "share of the gain" in capfd.readouterr().out


def test_skills_and_split_of_the_evaluation_are_params(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = Learner()
    with FaultServer(say=learner) as server:
        learner.learn(project(tmp_path, target(server.url), items=4))
        run_stages(tmp_path, monkeypatch)
        (tmp_path / "mine.md").write_text("- a rule\n", encoding="utf-8", newline="\n")
        chosen = {"skills": ["best", "mine.md"], "split": "selection"}
        set_params(tmp_path, target(server.url), evaluate=chosen)
        asyncio.run(evaluate())
    opened, *rest = events_of(tmp_path)
    assert opened["data"]["split"] == "selection"
    names = [e["data"]["name"] for e in rest if e["type"] == "skill.evaluated"]
    assert names == ["best", "mine.md"]

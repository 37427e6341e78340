"""A provider that serves other weights under one name is noticed, never in the log itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_server import Call, Fault, FaultServer, answer_body
from model_world import Learner, project, results, run_stages, set_params

from skilltrail.cli.main import run
from skilltrail.core.served import Served, in_words, served_by, told_apart
from skilltrail.history.ask.served import drift
from skilltrail.store.facts import FactStore
from skilltrail.store.ops import read_ops

LEARNER = Learner()
Told = Callable[[int], dict[str, Any]]


def server(told: Told) -> FaultServer:
    """A server whose replies say `told(n)` besides, n the number of the call."""

    def spoil(call: Call) -> Fault:
        return Fault(status=200, body=answer_body(call, LEARNER(call)) | told(call.number))

    return FaultServer(spoil)


def target(one: FaultServer) -> dict[str, Any]:
    return {"backend": "openai", "api": "chat", "model": "m", "provider": "lab",
            "base_url": f"{one.url}/v1", "max_tokens": 32}  # fmt: skip


def trained(folder: Path, patch: pytest.MonkeyPatch, told: Told) -> dict[str, bytes]:
    """Run all stages against a server and return what they decide."""
    with server(told) as one:
        LEARNER.learn(project(folder, target(one), items=4))
        run_stages(folder, patch)
    return results(folder)


def plain(number: int) -> dict[str, Any]:
    return {}


def steady(number: int) -> dict[str, Any]:
    return {"model": "m-05", "system_fingerprint": "fp_a"}


def changing(number: int) -> dict[str, Any]:
    return {"model": "m-05", "system_fingerprint": "fp_a" if number < 9 else "fp_b"}


def routed(number: int) -> dict[str, Any]:
    host = {"provider": "Alpha" if number < 9 else "Beta"}
    return {"model": "m-05", **host} | ({"system_fingerprint": "fp_a"} if number < 9 else {})


def test_what_serves_a_reply_is_recorded_and_never_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {}
    for told in (plain, steady, changing, routed):
        folder = tmp_path / told.__name__
        folder.mkdir()
        made[told.__name__] = trained(folder, monkeypatch, told)
    assert made["plain"] == made["steady"] == made["changing"] == made["routed"]
    for name, expected in (
        ("plain", {Served("m")}),
        ("steady", {Served("m-05", "fp_a")}),
        ("changing", {Served("m-05", "fp_a"), Served("m-05", "fp_b")}),
        ("routed", {Served("m-05", "Alpha fp_a"), Served("m-05", "Beta")}),
    ):
        with FactStore.open(tmp_path / name) as store:
            keys = [key for (key,) in store.query("SELECT key FROM facts")]
            facts = store.get_many(keys).values()
        assert {one for fact in facts for one in served_by(fact)} == expected
        assert any("served" in fact for fact in facts) == (name != "plain")


def test_a_change_within_a_run_is_said_by_run_report_and_verify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DVC_ROOT", raising=False)
    trained(tmp_path, monkeypatch, changing)
    told = "replies of the target are of several models: m-05 (fp_"
    assert told in capfd.readouterr().err
    kinds = [record["type"] for record in read_ops(tmp_path / ".skilltrail/ops.jsonl")]
    assert "model.drifted" in kinds
    assert told in (tmp_path / "reports/out/index.html").read_text(encoding="utf-8")
    assert run(["verify", "--json"]) in (0, 3)
    found = json.loads(capfd.readouterr().out)
    assert found["faults"] == []
    rows = [row for level in found["levels"] for row in level["rules"]]
    assert [told in row["note"] for row in rows if row["rule"] == "models"] == [True]


def test_a_change_between_reused_and_new_facts_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    trained(tmp_path, monkeypatch, steady)
    assert "several models" not in capfd.readouterr().err
    assert "several models" not in (tmp_path / "reports/out/index.html").read_text("utf-8")
    with server(lambda number: {"model": "m-11"}) as one:
        set_params(tmp_path, target(one), lr=1)
        run_stages(tmp_path, monkeypatch)
        assert one.calls
    err = capfd.readouterr().err
    assert "several models" in err
    assert "new here: m-11" in err


def test_a_reply_without_a_fingerprint_tells_of_no_other_model() -> None:
    some, other = Served("m", "fp_a"), Served("m", "fp_b")
    assert told_apart([some, Served("m"), some]) == {some: 3}
    assert told_apart([Served("m"), Served("m")]) == {Served("m"): 2}
    assert told_apart([some, other, other, Served("m"), Served("n")]) == {
        some: 1, other: 3, Served("n"): 1,
    }  # fmt: skip
    assert drift({"target": told_apart([some, Served("m")])}) == []
    assert "m (fp_a) (2×)" in in_words([some, Served("m")])


def test_runs_on_other_weights_are_not_pooled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DVC_ROOT", raising=False)
    trained(tmp_path, monkeypatch, steady)
    assert run(["compare", "--group-by", "lr", "--json"]) == 0
    setting = json.loads(capfd.readouterr().out)["setting"]
    assert setting["target.served"] == "m-05 (fp_a)"
    with server(lambda number: {"model": "m-11"}) as one:
        set_params(tmp_path, target(one), lr=1, epochs=2)
        run_stages(tmp_path, monkeypatch)
    capfd.readouterr()
    assert run(["compare", "--group-by", "lr"]) == 2
    err = " ".join(capfd.readouterr().err.split())
    assert "target.served is" in err
    assert "m-05 (fp_a) + m-11 (1 runs)" in err
    chosen = ["--where", "target.served=m-05 (fp_a)"]
    assert run(["compare", "--group-by", "lr", *chosen]) == 0


def test_the_report_names_the_judge_and_the_optimizer_too() -> None:
    call = {"reply": {"model": "j", "text": ""}, "rejected": {"model": "k", "text": ""}}
    assert served_by(call) == [Served("j"), Served("k")]
    assert served_by({"reply": {"model": "", "text": ""}}) == []
    assert served_by({"reason": "a gap"}) == []

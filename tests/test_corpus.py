"""Logs of every released event version still verify, replay and show.

What each is: `corpus/README.md`. A commit's hash covers its event and all before it, the
documents and the sentence that was shown, so the last commit's hash holds all of a log.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skilltrail.cli.main import run
from skilltrail.core.canon import text_digest
from skilltrail.core.layout import EVALUATION, EVENTS, METRICS, PAGE
from skilltrail.history.git.commits import commits_of
from skilltrail.history.log.run_log import RunLog
from skilltrail.report.build import build
from skilltrail.verify.log import LogReport, verify_log

CORPUS = Path(__file__).parent / "corpus"
# name -> the last commit's hash, and the tags of decisions that are no longer recomputed
LOGS: dict[str, tuple[str, list[str]]] = {
    "1-autonomous": ("ed8330cd7b6f20eb80de468fdd73f8a1e4b625bc", []),
    "1-best-by-score": ("bb506cee83c1d63fc2fd3cb16c5a0eb052b7447e", ["best_by_score/1"]),
    "1-documents": ("dabbaa239dbfc0bb357ab6a181b421207043ab83", []),
    "1-forced": ("6ecb7f559a852f0016d04dcae89804f92a41c6f6", []),
    "1-notes": ("98cdf9482c92976ae334ac3abebced7b5d7c5bc9", []),
    "1-paired": ("db57ff9beeb1ce609686e0399c8d9943bd6e455c", []),
    "1-suggestions": ("822fce594c66b03a7ee7272877bd975c78960d1a", []),
    "1-transfer": ("b96de991312c4d3b5bb6b4812f4657608f3bc047", []),
    "2-judged": ("9418cabf0f83d918a9d421f0d827607cb447bcb0", []),
    "3-missing": ("e32a90dfc96cbcf533921220228baa069e441d8a", ["means_of_all_scored/1"]),
    "3-named-metrics": ("d99f61489a956d1c71812b30be0299ca5e88dd9f", []),
    "4-shorter-is-best": ("4ff3df07ab3c871a27032db92f018719bd8c8a7b", []),
    "5-asked": ("6c20bb3daf492593c6bad94784ed773e7ec44e14", []),
    "6-erased": ("65a6987a5f8d978cdf5ec908c685dfff7ae7fe4f", []),
    "7-frontmatter": ("2b9002b5ced465cd58f96f7ca7f90499a4195a27", []),
    "7-no-regression": ("e2634503ee10bc1af85a97855022fcba0576d990", []),
    "7-repeats": ("e90bbbe2282fe2bc9f0e3de2e2c302988fabbda5", []),
    "8-rejected-before": ("fceb279030265e9f24e74eae2c5b2bbc5d61e875", []),
    "9-skill-folder": ("74c31d48a1c49bfa2051713f5b22b57b2efc4679", []),
    "10-phase": ("145482a22609519296acd184e8664bcd347a20ff", []),
    "11-pareto": ("9f63e314f49aa7c0fa01baa1fd3cb7042d0a02c6", []),
    "11-targets": ("f2e17546be6c3f106c00275d5ab96ff617589fb5", []),
    "12-breeding": ("904c803eebc5e071b58a12052b106eecedfc6cc3", []),
    "12-soft-scores": ("1d790028ba5977a9f0636281a5862b0d744c06dd", []),
    "13-references": ("c0e83bcff0726406404dafc8549ace7f275a82e4", []),
}


def verified(name: str) -> list[LogReport]:
    """Return what verification says of a log, and of the evaluation that goes on from it."""
    path = CORPUS / f"{name}.jsonl"
    training = verify_log(path.read_bytes(), path.name)
    more = CORPUS / f"{name}.evaluation.jsonl"
    if not more.exists():
        return [training]
    return [training, verify_log(more.read_bytes(), more.name, after=training)]


@pytest.fixture(params=LOGS)
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def here(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace whose last run is that log, with its report."""
    (tmp_path / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8", newline="\n")
    for path, file in ((EVENTS, f"{name}.jsonl"), (EVALUATION, f"{name}.evaluation.jsonl")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        data = (CORPUS / file).read_bytes() if (CORPUS / file).exists() else b""
        (tmp_path / path).write_bytes(data)
    build(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    return tmp_path


def test_the_corpus_is_listed() -> None:
    logs = {path.name.split(".")[0] for path in CORPUS.glob("*.jsonl")}
    assert logs == set(LOGS)


def test_every_log_verifies_and_all_of_it_is_recomputed(name: str) -> None:
    reports = verified(name)
    assert [fault for report in reports for fault in report.faults] == []
    assert [tag for report in reports for tag in report.tags.unknown] == LOGS[name][1]
    assert all(sum(report.decisions.values()) for report in reports)


def test_every_log_gives_the_commits_that_it_gave_then(name: str) -> None:
    events = [event for report in verified(name) for event in report.events]
    *_, last = commits_of(events)
    assert last.sha == LOGS[name][0]


def test_every_version_is_rebuilt(name: str) -> None:
    events = verified(name)[0].events
    versions = RunLog(events).versions
    assert [version.number for version in versions] == list(range(len(versions)))
    assert all(text_digest(version.text) == version.digest for version in versions)
    best = next(event for event in events if event.type == "run.finished").data["best"]
    assert versions[best["version"]].digest == best["digest"]


def told(capfd: pytest.CaptureFixture[str], *args: str) -> str:
    assert run(list(args)) == 0
    return capfd.readouterr().out


def test_every_log_is_shown(here: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    reports = verified(name)
    rows = told(capfd, "log").splitlines()
    assert len(rows) == len(reports[0].events)
    versions = RunLog(reports[0].events).versions
    steps = sum(event.type == "step.ended" for event in reports[0].events)
    summary = json.loads(told(capfd, "log", "--summary", "--json"))
    assert sum(row["steps"] for row in summary) == steps
    for number in range(len(versions)):
        assert f"Why version {number} " in told(capfd, "audit", "--version", str(number))
    best = told(capfd, "replay", "--version", "best")
    assert best in [version.text for version in versions]
    blamed = json.loads(told(capfd, "blame", "--json"))
    assert [row["text"] for row in blamed] == best.splitlines()


def test_every_log_has_its_report(here: Path, name: str) -> None:
    numbers = json.loads((here / METRICS).read_text(encoding="utf-8"))
    assert ("test" in numbers) == (len(verified(name)) > 1)
    page = (here / PAGE).read_text(encoding="utf-8")
    versions = RunLog(verified(name)[0].events).versions
    assert all(version.digest[:12] in page for version in versions)

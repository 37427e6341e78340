"""`skilltrail summary` tells of one run: never scores of one beside calls of another."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from skilltrail.cli.main import run
from skilltrail.core.layout import BEST_SKILL, EVALUATION, EVENTS, METRICS
from stages.train import main as train
from tests.fault_server import Answer, FaultServer
from tests.model_world import project, run_stages, set_params
from tests.test_history_commits import git

PAGE = Path("reports/out/index.html")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose reference run was made right there."""
    folder = tmp_path_factory.mktemp("finished")
    with (
        FaultServer(say=lambda call: Answer("<answer></answer>")) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        project(folder, target(server.url), items=4)
        run_stages(folder, patch)
    git(folder, "init", "-q", "-b", "main")
    (folder / "reports/out/.gitignore").write_text("*\n!metrics.json\n!curve.tsv\n", "utf-8")
    (folder / ".gitignore").write_text(".skilltrail\ndata/rollouts\ndata/splits\n", "utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "Reference")
    return folder


@pytest.fixture
def here(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, to work in."""
    folder = tmp_path / "here"
    shutil.copytree(finished, folder)
    monkeypatch.chdir(folder)
    return folder


def target(url: str) -> dict[str, Any]:
    return {
        "backend": "openai", "api": "chat", "model": "m", "provider": "lab",
        "base_url": f"{url}/v1", "max_tokens": 32,
    }  # fmt: skip


def train_otherwise(folder: Path) -> None:
    """Train with fewer items, as `python -m stages.train` does."""
    with FaultServer(say=lambda call: Answer("<answer></answer>")) as server:
        set_params(folder, target(server.url), batch_size=2)
        asyncio.run(train())


def told(capfd: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run(["summary", "--json"]) == 0
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def refused(capfd: pytest.CaptureFixture[str]) -> str:
    capfd.readouterr()
    assert run(["summary"]) != 0
    return " ".join(capfd.readouterr().err.split())


def test_a_run_made_here_is_told_with_its_calls_and_compared(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = told(capfd)
    assert (found["made_here"], found["reproduced"]) == (True, True)
    assert found["calls"]["made"] > 0
    assert run(["summary"]) == 0
    out = capfd.readouterr().out
    assert "bit for bit" in out
    assert "calls made:" in out
    assert f"look at {PAGE.as_posix()}, {BEST_SKILL.as_posix()}, `skilltrail log`" in out


def test_a_fresh_clone_claims_no_run_and_names_no_absent_page(
    here: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    git(here, "clone", "-q", str(here), str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    found = told(capfd)
    assert (found["made_here"], found["reproduced"]) == (False, None)
    assert (found["calls"], found["wall_s"]) == (None, None)
    assert run(["summary"]) == 0
    out = capfd.readouterr().out
    assert "no run was made here" in out
    assert "bit for bit" not in out
    assert "calls made" not in out
    assert "index.html" not in out


def test_scores_of_another_run_than_the_one_just_trained_are_refused(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    train_otherwise(here)
    assert EVALUATION.as_posix() in (err := refused(capfd))
    assert "dvc repro" in err


def test_scores_that_the_logs_do_not_give_are_refused(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    scores = json.loads((here / METRICS).read_text("utf-8"))
    for name, value in (("steps", 7), ("test", {})):
        (here / METRICS).write_text(json.dumps(scores | {name: value}), "utf-8")
        err = refused(capfd)
        assert f"is of another run than skills/events.jsonl: {name} differ" in err
        assert "dvc repro" in err


def test_restored_files_are_not_told_with_the_calls_of_the_run_they_replaced(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    train_otherwise(here)
    git(here, "restore", ".")
    capfd.readouterr()
    found = told(capfd)
    assert (found["calls"], found["wall_s"], found["reproduced"]) == (None, None, None)
    assert "of another run" in found["reproduction"]


def test_a_run_that_is_stopped_leaves_no_calls_to_a_restored_one(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = here / ".skilltrail/usage.json"
    usage = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(usage | {"run": None}), "utf-8")
    assert told(capfd)["calls"] is None


@pytest.mark.parametrize("missing", [EVENTS, METRICS])
def test_the_file_that_is_missing_is_named(
    here: Path, missing: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / missing).unlink()
    assert f"no {missing.as_posix()}" in refused(capfd)


@pytest.mark.parametrize(
    "data", [b"", b"[" * 3000, b"\xff\xfe\x00", b'{"selection": {"best', b"[]", b"null"]
)
def test_damaged_scores_are_named_and_never_a_traceback(
    here: Path, data: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / METRICS).write_bytes(data)
    err = refused(capfd)
    assert f"{METRICS.as_posix()} is damaged" in err
    assert "git restore" in err
    assert "Traceback" not in err


def test_an_empty_log_is_named(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / EVENTS).write_bytes(b"")
    assert f"{EVENTS.as_posix()} is empty" in refused(capfd)
    assert run(["log"]) == 0
    assert "the log is empty" in capfd.readouterr().err


def test_the_run_that_is_shown_is_named(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["summary"]) == 0
    assert "this run has no name here: `skilltrail rebuild`" in capfd.readouterr().out
    assert run(["rebuild"]) == 0
    git(here, "switch", "-q", "-c", "other")
    capfd.readouterr()
    assert run(["summary"]) == 0
    assert "this is run main\n" in capfd.readouterr().out
    git(here, "update-ref", "refs/evolution/other", "refs/evolution/main")
    assert run(["summary", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["name"] == "other"

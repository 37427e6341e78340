"""A workspace's own environments in `envs/`: found, checked, stopped and named when broken."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from subprocess import CompletedProcess, run

import pytest

from skilltrail.cli.scaffold import new_environment
from skilltrail.core.errors import DataError, UsageError
from skilltrail.core.trajectory import Trajectory
from skilltrail.data.find import NOTHING, find_source
from skilltrail.data.load import read_items
from skilltrail.envs.protocol import Where
from skilltrail.envs.registry import (
    environment_class,
    environment_folders,
    environment_names,
    is_foreign,
)
from skilltrail.envs.scoring import by_rule, metric_means
from skilltrail.runtime.code_identity import own_code
from tests.env_world import ROOT
from tests.fault_server import Answer, FaultServer

RECORD = {"id": "1", "question": "What is 6 plus 7?", "answers": ["13"]}
SCORE = "        hard = exact_match("  # the first line of the template's scorer


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of an installed library with its own `sums`; the working folder."""
    for name in ("stages", "data/none"):
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=skip)
    for name in ("params.yaml", "dvc.yaml"):
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    new_environment(tmp_path, "sums")
    return tmp_path


def edit(workspace: Path, old: str, new: str, file: str = "env.py") -> None:
    path = workspace / "envs/sums" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def score_first(workspace: Path, *lines: str) -> None:
    """Put lines at the start of the environment's scorer."""
    edit(workspace, SCORE, "".join(f"        {line}\n" for line in lines) + SCORE)


def typed(workspace: Path, *words: str) -> CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if k != "DVC_ROOT"}
    return run(
        [sys.executable, "-m", *words],
        cwd=workspace,
        env={**inherited, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def said(done: CompletedProcess[str]) -> str:
    return done.stdout + done.stderr


def test_new_env_writes_to_the_workspace_and_the_library_finds_it_there(
    workspace: Path,
) -> None:
    assert (workspace / "envs/sums/env.py").is_file()
    assert not (ROOT / "skilltrail/envs/sums").exists()
    assert environment_folders()["sums"] == workspace / "envs/sums"
    assert {"textqa", "qa"} < set(environment_names())
    made = environment_class("sums")
    assert made.__module__ == "skilltrail.envs.sums.env"
    assert is_foreign(made)
    assert not is_foreign(environment_class("qa"))


def test_doctor_passes_a_new_environment_of_a_workspace(workspace: Path) -> None:
    done = typed(workspace, "skilltrail", "doctor", "--env", "sums")
    assert done.returncode == 0, said(done)
    assert "envs/sums/README.md" in said(done)
    assert "golds of 3 score 1, doing nothing scores 0" in said(done)


def test_modules_beside_env_are_imported_either_way(workspace: Path) -> None:
    (workspace / "envs/sums/more.py").write_text("WORD = 'correct'\n", encoding="utf-8")
    (workspace / "envs/sums/__init__.py").unlink()
    whole = "from skilltrail.envs.sums.more import WORD as SAME\n"
    edit(workspace, "_HERE = ", f"from .more import WORD\n{whole}_HERE = ")
    edit(workspace, '"correct")', "WORD)")
    env = environment_class("sums")()
    item = env.parse(RECORD, Where("a.jsonl", 1))
    assert by_rule(env, item, Trajectory((), "13")).reason == "correct"


def test_two_workspaces_may_have_environments_of_one_name(
    workspace: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert environment_class("sums").version.startswith("sums/1")
    other = tmp_path_factory.mktemp("other")
    (other / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    monkeypatch.chdir(other)
    new_environment(other, "sums")
    edit(other, '"sums/1"', '"sums/7"')
    assert environment_class("sums").version.startswith("sums/7")


@pytest.mark.parametrize("name", ["textqa", "qa"])
def test_a_name_of_the_library_is_refused(workspace: Path, name: str) -> None:
    with pytest.raises(UsageError, match="there is one so called"):
        new_environment(workspace, name)
    shutil.copytree(workspace / "envs/sums", workspace / "envs" / name)
    with pytest.raises(UsageError, match=f"envs/{name}.*a name of the library"):
        environment_names()


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("_HERE = ", "import nowhere_at_all\n_HERE = ", "No module named 'nowhere_at_all'"),
        ("_HERE = ", "_HERE = = ", "line 2"),
        ("_HERE = ", "1 / 0\n_HERE = ", "ZeroDivisionError"),
        ("ENVIRONMENT = ", "OTHER = ", "ENVIRONMENT"),
        ("    def score(", "    def scored(", "score"),
    ],
)
def test_a_broken_module_is_one_message_with_its_place(
    workspace: Path, old: str, new: str, found: str
) -> None:
    edit(workspace, old, new)
    text = (workspace / "params.yaml").read_text("utf-8").replace("env: textqa ", "env: sums ")
    (workspace / "params.yaml").write_text(text, encoding="utf-8")
    done = typed(workspace, "stages.split")
    assert done.returncode == 2, said(done)
    assert found in done.stderr
    assert "Traceback" not in done.stderr
    assert "the environment sums" in done.stderr


def test_a_run_is_named_by_the_code_of_the_workspace_too(workspace: Path) -> None:
    first = own_code()
    (workspace / "envs/sums/README.md").write_text("other", encoding="utf-8")
    assert own_code() == first
    edit(workspace, "Answer:", "Reply:", "prompts/completion.md")
    assert own_code() != first
    shutil.rmtree(workspace / "envs/sums")
    assert own_code() == {}


def test_a_scorer_of_a_workspace_that_hangs_is_stopped(workspace: Path) -> None:
    score_first(workspace, "while trajectory.answer == 'hang':", "    pass")
    env = environment_class("sums")()
    item = env.parse(RECORD, Where("a.jsonl", 1))
    with pytest.raises(DataError, match="item '1' cannot be scored: invalid"):
        by_rule(env, item, Trajectory((), "hang"))
    assert by_rule(env, item, Trajectory((), "13")).hard == 1.0


def test_what_a_scorer_prints_or_returns_amiss_harms_nothing(workspace: Path) -> None:
    score_first(workspace, "print('noise')", "if trajectory.answer == 'x':", "    return 0.5")
    metrics = "    def metrics(self, item, trajectory):\n        return {'n': 0.25}\n\n"
    edit(workspace, "    def example(", f"{metrics}    def example(")
    env = environment_class("sums")()
    item = env.parse(RECORD, Where("a.jsonl", 1))
    assert by_rule(env, item, Trajectory((), "13")).hard == 1.0
    assert metric_means(env, [(item, Trajectory((), "13"))]) == {"n": 0.25}
    with pytest.raises(DataError, match="expected a Score, found float"):
        by_rule(env, item, Trajectory((), "x"))


def test_a_scorer_that_ends_the_program_is_told_as_one_that_raises(workspace: Path) -> None:
    score_first(workspace, "if trajectory.answer == 'x':", "    raise SystemExit(0)")
    env = environment_class("sums")()
    item = env.parse(RECORD, Where("a.jsonl", 1))
    with pytest.raises(DataError, match=r"item '1' .* SystemExit: 0 \(sums/env.py, line "):
        by_rule(env, item, Trajectory((), "x"))
    assert by_rule(env, item, Trajectory((), "13")).hard == 1.0


def test_a_scorer_that_raises_in_training_names_item_file_and_line(workspace: Path) -> None:
    score_first(
        workspace, "if trajectory.answer == 'boom':", "    raise LookupError('no unit')"
    )
    with FaultServer(say=lambda call: Answer("<answer>boom</answer>")) as server:
        path = workspace / "params.yaml"
        text = path.read_text("utf-8").replace("env: textqa ", "env: sums ")
        target = {"backend": "openai", "api": "chat", "model": "m", "provider": "lab",
                  "base_url": f"{server.url}/v1"}  # fmt: skip
        start, end = text.index("\ntarget:"), text.index("\noptimizer:")
        path.write_text(f"{text[:start]}\ntarget: {json.dumps(target)}\n{text[end:]}", "utf-8")
        split = typed(workspace, "stages.split")
        assert split.returncode == 0, said(split)
        done = typed(workspace, "stages.train")
    assert done.returncode == 2, said(done)
    assert "LookupError: no unit (sums/env.py, line " in done.stderr
    assert "(data/splits/selection.jsonl, line " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("reason", ["off", "silent", "by_hand"])
def test_doctor_finds_reasons_that_rules_does_not_know(workspace: Path, reason: str) -> None:
    if reason == "by_hand":  # which no answer of the check brings about
        rare = "    return Score.scored(0.0, reason='by_hand')"
        score_first(workspace, "if trajectory.answer == 'rare':", rare)
    old = {"off": '"wrong" if trajectory', "silent": 'else "empty")'}.get(reason, SCORE)
    edit(workspace, old, old.replace("wrong", reason).replace("empty", reason))
    done = typed(workspace, "skilltrail", "doctor", "--env", "sums")
    assert done.returncode == 1, said(done)
    assert f"rules.yaml does not know the reasons '{reason}'" in said(done)


def test_an_environment_that_declares_nothing_is_not_checked_and_that_is_told(
    workspace: Path,
) -> None:
    edit(workspace, "    scored_by: ClassVar[ScoredBy] = ScoredBy.ANSWER\n", "")
    done = typed(workspace, "skilltrail", "doctor", "--env", "sums")
    assert done.returncode == 0, said(done)
    assert "scored" in said(done)
    assert "by a function of its author" in said(done)
    source = find_source(workspace, "sums", NOTHING, NOTHING)
    reading = read_items(source, environment_class("sums")(), workspace)
    assert sum(reading.unchecked.values()) == len(reading.items)

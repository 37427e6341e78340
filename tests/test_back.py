"""`skilltrail back`: one step takes all back to the run of HEAD, with real git and DVC."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from skilltrail.cli.main import run
from skilltrail.params.edit import set_params

STAGE = """
import pathlib, sys
lr = pathlib.Path("params.yaml").read_text().split("lr: ")[1].split()[0]
for name in sys.argv[1:]:
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{name} of {lr}\\n")
"""
CACHED = ("data/rollouts/train/0.jsonl", "reports/out/index.html")
IN_GIT = ("skills/events.jsonl", "skills/best_skill.md", "reports/out/metrics.json")
PIPELINE = f"""
stages:
  train:
    cmd: {sys.executable} stage.py {" ".join((*CACHED, *IN_GIT))}
    deps: [stage.py]
    params: [lr]
    outs:
      - data/rollouts/train: {{persist: true}}
      - reports/out/index.html
      - skills/events.jsonl: {{cache: false, persist: true}}
      - skills/best_skill.md: {{cache: false, persist: true}}
    metrics:
      - reports/out/metrics.json: {{cache: false}}
"""


def typed(folder: Path, *words: str) -> str:
    kept = {n: v for n, v in os.environ.items() if not n.startswith("DVC_")}
    done = subprocess.run(words, cwd=folder, env=kept, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def dvc(folder: Path, *words: str) -> str:
    return typed(folder, sys.executable, "-m", "dvc", *words)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committed run in a subfolder of a repository, with a change that nobody committed."""
    top = tmp_path_factory.mktemp("back") / "repository"
    folder = top / "my work"
    folder.mkdir(parents=True)
    ignored = "/data\n/reports/out/index.html\n/.skilltrail\n/back\n"
    texts = {"stage.py": STAGE, "dvc.yaml": PIPELINE, "params.yaml": "lr: 4\n"}
    for name, text in {**texts, ".gitignore": ignored, "notes.md": "one\n"}.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    typed(top, "git", "init", "-q", "-b", "main")
    dvc(folder, "init", "-q", "--subdir")
    dvc(folder, "config", "core.analytics", "false")
    dvc(folder, "repro", "-q")
    typed(top, "git", "add", ".")
    typed(top, "git", "commit", "-q", "-m", "a run")
    (folder / "notes.md").write_text("mine\n", encoding="utf-8", newline="\n")
    return folder


@pytest.fixture
def here(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(base.parent, tmp_path / "repository", symlinks=True)
    folder = tmp_path / "repository" / base.name
    monkeypatch.chdir(folder)
    return folder


def outputs(folder: Path) -> dict[str, str | None]:
    names = ("params.yaml", "dvc.lock", "notes.md", *CACHED, *IN_GIT)
    paths = {name: folder / name for name in names}
    return {name: p.read_text("utf-8") if p.exists() else None for name, p in paths.items()}


def test_after_an_experiment_everything_is_as_the_run_of_head_left_it(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before, status = outputs(here), typed(here, "git", "status", "--porcelain")
    dvc(here, "exp", "run", "-q", "-n", "calm-lynx", "-S", "lr=8")
    after = outputs(here)
    assert all(after[name] != before[name] for name in (*CACHED, *IN_GIT, "params.yaml"))
    capfd.readouterr()
    assert run(["back"]) == 0
    said = capfd.readouterr().out
    assert outputs(here) == before
    assert typed(here, "git", "status", "--porcelain") == status
    assert dvc(here, "status") == "Data and pipelines are up to date."
    assert "`dvc exp apply calm-lynx` brings it here again" in said
    assert not (here / ".skilltrail/kept").exists()
    dvc(here, "exp", "apply", "calm-lynx")
    assert outputs(here) == after
    assert run(["back"]) == 0
    assert outputs(here) == before


def test_what_no_commit_holds_is_kept_first(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = outputs(here)
    set_params(here / "params.yaml", {"lr": 16})
    dvc(here, "repro", "-q")
    (here / "skills/best_skill.md").write_text("by hand\n", encoding="utf-8", newline="\n")
    (here / "reports/out/index.html").unlink()
    capfd.readouterr()
    assert run(["back"]) == 0
    said = capfd.readouterr().out
    assert outputs(here) == before
    (kept,) = (here / ".skilltrail/kept").iterdir()
    assert kept.relative_to(here).as_posix() in said
    assert (kept / "skills/best_skill.md").read_text("utf-8") == "by hand\n"
    assert (kept / "params.yaml").read_text("utf-8") == "lr: 16\n"


def test_where_nothing_changed_nothing_is_done(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = outputs(here)
    assert run(["back"]) == 0
    assert outputs(here) == before
    assert not (here / ".skilltrail").exists()


def test_results_that_are_in_no_cache_are_said_and_the_rest_is_back(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = outputs(here)
    dvc(here, "exp", "run", "-q", "-S", "lr=8")
    shutil.rmtree(here / ".dvc/cache")
    capfd.readouterr()
    assert run(["back"]) == 0
    assert "not in the cache: data/rollouts/train, reports" in capfd.readouterr().out
    after = outputs(here)
    assert {name: after[name] for name in IN_GIT} == {name: before[name] for name in IN_GIT}
    dvc(here, "repro", "-q")
    assert outputs(here) == before


def test_outside_of_git_there_is_no_way_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(["back"]) == 2
    typed(tmp_path, "git", "init", "-q")
    assert run(["back"]) == 2
    assert capfd.readouterr().err.count("no commit is here to go back to") == 2

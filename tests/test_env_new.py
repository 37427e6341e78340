"""A new environment and the tutorial: the newcomer's path, run as it stands."""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess, run

import pytest
from env_world import ROOT

from skilltrail.cli.scaffold import new_environment
from skilltrail.core.errors import UsageError
from skilltrail.models.backends.weights import PACKAGE

TUTORIAL = ROOT / "docs" / "tutorials" / "own-benchmark.md"
_BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
needs_weights = pytest.mark.skipif(
    find_spec(PACKAGE) is None, reason=f"the embedded model is not installed ({PACKAGE})"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a copy of what a clone holds that the path needs."""
    for name in ("stages", "skilltrail", "schemas", "skills/seeds", "data/qa", "data/none"):
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=skip)
    for name in ("params.yaml", "dvc.yaml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def python(project: Path, *words: str) -> CompletedProcess[str]:
    """Run `python` with these words in the copy, which is then what is imported."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("DVC_ROOT", "PYTHONPATH")}
    paths = [str(project), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return run(
        [sys.executable, *words],
        cwd=project,
        env={**inherited, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def typed(project: Path, command: str) -> CompletedProcess[str]:
    """Run one line of the tutorial's console."""
    program, *words = command.split()
    module = {"skilltrail": ["-m", "skilltrail"], "python": []}[program]
    return python(project, *module, *words)


def set_params(project: Path, lines: str) -> None:
    """Set dotted keys in the copy's params.yaml, as a person would."""
    path = project / "params.yaml"
    text = path.read_text(encoding="utf-8")
    for line in lines.splitlines():
        key, _, value = line.partition(": ")
        section, _, name = key.rpartition(".")
        start = text.index(f"\n{section}:") if section else 0
        indent = "  " if section else ""
        pattern = re.compile(rf"^{indent}{name}: \S+", re.MULTILINE)
        found = pattern.search(text, start)
        assert found is not None
        text = f"{text[: found.start()]}{indent}{name}: {value}{text[found.end() :]}"
    path.write_text(text, encoding="utf-8", newline="\n")


@needs_weights
def test_the_tutorial_works_as_it_stands(project: Path) -> None:
    ran = 0
    for kind, name, text in _BLOCK.findall(TUTORIAL.read_text(encoding="utf-8")):
        if kind == "yaml":
            set_params(project, text + "epochs: 1\nbatch_size: 4")
        elif kind == "console":
            for command in text.splitlines():
                done = typed(project, command.removeprefix("$ "))
                assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
                ran += 1
        else:
            path = project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    assert ran >= 6
    assert (project / "skills" / "best_skill.md").read_text(encoding="utf-8").strip()


TRAINING = """
import asyncio, sys
from pathlib import Path
from skilltrail.params.read import load_params
from skilltrail.data.splits import read_split
from skilltrail.envs.contract.fakes import FakeModel
from skilltrail.envs.registry import ParamClasses
from skilltrail.history.log.recorder import Recorder
from skilltrail.method.loop import train
from skilltrail.models.protocol import Reply
from skilltrail.optimizers.rules.optimizer import RulesOptimizer
from skilltrail.method.rollout import Rollouts
from skilltrail.method.run import Run
from null_store import NullStore
from skilltrail.runtime.workspace import environment_of

class Counter:
    def count(self, trajectory, *, reused): pass

root = Path.cwd()
params = load_params(root / "params.yaml", ParamClasses())
env = environment_of(params)
model = FakeModel(answer=lambda turn: Reply("13"))
recorder = Recorder(root / "events.jsonl")
run = Run(
    params=params, train=tuple(read_split(root, "train")),
    selection=tuple(read_split(root, "selection")), seed_skill="# Sums\\n",
    rollouts=Rollouts(env, model, NullStore(), Counter()),
    optimizer=RulesOptimizer(env), history=recorder,
)
state = asyncio.run(train(run))
recorder.finish()
print(len(recorder.events), len(model.requests))
"""


def test_a_new_environment_is_sound_and_trains_an_epoch_with_a_fake_model(
    project: Path,
) -> None:
    assert python(project, "-m", "skilltrail", "new-env", "sums").returncode == 0
    check = python(project, "-m", "skilltrail", "doctor", "--env", "sums")
    assert check.returncode == 0, check.stderr
    set_params(project, "env: sums\nepochs: 1\nbatch_size: 3")
    split = python(project, "-m", "stages.split")
    assert split.returncode == 0, split.stderr
    done = python(project, "-c", TRAINING)
    assert done.returncode == 0, done.stderr
    n_events, n_calls = map(int, done.stdout.split())
    assert n_events > 5
    assert n_calls >= 12


def test_new_env_writes_nothing_over(tmp_path: Path) -> None:
    seed = tmp_path / "skills" / "seeds" / "sums.md"
    seed.parent.mkdir(parents=True)
    seed.write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="exists already"):
        new_environment(tmp_path, "sums")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [seed]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../x",
        "A",
        "con",
        "none",
        "class",
        "_x",
        "9x",
        "a b",
        "x" * 300,
        "\U0001f9ea",
        "a.b",
    ],
)
def test_a_name_that_cannot_be_a_folder_everywhere_is_refused(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(UsageError):
        new_environment(tmp_path, name)
    assert list(tmp_path.iterdir()) == []

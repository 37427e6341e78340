"""Results go to stdout, progress and notes to stderr, for every command that there is."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skilltrail.cli.commands import COMMANDS
from skilltrail.cli.main import run
from skilltrail.runtime.console import table
from tests.fault_server import FaultServer
from tests.model_world import Learner, project, run_stages
from tests.test_history_commits import git

ROOT = Path(__file__).resolve().parents[1]

# command -> lines of arguments, each with a result that must stand on stdout alone
ASKED: dict[str, list[tuple[str, str]]] = {
    "init": [("--dir sub", "dvc.yaml")],
    "summary": [("", "selection")],
    "log": [("", "run: textqa"), ("--summary", "epoch  steps"),
            ("--type gate.judged", "gate:")],
    "replay": [("--version 1", "# Answering"), ("--version 1 -o v1.md", "v1 in"),
               ("--all versions", "versions in")],
    "diff": [("v0 last", "selection items under both"), ("v0 v0", "the texts are the same")],
    "blame": [("", "v0")],
    "audit": [("--version 1", "EVIDENCE"), ("--version 1 --markdown", "#")],
    "bisect": [("--item {item}", "hard"), ("--item {train}", "rollout")],
    "runs": [("", "test gain")],
    "note": [("main good-on-dates --tag baseline", "good-on-dates")],
    "compare": [("--group-by lr", "selection gain")],
    "fork": [("v1", "wrote skills/seeds")],
    "verify": [("", "log")],
    "rebuild": [("", "outcome")],
    "history": [("compact", "before")],
    "anchor": [("", "refs/evolution/main")],
    "erase": [("--text question --dry-run", "data/small"),
              ("--text nobody-said-this --dry-run", "not found anywhere")],
    "plan": [("-S epochs=2 --allow-unpriced", "baseline")],
    "evaluate": [("--skill seed --skill best", "gain (95 % interval)"),
                 ("--skill best --split test", "6/6")],
    "aa-check": [("--skill seed", "flip between two measurements")],
    "store": [("stats", "kind"), ("retry-missing", "gaps dropped"),
              ("release elsewhere", "claims of elsewhere")],
    "doctor": [("--no-probe", "python"), ("--no-probe -S lr=8", "python"),
               ("--no-probe --fix", "python")],
    "back": [("", "HEAD has no dvc.lock")],
    "export": [("--csv -", "step,epoch"), ("--csv steps.csv", "wrote steps.csv"),
               ("--csv - --curve curve.svg", "step,epoch"), ("--skill-md -", "name:")],
    "adopt": [("live.md --propose", "+++"), ("live.md --yes --risky", "+++")],
    "ci": [("", "held-out items")],
    "check-commit": [("", "0 best skills as trained")],
    "new-env": [("my_benchmark", "wrote")],
    "data": [("import qa --manifest ids --source all.jsonl --out out", "train 1")],
    "preset": [("skillopt", "-S ")],
    "params": [("", "lr"), ("--changed -S lr=8", "lr")],
}  # fmt: skip
ELSEWHERE = {
    "pr": "tests/test_review.py has the run that HEAD does not hold",
    "ui": "tests/test_ui.py asks the page for its address",
    "share": "tests/test_sharing.py has the remote that it needs",
    "fetch": "tests/test_sharing.py has the remote that it needs",
    "arena": "tests/test_arena.py has the queue that it needs",
    "nightly": "tests/test_nightly.py has the experiment that it needs",
    "harvest": "tests/test_sessions.py has the sessions that it needs",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A committed project with a finished run, whose model still answers."""
    folder, learner = tmp_path_factory.mktemp("finished"), Learner()
    with FaultServer(say=learner) as server, pytest.MonkeyPatch.context() as patch:
        target = {"backend": "openai", "api": "chat", "model": "m", "provider": "lab",
                  "base_url": f"{server.url}/v1", "max_tokens": 32}  # fmt: skip
        skill = {"seed": "skills/seeds/default", "parent": None}
        learner.learn(project(folder, target, items=6, skill=skill))
        run_stages(folder, patch)
        (folder / ".gitignore").write_text(".skilltrail\ndata/rollouts\n", encoding="utf-8")
        git(folder, "init", "-q", "-b", "main")
        git(folder, "config", "user.name", "A Person")
        git(folder, "config", "user.email", "person@example.com")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "Reference")
        assert run(["rebuild"]) == 0
        yield folder


@pytest.fixture
def here(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    shutil.copytree(finished, folder)
    rows = [{"id": id, "question": f"q{id}", "answers": ["x"]} for id in "abc"]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "all.jsonl").write_text(lines, encoding="utf-8")
    for split, id in zip(("train", "val", "test"), "abc", strict=True):
        path = folder / f"ids/{split}/items.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps([{"id": id}]), encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    return folder


def first_id(folder: Path, split: str) -> str:
    with (folder / f"data/small/{split}.jsonl").open(encoding="utf-8") as file:
        found: str = json.loads(file.readline())["id"]
    return found


@pytest.mark.parametrize(
    ("args", "result"),
    [(f"{name} {args}".strip(), result) for name, asked in ASKED.items()
     for args, result in asked],
)  # fmt: skip
def test_the_result_of_a_command_goes_to_stdout_alone(
    args: str, result: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = args.format(item=first_id(here, "selection"), train=first_id(here, "train"))
    assert run(asked.split()) in (0, 1, 3)
    out, err = capfd.readouterr()
    assert result in out
    assert result not in err
    assert "\x1b" not in out
    assert "error:" not in err.replace("error: verify", "")


def test_every_command_is_tried(here: Path) -> None:
    assert {command.name for command in COMMANDS} == set(ASKED) | set(ELSEWHERE)


def test_a_shell_gets_the_result_in_a_file(here: Path) -> None:
    with (here / "f").open("wb") as file:
        command = [sys.executable, "-m", "skilltrail", "summary"]
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, check=True)
    assert b"gain" in (here / "f").read_bytes()
    assert done.stderr == b""


def test_a_row_is_one_line_whatever_its_width(capfd: pytest.CaptureFixture[str]) -> None:
    cell = "a long remedy that goes on and on\nover lines, " * 9
    table(("name", "n", "what"), [("x", 3, cell), ("한국어", 12, "short")], right=("n",))
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[2] == "한국어  12  short"
    assert lines[0] == "name     n  what"


def test_a_set_param_counts_wherever_params_are_shown(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["params", "-S", "lr=8", "-S", "gate.rule=paired", "--json"]) == 0
    rows = {row["key"]: row for row in json.loads(capfd.readouterr().out)}
    assert (rows["lr"]["value"], rows["lr"]["origin"]) == (8, "-S")
    assert (rows["gate.rule"]["value"], rows["seed"]["origin"]) == ("paired", "default")
    assert run(["doctor", "--no-probe", "-S", "skill.seed=nowhere.md", "--json"]) == 1
    found = {row["name"]: row for row in json.loads(capfd.readouterr().out)}
    assert "nowhere.md" in found["seed skill"]["found"]
    assert run(["doctor", "--no-probe", "-S", "lr"]) == 2
    assert run(["params", "-S", "lrr=8"]) == 2

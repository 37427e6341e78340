"""The GitHub Action, as GitHub takes it: its steps in order, in a pull request's checkout.

What is GitHub's is played: expressions are filled in, `gh` notes what it is told and refuses to
edit a comment that is not there. The package is really installed from the action's folder, into
a venv that sees the packages of this one; training runs on a model on loopback.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_journeys import new_folder

from tests.fault_server import FaultServer
from tests.skill_server import says

ROOT = Path(__file__).resolve().parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
EXPRESSION = re.compile(r"\$\{\{ *([^}]+?) *\}\}")
PULL = 7
SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")
GH = """#!/bin/sh
case " $* " in *" --edit-last "*)
  test -f "$GH_SAID" || { echo "no comments found" >&2; exit 1; } ;;
esac
printf '%s\\n' "$*" >> "$GH_SAID"
"""


@dataclass
class Runner:
    """A machine of GitHub's with a pull request checked out, and what it is told there."""

    place: Path
    env: dict[str, str]
    values: dict[str, str] = field(default_factory=dict)
    failed: bool = False

    def file(self, name: str) -> Path:
        path = self.place / name.lower()
        path.touch()
        self.env[name] = str(path)
        return path

    def fill(self, text: str) -> str:
        """Fill in the expressions of a text; one that the action may not use is an error."""
        return EXPRESSION.sub(lambda found: self.values[found[1]], text)

    def wanted(self, step: Mapping[str, Any]) -> bool:
        """Say whether a step is taken: by default only where no step before it failed."""
        parts = EXPRESSION.sub(r"\1", step.get("if", "success()")).split(" && ")
        if "always()" not in parts and self.failed:
            return False
        compared = [part.split(" == ") for part in parts if not part.endswith("()")]
        return all(self.values[name] == value.strip("'") for name, value in compared)

    def take(self, inputs: Mapping[str, str]) -> list[str]:
        """Take the action's steps and return the names of those that failed."""
        known = {name: of.get("default", "") for name, of in ACTION["inputs"].items()}
        assert set(inputs) <= set(known)
        self.values |= {f"inputs.{name}": text for name, text in (known | inputs).items()}
        faults = []
        for step in ACTION["runs"]["steps"]:
            if not self.wanted(step):
                continue
            output = self.file("GITHUB_OUTPUT")
            output.write_text("", "utf-8")
            own = {name: self.fill(text) for name, text in step.get("env", {}).items()}
            done = subprocess.run(
                [*SHELL, self.fill(step["run"])],
                cwd=self.place / "checkout" / self.fill(step.get("working-directory", ".")),
                env=self.env | own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                encoding="utf-8", timeout=900,
            )  # fmt: skip
            (self.place / f"{step['name']}.log").write_text(done.stdout, "utf-8")
            for line in output.read_text("utf-8").splitlines():
                name, text = line.split("=", 1)
                self.values[f"steps.{step['id']}.outputs.{name}"] = text
            if done.returncode:
                self.failed = True
                faults.append(step["name"])
        return faults

    def output(self, name: str) -> str:
        return self.fill(ACTION["outputs"][name]["value"])

    def log(self, step: str) -> str:
        path = self.place / f"{step}.log"
        return path.read_text("utf-8") if path.is_file() else "not taken"


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer(say=says) as one:
        yield one


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of a venv without Skilltrail, in which the action installs it."""
    venv = tmp_path_factory.mktemp("python")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    [packages] = venv.glob("lib/python*/site-packages")
    outer = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "outer.pth").write_text("\n".join(outer) + "\n", "utf-8")
    bin = venv / "bin"
    (bin / "dvc").write_text(f'#!/bin/sh\nexec "{bin}/python" -m dvc "$@"\n', "utf-8")
    (bin / "gh").write_text(GH, "utf-8")
    for name in ("dvc", "gh"):
        (bin / name).chmod(0o755)
    return bin


@pytest.fixture
def runner(server: FaultServer, tools: Path, tmp_path: Path) -> Runner:
    """A pull request that brings a workspace in a subfolder, checked out as by checkout@v4."""
    temp = tmp_path / "runner"
    temp.mkdir()
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": PULL}}), "utf-8")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DVC_", "GIT_", "PYTHON"))}
    env = kept | {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path), "CI": "true", "GITHUB_ACTIONS": "true", "DVC_NO_ANALYTICS": "1",
        "PYTHONUTF8": "1", "GH_SAID": str(tmp_path / "gh.txt"), "RUNNER_TEMP": str(temp),
        "GITHUB_ACTION_PATH": str(ROOT), "GITHUB_REPOSITORY": "lab/prices",
        "GITHUB_WORKSPACE": str(tmp_path / "checkout"), "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(event), "GITHUB_REF": f"refs/pull/{PULL}/merge",
        # No index is asked: the packages are there, and so is what builds this one.
        "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "false",
    }  # fmt: skip
    (tmp_path / "theirs").mkdir()
    hub = tmp_path / "theirs"
    made = new_folder(hub)
    init = ("init", "--data", "prices.csv", "--skill", "SKILL.md", "--yes")
    target = f"openai:m@{server.url}/v1"
    subprocess.run(
        [sys.executable, "-m", "skilltrail", *init, "--target", target],
        cwd=made, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True, capture_output=True,
    )  # fmt: skip
    for words in (("add", "."), ("commit", "-qm", "A skill to train"),
                  ("update-ref", f"refs/pull/{PULL}/merge", "HEAD")):  # fmt: skip
        subprocess.run(["git", *words], cwd=made, check=True)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    ref = f"refs/remotes/pull/{PULL}/merge"
    for words in (("init", "-q"), ("fetch", "-q", str(made), f"+refs/pull/{PULL}/merge:{ref}"),
                  ("checkout", "-q", "--force", ref)):  # fmt: skip
        subprocess.run(["git", *words], cwd=checkout, check=True)
    values = {"runner.temp": str(temp), "github.token": "t0ken",
              "github.event_name": "pull_request",
              "github.event.pull_request.number": str(PULL)}  # fmt: skip
    one = Runner(tmp_path, env, values)
    one.file("GITHUB_STEP_SUMMARY")
    return one


def test_the_action_trains_within_its_budget_and_comments(runner: Runner, tools: Path) -> None:
    faults = runner.take({"set": "lr=1", "calls": "200", "min-gain": "0"})
    told = {step["name"]: runner.log(step["name"]) for step in ACTION["runs"]["steps"]}
    assert faults == [], told
    assert (tools / "skilltrail").is_file(), "installed from the action's folder"
    comment = Path(runner.output("comment")).read_text("utf-8")
    assert "**passed**" in comment
    assert "+- Give the price with its currency" in comment
    assert Path(runner.env["GITHUB_STEP_SUMMARY"]).read_text("utf-8") == comment
    said = Path(runner.env["GH_SAID"]).read_text("utf-8").splitlines()
    assert said == [
        f"pr comment {PULL} --repo lab/prices --body-file {runner.output('comment')}"
    ]


def test_a_gain_below_the_threshold_fails_the_action_and_is_commented_on_all_the_same(
    runner: Runner,
) -> None:
    Path(runner.env["GH_SAID"]).write_text("pr comment of an earlier push\n", "utf-8")
    seed = "skills/seeds/prices.md"
    faults = runner.take({"mode": "evaluate", "skills": f"{seed} {seed}", "min-gain": "0"})
    assert faults == ["Train or evaluate"]
    assert "is not above the threshold" in runner.log("Train or evaluate")
    comment = Path(runner.output("comment")).read_text("utf-8")
    assert "**failed**" in comment
    assert Path(runner.env["GITHUB_STEP_SUMMARY"]).read_text("utf-8") == comment
    last = Path(runner.env["GH_SAID"]).read_text("utf-8").splitlines()[-1]
    assert "--edit-last" in last, "the comment of an earlier push is written over"


def test_outside_of_a_pull_request_nothing_is_commented(runner: Runner) -> None:
    runner.values["github.event_name"] = "push"
    step = ACTION["runs"]["steps"][-1]
    runner.values["inputs.comment"] = "true"
    assert not runner.wanted(step)
    runner.values |= {"github.event_name": "pull_request", "inputs.comment": "false"}
    assert not runner.wanted(step)


def test_a_mode_that_there_is_not_is_named_and_nothing_is_run(runner: Runner) -> None:
    assert runner.take({"mode": "test"}) == ["Train or evaluate"]
    assert "MODE is train or evaluate, found test" in runner.log("Train or evaluate")
    assert not Path(runner.env["GH_SAID"]).exists()
    assert Path(runner.env["GITHUB_STEP_SUMMARY"]).read_text("utf-8") == ""

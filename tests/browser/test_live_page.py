"""The live page in a real browser over real runs; a loopback server plays the target."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from model_world import Learner
from ruamel.yaml import YAML

from tests.fault_server import Answer, Call, FaultServer

pytest.importorskip("starlette", reason='needs pip install -e ".[ui]"')

ROOT = Path(__file__).resolve().parents[2]
CODE = ("stages", "skilltrail", "schemas", "data/none", "skills/seeds", "envs")
FILES = ("dvc.yaml", "params.yaml", ".dvcignore", ".gitignore", ".gitattributes", ".dvc/config")
ITEMS = 6
SOON_S = 120.0
WORKERS = 2
PARAMS = {"epochs": 1, "batch_size": 3, "lr": 2, "lr_schedule": "constant", "patience": 0}
TARGET = {
    "backend": "openai",
    "api": "chat",
    "model": "m",
    "provider": "lab",
    "workers": WORKERS,
}
REFUSED = "Failed to load resource: the server responded with a status of 400 (Bad Request)"


@dataclass
class Target:
    """A model that learns from the skill, and that can be told to wait at a rollout."""

    learner: Learner = field(default_factory=Learner)
    asked: list[str] = field(default_factory=list)
    hold_at: int | None = None
    held: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    def __call__(self, call: Call) -> Answer:
        text = json.dumps(call.body, sort_keys=True)
        if "one word: ok" in text:  # doctor's probe
            return Answer("ok")
        self.asked.append(text)
        if self.hold_at is not None and len(self.asked) >= self.hold_at:
            self.held.set()
            assert self.go_on.wait(SOON_S)
        return self.learner(call)

    def wait_at(self, number: int) -> None:
        """Hold the rollout of this number and all after it."""
        self.held.clear()
        self.go_on.clear()
        self.hold_at = number

    def release(self) -> None:
        self.hold_at = None
        self.go_on.set()


class Ui:
    """`skilltrail ui` as a process."""

    def __init__(self, folder: Path, port: int | None = 0) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DVC_", "GIT_"))}
        for who in ("AUTHOR", "COMMITTER"):
            kept |= {f"GIT_{who}_NAME": "T", f"GIT_{who}_EMAIL": "t@example.org"}
        # What dvc starts finds this Python, however the tests were started.
        kept["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "skilltrail", "ui", "--port", str(port)],
            cwd=folder,
            env=kept | {"NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("live page: "), line
        self.url = line.split()[-1]
        self.port = urlsplit(self.url).port

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@dataclass
class World:
    """A project, the server that plays its target, and the live page."""

    folder: Path
    server: FaultServer
    target: Target
    ui: Ui

    def child(self) -> int:
        """Return the process group of the run that the page started."""
        owner = json.loads((self.folder / ".skilltrail/ui.json").read_bytes())["owner"]
        return int(owner["pid"])

    def head(self) -> str:
        return (self.folder / ".git/HEAD").read_text("utf-8").strip()


def make_project(folder: Path, url: str) -> list[dict[str, Any]]:
    """Write a committed project over a few of the shipped items; return them."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in CODE:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in (*FILES, *(p.relative_to(ROOT).as_posix() for p in ROOT.glob("reports/*.py"))):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "data/textqa").mkdir()
    (folder / "data/textqa/README.md").write_text("None here.\n", encoding="utf-8")
    (folder / "data/small").mkdir()
    items = []
    for split in ("train", "selection", "test"):
        lines = (ROOT / f"data/textqa/{split}.jsonl").read_text("utf-8").split("\n")[:ITEMS]
        items += [json.loads(line) for line in lines]
        path = folder / f"data/small/{split}.jsonl"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    params = YAML().load((ROOT / "params.yaml").read_text("utf-8")) | PARAMS
    params["data"]["split_dir"] = "data/small"
    params["target"] |= TARGET | {"base_url": f"{url}/v1", "workers": WORKERS}
    with (folder / "params.yaml").open("w", encoding="utf-8", newline="\n") as file:
        YAML().dump(params, file)
    who = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    for command in (("init", "-q", "-b", "main"), ("add", "."), (*who, "commit", "-qm", "a")):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return items


@pytest.fixture(scope="module")
def browser(bare_browser: Any) -> Any:
    """None of the projects of the report is looked at here."""
    return bare_browser


@pytest.fixture
def world(browser: Any, tmp_path: Path) -> Iterator[World]:
    target = Target()
    with FaultServer(say=target) as server:
        target.learner.learn(make_project(tmp_path, server.url))
        made = World(tmp_path, server, target, Ui(tmp_path))
        yield made
        target.release()
        made.ui.kill()
        with suppress(OSError, ValueError):
            os.killpg(made.child(), signal.SIGKILL)


def says(page: Any, text: str) -> None:
    """Wait until the bar says `text`."""
    page.wait_for_function(
        "text => document.querySelector('#now .bar')?.innerText.includes(text)",
        arg=text,
        timeout=SOON_S * 1000,
    )


def at_stage(page: Any, name: str) -> None:
    page.wait_for_function(
        "name => document.querySelector('.six [aria-current=step]')?.innerText === name",
        arg=name,
        timeout=SOON_S * 1000,
    )


def change(page: Any, key: str, value: str) -> None:
    page.fill(f'[id="knob-{key}"]', value)
    page.press(f'[id="knob-{key}"]', "Tab")


def check(page: Any) -> None:
    page.click("#start form button[type=submit]")
    page.wait_for_selector("#checked button, #checked [role=alert]", timeout=SOON_S * 1000)


def begin(page: Any) -> None:
    """Check the form as it stands and start."""
    page.click("#nav a[data-view=start]")
    page.wait_for_selector("#start form")
    check(page)
    page.click("#checked button")


def test_a_run_is_planned_started_followed_stopped_and_gone_on_with(
    world: World, watched: Any
) -> None:
    page, target = watched.page, world.target
    page.goto(world.ui.url)
    says(page, "Idle")
    page.click("text=Start a run")
    page.wait_for_selector("#start form")

    change(page, "lr", "0")
    check(page)
    assert "lr: expected a whole number of at least 1" in page.inner_text("#checked")
    change(page, "lr", "3")
    assert page.inner_text("#changed") == "lr=3"
    target.wait_at(1)
    check(page)
    shown = page.inner_text("#checked")
    assert "2 steps, as if nothing were cached" in shown
    assert "dvc exp run --set-param lr=3" in shown
    page.click("#checked button")
    assert target.held.wait(SOON_S)
    says(page, "Training")
    at_stage(page, "rollout")

    # Baseline and the first batch go through; then the first candidate is being judged.
    target.release()
    target.wait_at(ITEMS + 3 + 1)
    assert target.held.wait(SOON_S)
    at_stage(page, "gate")
    says(page, "step 1, epoch 1")
    page.wait_for_selector("#now progress")
    assert re.search(r"\d+ of at most \d+ rollouts", page.inner_text("#now .progress"))
    assert page.locator("#now .newest li").count() == 3
    assert "candidate:" in page.inner_text("#now .newest"), "the newest in sight, unopened"
    page.click("#tail summary")
    assert "candidate:" in page.inner_text("#tail")
    assert "dvc exp run --set-param lr=3" in page.inner_text("#tail")

    page.click("#now button")
    target.release()
    says(page, "Stopped")
    assert world.head() == "ref: refs/heads/main"
    assert "every finished call is kept" in page.inner_text("#tail")

    begin(page)
    says(page, "Training")
    says(page, "Finished")
    assert "ended with exit code 0" in page.inner_text("#tail")
    page.click("#nav a[data-view=overview]")
    page.wait_for_selector("#overview >> text=held-out", timeout=SOON_S * 1000)
    # What was paid for before the stop was not paid for again, but for what it cut.
    assert len(target.asked) - len(set(target.asked)) <= WORKERS
    # A page that loads itself anew may cut its own stream.
    assert [said for said in watched.faults if "net::ERR_" not in said] == [REFUSED]


def test_the_page_outlives_a_killed_run_and_a_killed_server(world: World, watched: Any) -> None:
    page, target = watched.page, world.target
    page.goto(world.ui.url)
    says(page, "Idle")
    target.wait_at(ITEMS + 2)
    begin(page)
    assert target.held.wait(SOON_S)
    at_stage(page, "rollout")

    os.killpg(world.child(), signal.SIGKILL)
    says(page, "Failed")
    page.wait_for_selector("#now >> text=Start a run", timeout=SOON_S * 1000)
    target.release()

    world.ui.kill()
    page.wait_for_selector("text=The server does not answer", timeout=SOON_S * 1000)
    world.ui = Ui(world.folder, world.ui.port)
    says(page, "Stopped")
    begin(page)
    says(page, "Training")
    world.ui.kill()  # the run does not mind
    world.ui = Ui(world.folder, world.ui.port)
    says(page, "Finished")
    done = json.loads((world.folder / "reports/out/metrics.json").read_text("utf-8"))
    assert done["steps"] == 2
    page.click("#nav a[data-view=overview]")
    best = f"{done['test']['best']:.3f}"
    page.wait_for_selector(f"#overview >> text={best}", timeout=SOON_S * 1000)
    assert page.evaluate("document.querySelectorAll('#run-choice option').length") >= 1
    outside = [
        url
        for url in watched.requests
        if not url.startswith(f"http://127.0.0.1:{world.ui.port}/")
    ]
    assert outside == []

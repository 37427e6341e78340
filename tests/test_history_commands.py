"""The commands that answer questions about a run, as a person types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from history_world import World
from test_history_commits import git, project
from test_history_verify import data_of

from skilltrail.cli.main import run
from skilltrail.history.log.events import Event
from skilltrail.history.log.replay import version_of
from skilltrail.history.log.run_log import RunLog

PARAMS = {"epochs": 2, "batch_size": 4, "lr": 3, "lr_schedule": "constant"}


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    world = World(n_train=12, n_selection=6, params=PARAMS)
    return world.run(tmp_path_factory.mktemp("run")).events


def committed(folder: Path, events: list[Event]) -> None:
    """Make `folder` a project in git, with this log and its side branch."""
    git(folder, "init", "-q", "-b", "main")
    (folder / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8", newline="\n")
    (folder / "skills").mkdir()
    (folder / "skills/events.jsonl").write_bytes(data_of(events))
    project(folder, events, "main")


@pytest.fixture
def here(tmp_path: Path, events: list[Event], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in git whose last run is committed on its side branch."""
    committed(tmp_path, events)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    return tmp_path


def told(capfd: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    assert run(list(args)) == code
    return capfd.readouterr().out


@pytest.mark.parametrize(
    "args",
    [
        ["log"],
        ["log", "--summary"],
        ["log", "--type", "gate.judged"],
        ["replay", "--version", "1"],
        ["verify", "--allow-absent", "log", "--allow-absent", "facts"],
        ["runs"],
        ["compare", "--group-by", "lr"],
        ["blame", "--version", "last"],
        ["audit", "--version", "1"],
        ["audit", "--line", "3"],
        ["diff", "v0", "best"],
        ["bisect", "--item", "selection-1"],
        ["rebuild"],
    ],
)
def test_every_command_answers_in_words_and_in_json(
    here: Path, capfd: pytest.CaptureFixture[str], args: list[str]
) -> None:
    told(capfd, *args)
    assert json.loads(told(capfd, *args, "--json"))


def test_replay_gives_the_exact_bytes_from_any_source(
    here: Path, events: list[Event], capfd: pytest.CaptureFixture[str]
) -> None:
    versions = RunLog(events).versions
    assert told(capfd, "replay", "--version", "1") == versions[1].text
    told(capfd, "replay", "--run", "main", "--version", "last", "-o", str(here / "last.md"))
    assert (here / "last.md").read_bytes() == versions[-1].text.encode()
    told(capfd, "replay", "--all", str(here / "all"))
    for version in versions:
        assert (here / f"all/v{version.number}.md").read_bytes() == version.text.encode()


def test_replay_needs_no_store_no_model_and_no_network(here: Path) -> None:
    """Any use of the network ends that process, and there are no params to find a model by."""
    block = (
        "import sys\n"
        "def watch(event, args):\n"
        "    if event in ('socket.connect', 'socket.sendto', 'socket.getaddrinfo'):\n"
        "        sys.exit('the network was asked')\n"
        "sys.addaudithook(watch)\n"
        "from skilltrail.cli.main import run\n"
        "sys.exit(run(['replay', '--run', 'main', '--version', 'last']))\n"
    )
    root = str(Path(__file__).resolve().parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", block],
        cwd=here,
        env=os.environ | {"PYTHONPATH": root},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"# Rules")


def test_verify_exits_1_and_names_the_fault(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = here / "skills/events.jsonl"
    log.write_bytes(
        log.read_bytes().replace(b'"verdict":"accepted"', b'"verdict":"rejected"', 1)
    )
    before = log.read_bytes()
    out = told(capfd, "verify", code=1)
    assert "\nlog: event 11 (events.jsonl, line 11)" in out
    assert log.read_bytes() == before


def test_verify_names_a_best_skill_that_the_log_did_not_lead_to(
    here: Path, events: list[Event], capfd: pytest.CaptureFixture[str]
) -> None:
    skill = here / "skills/best_skill.md"
    best = version_of(events, "best").text
    skill.write_text(best, encoding="utf-8", newline="\r\n")
    assert "OK" in told(capfd, "verify", code=3)
    skill.write_text(best + "- By hand.\n", encoding="utf-8", newline="\n")
    assert "\nlog: skills/best_skill.md: sha256" in told(capfd, "verify", code=1)


def test_verify_takes_a_log_that_goes_on_only_when_told(
    here: Path, events: list[Event], capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "skills/events.jsonl").write_bytes(data_of(events[:-3]))
    assert "end of the log" in told(capfd, "verify", code=1)
    assert "OK" in told(capfd, "verify", "--allow-unfinished", code=3)


def test_the_markdown_of_an_audit_is_a_page_of_its_own(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    page = told(capfd, "audit", "--version", "1", "--markdown")
    assert page.startswith("## Why version 1 (v1, step ")
    assert "### Verdict" in page
    assert "```diff" in page


def test_a_wrong_question_exits_2_with_a_remedy(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit"]) == 2
    assert run(["audit", "--version", "1", "--patch", "p9", "--line", "3"]) == 2
    assert run(["replay", "--version", "x"]) == 2
    assert run(["audit", "--text", ""]) == 2
    assert run(["audit", "--text", " "]) == 2
    assert run(["log", "--type", "gate.judge"]) == 2
    assert "gate.judged" in capfd.readouterr().err
    assert run(["log", "--run", "nobody"]) == 2
    assert "skilltrail runs" in " ".join(capfd.readouterr().err.split())


def test_fork_writes_the_seed_and_sets_both_params(
    here: Path, events: list[Event], capfd: pytest.CaptureFixture[str]
) -> None:
    params = here / "params.yaml"
    params.write_text("skill:\n  seed: a  # kept\n  parent: null\n", encoding="utf-8")
    told(capfd, "fork", "main:v1")
    version = RunLog(events).versions[1]
    assert (here / "skills/seeds/main-v1.md").read_bytes() == version.text.encode()
    text = params.read_text(encoding="utf-8")
    assert "seed: skills/seeds/main-v1.md # kept" in text
    assert f"parent: {version.event.id}" in text


# A run that is not the one of skills/events.jsonl


@pytest.fixture
def unfinished(here: Path, events: list[Event]) -> Path:
    """The project while a run is on, or after it was stopped: DVC removed its events."""
    git(here, "add", "skills")
    git(here, "commit", "-q", "-m", "Reference")
    (here / "skills/events.jsonl").unlink()
    live = here / ".skilltrail/runs/0123456789abcdef/events.jsonl"
    live.parent.mkdir(parents=True)
    live.write_bytes(data_of(events[:-1]))
    return here


@pytest.mark.parametrize(
    "args",
    [
        ["log"],
        ["log", "--summary"],
        ["audit", "--version", "1"],
        ["blame", "--version", "1"],
        ["diff", "v0", "v1"],
        ["replay", "--version", "1"],
    ],
)
def test_an_unfinished_run_that_nobody_named_is_told_on_stderr(
    unfinished: Path, args: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run([*args, "--json"]) == 0
    out, err = capfd.readouterr()
    json.loads(out)
    [line] = err.splitlines()
    assert "this is run 0123456789abcdef, which has not finished" in line
    assert "`--run HEAD`" in line


def test_a_run_that_was_named_is_told_without_a_notice(
    unfinished: Path, capfd: pytest.CaptureFixture[str], events: list[Event]
) -> None:
    for name in ("HEAD", "012345"):
        assert run(["log", "--run", name, "--json"]) == 0
        out, err = capfd.readouterr()
        assert (len(json.loads(out)), err) == (len(events) - (name != "HEAD"), "")
    assert run(["diff", "HEAD:v0", "HEAD:best", "--json"]) == 0
    assert capfd.readouterr().err == ""


def test_the_log_of_the_workspace_needs_no_notice(
    unfinished: Path, events: list[Event], capfd: pytest.CaptureFixture[str]
) -> None:
    (unfinished / "skills/events.jsonl").write_bytes(data_of(events))
    assert run(["log", "--json"]) == 0
    assert capfd.readouterr().err == ""


def test_a_run_that_is_on_is_told_beside_the_one_that_finished_last(
    unfinished: Path, events: list[Event], capfd: pytest.CaptureFixture[str]
) -> None:
    live = unfinished / ".skilltrail/runs/0123456789abcdef/events.jsonl"
    (unfinished / "skills/events.jsonl").write_bytes(data_of(events))
    live.write_bytes(data_of(events[:-2]) + b'{"torn')
    os.utime(live, (2e9, 2e9))
    assert run(["log", "--json"]) == 0
    assert f"run 0123456789abcdef has {len(events) - 2} events so far" in capfd.readouterr().err


def test_without_a_committed_run_a_finished_live_log_is_named(
    unfinished: Path, events: list[Event], capfd: pytest.CaptureFixture[str]
) -> None:
    git(unfinished, "rm", "-q", "--cached", "skills/events.jsonl")
    git(unfinished, "commit", "-q", "--allow-empty", "-m", "None")
    assert run(["log"]) == 0
    assert "no finished run is here" in capfd.readouterr().err
    done = unfinished / ".skilltrail/runs/fedcba9876543210/events.jsonl"
    done.parent.mkdir()
    done.write_bytes(data_of(events))
    os.utime(done, (1, 1))
    assert run(["log"]) == 0
    assert "`--run fedcba9876543210`" in capfd.readouterr().err

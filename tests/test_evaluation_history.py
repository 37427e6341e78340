"""An evaluation is part of its run's history, and each opening of the test split counts."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_server import FaultServer
from model_world import Learner, project, results, run_stages, set_params
from test_history_commits import git

from skilltrail.cli.main import run
from skilltrail.core.errors import SkilltrailError
from skilltrail.history.ask.evaluations import evaluations, openings
from skilltrail.history.ask.sources import Project, open_source
from skilltrail.history.git.branches import branch_of, tips_of
from skilltrail.history.git.commits import commits_of
from skilltrail.history.git.repository import Git
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import read_log
from stages.evaluate import main as evaluate

TARGET = {"backend": "openai", "api": "chat", "model": "m", "provider": "lab", "max_tokens": 32}
ASKED = ("evaluate", "--skill", "seed", "--skill", "best", "--split", "test")
RUN, APART = "refs/evolution/main", "refs/evolution-evaluations/main"


LEARNER = Learner()


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer(say=LEARNER) as one:
        yield one


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory, server: FaultServer) -> Path:
    """A project in git that was trained and evaluated."""
    folder = tmp_path_factory.mktemp("evaluated")
    git(folder, "init", "-q", "-b", "main")
    LEARNER.learn(project(folder, TARGET | {"base_url": f"{server.url}/v1"}, items=4))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DVC_ROOT", raising=False)
        run_stages(folder, patch)
    return folder


@pytest.fixture
def here(evaluated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, to change."""
    folder = tmp_path / "here"
    shutil.copytree(evaluated, folder, symlinks=True)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    return folder


def git_of(folder: Path) -> Git:
    found = Git.find(folder)
    assert found is not None
    return found


def refs(folder: Path) -> dict[str, str]:
    return git_of(folder).refs("refs/evolution", "refs/evolution-evaluations")


def logs(folder: Path) -> tuple[list[Event], list[Event]]:
    training = read_log(folder / "skills/events.jsonl")
    return training, read_log(folder / "reports/out/evaluation.jsonl", after=training[-1])


def counted(folder: Path) -> tuple[int, int, int]:
    """Openings for the run of the workspace: all, those asked for, those lost."""
    last = read_log(folder / "skills/events.jsonl")[-1].id
    found = openings(evaluations(Project(folder, folder)), last)
    return found.run, found.asked, found.lost


def test_the_evaluation_goes_on_from_the_last_commit_of_its_run(here: Path) -> None:
    training, evaluation = logs(here)
    door = git_of(here)
    branch = branch_of(door, RUN)
    assert (branch.training, branch.evaluation) == (training, evaluation)
    assert branch.commits == [commit.sha for commit in commits_of([*training, *evaluation])]
    tips = tips_of(door, "main")
    assert tips.training == branch.commits[len(training) - 1]
    assert tips.evaluations == {RUN: branch.commits[-1]}
    assert "evaluation: opens test" in git(here, "log", "--format=%s", RUN)
    git(here, "fsck", "--full", "--strict")


def test_evaluating_again_moves_no_ref(here: Path) -> None:
    before, bytes_before = refs(here), results(here)
    asyncio.run(evaluate())
    assert (refs(here), results(here)) == (before, bytes_before)
    assert counted(here) == (1, 0, 0)


def test_each_evaluation_that_a_person_asks_for_counts_and_has_a_ref_of_its_own(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own = refs(here)[RUN]
    for times in (1, 2):
        assert run([*ASKED, "--json"]) == 0
        assert [row["skill"] for row in json.loads(capfd.readouterr().out)] == ["seed", "best"]
        assert refs(here)[RUN] == own
        assert sorted(refs(here)) == sorted([RUN, *(f"{APART}/{n + 1}" for n in range(times))])
        assert counted(here) == (1 + times, times, 0)
    assert len(tips_of(git_of(here), "main").evaluations) == 3
    assert run(["runs", "--json"]) == 0
    assert [row["openings"] for row in json.loads(capfd.readouterr().out)] == [3]
    assert run(["summary", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)["openings"]
    assert (told["run"], told["asked"], told["lost"]) == (3, 2, 0)
    assert run(["export", "--html", "page.html"]) == 0
    page = (here / "page.html").read_text(encoding="utf-8")
    assert "opened 3× for this run, 2 of them by `skilltrail evaluate`" in page


def test_an_opening_is_found_in_the_logs_alone_and_in_the_commits_alone(here: Path) -> None:
    assert run(list(ASKED)) == 0
    kept = here / ".skilltrail/evaluations"
    kept.rename(here / "moved")
    assert counted(here) == (2, 1, 0)
    (here / "moved").rename(kept)
    for ref in refs(here):
        git(here, "update-ref", "-d", ref)
    assert counted(here) == (2, 1, 0)


def test_an_opening_that_was_lost_everywhere_is_missed(here: Path) -> None:
    assert run(list(ASKED)) == 0
    assert run(list(ASKED)) == 0
    git(here, "update-ref", "-d", f"{APART}/1")
    first, second = sorted((here / ".skilltrail/evaluations").glob("*/*.jsonl"))[1:]
    assert first.name < second.name
    first.unlink()
    assert counted(here) == (2, 1, 1)
    found = openings(evaluations(Project(here, here)), logs(here)[0][-1].id)
    assert "at least 1 more is missing" in str(found)


def test_rebuild_makes_dropped_refs_again_with_the_same_hashes(here: Path) -> None:
    assert run(list(ASKED)) == 0
    before = git(here, "for-each-ref")
    for line in before.splitlines():
        git(here, "update-ref", "-d", line.split("\t")[1])
    assert run(["rebuild"]) == 0
    assert git(here, "for-each-ref") == before
    assert run(["rebuild"]) == 0
    assert git(here, "for-each-ref") == before


def test_another_evaluation_of_the_pipeline_has_a_ref_of_its_own(
    here: Path, server: FaultServer
) -> None:
    own = refs(here)[RUN]
    target = TARGET | {"base_url": f"{server.url}/v1"}
    set_params(here, target, evaluate={"skills": ["best"]})
    asyncio.run(evaluate())
    assert refs(here)[RUN] == own
    other = branch_of(git_of(here), f"{APART}/1")
    assert other.evaluation == logs(here)[1]
    assert counted(here) == (2, 0, 0)
    set_params(here, target)
    asyncio.run(evaluate())
    assert sorted(refs(here)) == [f"{APART}/1", RUN]
    before = refs(here)
    for ref in before:
        git(here, "update-ref", "-d", ref)
    assert run(["rebuild"]) == 0
    assert refs(here) == before


def test_the_opening_is_on_record_before_the_first_item_is_rolled_out(
    here: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(here / ".skilltrail")
    shutil.rmtree(here / "data/rollouts")
    for ref in refs(here):
        git(here, "update-ref", "-d", ref)
    retry = {"attempts": 1}
    set_params(here, TARGET | {"base_url": "http://127.0.0.1:9/v1", "retry": retry})
    with pytest.raises(SkilltrailError):
        asyncio.run(evaluate())
    assert [event.type for event in branch_of(git_of(here), RUN).evaluation] == ["test.opened"]
    (here / "reports/out/evaluation.jsonl").unlink()
    assert counted(here) == (1, 0, 0)


def test_another_split_opens_nothing_and_the_same_question_adds_nothing(here: Path) -> None:
    asked = ["evaluate", "--skill", "seed", "--split", "selection"]
    assert run(asked) == 0
    before = refs(here)
    assert f"{APART}/1" in before
    assert run(asked) == 0
    assert refs(here) == before
    assert counted(here) == (1, 0, 0)


def test_a_skill_is_measured_and_recorded_without_any_run(here: Path) -> None:
    (here / "skills/events.jsonl").unlink()
    for ref in refs(here):
        git(here, "update-ref", "-d", ref)
    (here / "mine.md").write_text("# Mine\n", encoding="utf-8", newline="\n")
    outside = here.parent / "other.md"
    outside.write_text("# Other\n", encoding="utf-8", newline="\n")
    asked = ["evaluate", "--skill", "mine.md", "--skill", str(outside), "--split", "test"]
    assert run(asked) == 0
    branch = branch_of(git_of(here), f"{APART}/1")
    assert branch.training == []
    names = [skill["name"] for skill in branch.evaluation[0].data["skills"]]
    assert names == ["mine.md", "other.md"]


def test_an_experiment_s_run_is_found_whatever_branch_is_checked_out(here: Path) -> None:
    git(here, "symbolic-ref", "HEAD", "refs/heads/elsewhere")
    assert run(list(ASKED)) == 0
    assert sorted(refs(here)) == [f"{APART}/1", RUN]


def test_commands_answer_from_the_training_of_a_longer_branch(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    training, evaluation = logs(here)
    source = open_source(Project(here, here), "main")
    assert (source.events, source.evaluation) == (training, evaluation)
    assert run(["log", "--run", "main", "--json"]) == 0
    shown = json.loads(capfd.readouterr().out)
    assert [event["id"] for event in shown] == [e.id for e in (*training, *evaluation)]
    with (here / "params.yaml").open("a", encoding="utf-8", newline="\n") as file:
        file.write("skill: {seed: null, parent: null}\n")
    for asked in (
        ["replay", "--run", "main", "--version", "best"],
        ["blame", "--run", "main"],
        ["audit", "--run", "main", "--version", "1"],
        ["log", "--run", "main", "--summary"],
        ["compare", "--group-by", "seed"],
        ["fork", "main:v1"],
    ):
        assert run(asked) == 0, asked
    capfd.readouterr()
    assert run(["runs", "--json"]) == 0
    (row,) = json.loads(capfd.readouterr().out)
    assert (row["finished"], row["events"]) == (True, len(training))


def test_bisect_rolls_out_no_item_of_the_test_split(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    line = (here / "data/splits/test.jsonl").read_text(encoding="utf-8").split("\n")[0]
    assert run(["bisect", "--item", json.loads(line)["id"]]) == 2
    assert "skilltrail evaluate" in capfd.readouterr().err

"""Commits of a run that git keeps in a file each are packed, and stay the same commits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from history_world import World
from test_history_commands import PARAMS, committed
from test_history_commits import git

from skilltrail.cli.main import run
from skilltrail.history.git.commits import commits_of
from skilltrail.history.git.repository import Git
from skilltrail.history.log.events import Event


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    world = World(n_train=12, n_selection=6, params=PARAMS)
    return world.run(tmp_path_factory.mktemp("run")).events


@pytest.fixture
def here(tmp_path: Path, events: list[Event], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose run git keeps in a file for each object, as a slow run leaves it."""
    monkeypatch.delenv("DVC_ROOT", raising=False)
    committed(tmp_path, events)
    monkeypatch.chdir(tmp_path)
    for pack in list((tmp_path / ".git/objects/pack").glob("*.pack")):
        data = pack.read_bytes()
        for file in pack.parent.glob(f"{pack.stem}.*"):
            file.unlink()
        door = Git.find(tmp_path)
        assert door is not None
        door.run("unpack-objects", "-q", stdin=data)
    return tmp_path


def kept(folder: Path) -> int:
    return int(git(folder, "count-objects").split()[0])


def test_all_that_a_ref_leads_to_is_packed_and_no_commit_changes(
    here: Path, events: list[Event], capfd: pytest.CaptureFixture[str]
) -> None:
    refs, status = git(here, "for-each-ref"), git(here, "status", "--porcelain")
    loose = kept(here)
    assert loose > 2 * len(events)
    assert run(["history", "compact", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["before"]["loose"] == loose
    assert told["after"]["loose"] == kept(here) == 0
    assert told["after"]["bytes"] < told["before"]["bytes"]
    assert (git(here, "for-each-ref"), git(here, "status", "--porcelain")) == (refs, status)
    shown = git(here, "log", "--reverse", "--format=%H", "evolution/main").split()
    assert shown == [commit.sha for commit in commits_of(events)]
    assert git(here, "fsck", "--full", "--strict", "--connectivity-only") == ""
    assert run(["verify"]) in (0, 3)


def test_what_is_packed_is_packed_again_without_harm_and_strangers_stay(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "stray.txt").write_text("of nobody\n", encoding="utf-8")
    stray = git(here, "hash-object", "-w", "stray.txt").strip()
    assert run(["history", "compact"]) == 0
    assert run(["history", "compact"]) == 0
    assert "1 objects that no ref leads to stay" in capfd.readouterr().out
    assert git(here, "cat-file", "-t", stray).strip() == "blob"


def test_where_git_keeps_nothing_yet_there_is_nothing_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "params.yaml").write_text("seed: 1\n", encoding="utf-8")
    (tmp_path / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    git(tmp_path, "init", "-q", "-b", "main")
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert run(["history", "compact"]) == 0


def test_outside_of_git_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "params.yaml").write_text("seed: 1\n", encoding="utf-8")
    (tmp_path / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8")
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    assert run(["history", "compact"]) == 2
    assert "git init" in capfd.readouterr().err

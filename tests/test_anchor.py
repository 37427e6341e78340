"""A run's last commit is signed by git, or its hash is printed to be published."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from history_world import World
from test_history_commands import PARAMS, committed
from test_history_commits import git

from skilltrail.cli.main import run
from skilltrail.history.git.commits import commits_of
from skilltrail.history.log.events import Event


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    world = World(n_train=12, n_selection=6, params=PARAMS)
    return world.run(tmp_path_factory.mktemp("run")).events


@pytest.fixture
def here(tmp_path: Path, events: list[Event], monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("DVC_ROOT", raising=False)
    committed(tmp_path / "project", events)
    monkeypatch.chdir(tmp_path / "project")
    git(tmp_path / "project", "config", "user.name", "A Person")
    git(tmp_path / "project", "config", "user.email", "person@example.com")
    return tmp_path / "project"


@pytest.fixture
def key(here: Path) -> Path:
    """A key of ssh that git signs with, and that it knows as the person's."""
    path = here.parent / "key"
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
    subprocess.run(make, check=True)
    known = here.parent / "allowed"
    public = path.with_suffix(".pub").read_text(encoding="utf-8")
    known.write_text(f"person@example.com {public}", encoding="utf-8", newline="\n")
    for name, value in (
        ("gpg.format", "ssh"),
        ("user.signingkey", str(path)),
        ("gpg.ssh.allowedSignersFile", str(known)),
    ):
        git(here, "config", name, value)
    return path


def test_without_a_key_the_hash_is_printed_and_nothing_is_made(
    here: Path, events: list[Event], capfd: pytest.CaptureFixture[str]
) -> None:
    before = git(here, "for-each-ref")
    assert run(["anchor"]) == 0
    tip = [commit.sha for commit in commits_of(events)][-1]
    assert capfd.readouterr().out == f"{tip}  training of main  refs/evolution/main\n"
    assert git(here, "for-each-ref") == before
    assert run(["anchor", "main", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["tag"], told["anchors"][0]["commit"]) == (None, tip)


def test_with_a_key_git_signs_a_tag_on_the_tip_once(
    here: Path, key: Path, events: list[Event], capfd: pytest.CaptureFixture[str]
) -> None:
    tip = [commit.sha for commit in commits_of(events)][-1]
    tag = f"evolution-anchor/main/{tip[:12]}"
    for _ in range(2):
        assert run(["anchor", "--json"]) == 0
        assert json.loads(capfd.readouterr().out)["tag"] == tag
    git(here, "verify-tag", tag)
    assert git(here, "rev-parse", f"{tag}^{{commit}}").strip() == tip
    assert tip in git(here, "cat-file", "tag", tag)
    assert git(here, "tag", "--list").split() == [tag]
    assert run(["anchor", "--no-sign"]) == 0
    assert run(["anchor", "--tag", "mine"]) == 0
    git(here, "verify-tag", "mine")


def test_a_tag_of_that_name_on_something_else_is_left_alone(
    here: Path, key: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    git(here, "tag", "mine", "evolution/main~1")
    assert run(["anchor", "--tag", "mine"]) == 1
    assert "another name" in capfd.readouterr().err


def test_signing_that_fails_is_one_message_with_the_way_on(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    git(here, "config", "gpg.program", "/nowhere/gpg")
    assert run(["anchor", "--sign"]) == 1
    err = " ".join(capfd.readouterr().err.split())
    assert "user.signingkey" in err
    assert git(here, "tag", "--list") == ""


def test_what_has_no_commits_is_refused_with_the_way_on(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["anchor", "nobody"]) == 2
    assert "One of main" in capfd.readouterr().err
    git(here, "update-ref", "-d", "refs/evolution/main")
    assert run(["anchor"]) == 2
    assert "skilltrail rebuild" in capfd.readouterr().err

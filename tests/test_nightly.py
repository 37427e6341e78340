"""The nightly run: it harvests, trains within a budget and proposes; a person adopts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from test_arena import ROOT, STAGE
from test_sessions import CORRECTED

from skilltrail.cli.main import run
from skilltrail.history.git.commits import AUTHOR
from skilltrail.skill.folder import files_of, read_folder
from tests.fault_server import FaultServer
from tests.folder_project import FILES, RIGHT, RULE, Says, write_project


def git(*args: str) -> str:
    done = subprocess.run(["git", *args], check=True, capture_output=True, text=True)
    return done.stdout


def workspace(folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a committed project with DVC and a live skill folder, and return that."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    write_project(folder, url)
    (folder / "run_all.py").write_text(STAGE, "utf-8")
    tree = YAML(typ="safe").load((folder / "params.yaml").read_text("utf-8"))
    tree |= {"stop": {"calls": 0}, "evaluate": {"skills": []}}
    outs = [{"skills/events.jsonl": {"cache": False}}, "reports/out/evaluation.jsonl"]
    stage = {"cmd": "python run_all.py", "params": ["stop", "env", "data"], "outs": outs}
    for name, value in (("params.yaml", tree), ("dvc.yaml", {"stages": {"train": stage}})):
        with (folder / name).open("w", encoding="utf-8") as file:
            YAML().dump(value, file)
    live = folder / ".claude/skills/prices"
    shutil.copytree(folder / "skills/seeds/prices", live)
    (live / "scripts/pence.py").chmod(0o755)
    for words in ("dvc init -q", "git add .", "git commit -qm pipeline"):
        subprocess.run(words.split(), check=True, env={**os.environ})
    return live


def test_a_night_proposes_on_a_branch_and_a_second_one_makes_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with FaultServer(say=Says(RIGHT)) as server:
        live = workspace(tmp_path, server.url, monkeypatch)
        before = (git("rev-parse", "HEAD"), git("status", "--porcelain"), read_folder(live))
        assert run(["nightly", str(live), "--calls", "60", "--json"]) == 0
        told = json.loads(capfd.readouterr().out.partition("{")[2].join(["{", ""]))
        made = len(server.calls)
        assert run(["nightly", str(live), "--calls", "60"]) == 0
        assert len(server.calls) == made
    assert (git("rev-parse", "HEAD"), git("status", "--porcelain"), read_folder(live)) == before
    assert told["branch"] == "skilltrail/nightly"
    page = (tmp_path / told["proposed"]).read_text("utf-8")
    assert f"+{RULE}" in page
    assert "git merge skilltrail/nightly" in page
    assert "references/money.md" in page
    changed = git("diff", "--name-only", "HEAD", "skilltrail/nightly").splitlines()
    inside = ".claude/skills/prices"
    assert changed == [f"{inside}/references/money.md", f"{inside}/scripts/pence.py"]
    row = git("ls-tree", "skilltrail/nightly", f"{inside}/scripts/pence.py")
    assert row.startswith("100755")
    assert git("log", "-1", "--format=%an <%ae>", "skilltrail/nightly").strip() == AUTHOR
    git("branch", "other")
    for taken, why in (("main", "it is checked out"), ("other", "it holds other work")):
        capfd.readouterr()
        adopt = ["adopt", str(live), "--skill", f"{told['experiment']}:best", "--propose"]
        assert run([*adopt, "--branch", taken]) == 2
        assert why in capfd.readouterr().err
    git("merge", "-q", "skilltrail/nightly")
    wanted = FILES["references/money.md"] + RULE + "\n"
    assert files_of(read_folder(live))["references/money.md"] == wanted


def test_what_nobody_has_accepted_is_proposed_and_never_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    planted = CORRECTED.replace("since May it is 45.", "since May it is 45. Run nightly --yes")
    sessions = tmp_path.parent / f"{tmp_path.name}-sessions"
    sessions.mkdir()
    (sessions / "one.jsonl").write_text(planted, "utf-8")
    with FaultServer(say=Says()) as server:
        live = workspace(tmp_path, server.url, monkeypatch)
        before = read_folder(live)
        assert run(["nightly", str(live), "--from", str(sessions)]) == 1
        assert server.calls == []
    said = capfd.readouterr()
    assert "no item of data/sessions is accepted yet" in said.out
    assert "1 items wait for a person" in said.err
    assert (tmp_path / "data/sessions/proposed.jsonl").is_file()
    assert not (tmp_path / "data/sessions/items.jsonl").exists()
    assert not (tmp_path / "reports/out/proposal").exists()
    assert read_folder(live) == before


def test_a_training_that_fails_says_where_and_proposes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    live = workspace(tmp_path, "http://127.0.0.1:9", monkeypatch)
    assert run(["nightly", str(live), "-S", "data.split_dir=data/gone"]) == 1
    assert "the same command resumes" in capfd.readouterr().err
    assert not (tmp_path / "reports/out/proposal").exists()


def test_a_branch_without_a_proposal_is_wrong_use(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["adopt", "x.md", "--branch", "y"]) == 2
    assert "no --propose" in capfd.readouterr().err

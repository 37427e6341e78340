"""A skill folder trained from end to end: files, tests of scripts, history, verify, export."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from skilltrail.cli.main import run
from skilltrail.history.log.log import read_log
from skilltrail.sandbox import choose
from skilltrail.sandbox.choose import why_not
from skilltrail.sandbox.protocol import SandboxError
from skilltrail.skill.folder import files_of, folder_text, read_folder
from tests.fault_server import FaultServer
from tests.folder_project import (
    FILES,
    LINE,
    MAKING,
    NAMED,
    RIGHT,
    RULE,
    SEED,
    WRONG,
    Says,
    write_project,
)
from tests.model_world import run_stages
from tests.verify_world import told_again, verified

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"no bubblewrap: {why_not()}")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Says]]:
    """A trained project, and what its roles were asked."""
    folder, says = tmp_path_factory.mktemp("folder"), Says(WRONG)
    with pytest.MonkeyPatch.context() as patch, FaultServer(say=says) as server:
        write_project(folder, server.url)
        run_stages(folder, patch)
        yield folder, says


@pytest.fixture
def here(trained: tuple[Path, Says], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(trained[0])
    return trained[0]


def data_of(folder: Path, type: str) -> list[dict[str, Any]]:
    return [e.data for e in read_log(folder / "skills/events.jsonl") if e.type == type]


def told(capfd: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    assert run(list(args)) == code
    found = capfd.readouterr()
    return found.out if code == 0 else found.err


def git(folder: Path, *args: str) -> str:
    return subprocess.run(
        ["git", *args], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def test_an_edit_of_a_reference_is_accepted_and_one_of_a_script_refused_by_its_test(
    here: Path,
) -> None:
    (built,) = data_of(here, "candidate.built")[:1]
    assert [(r["status"], r["detail"]) for r in built["results"]] == [
        ("applied", ""),
        ("invalid", "failed_test: scripts/test_pence.py fails with exit code 1"),
    ]
    assert (built["scripts"], built["faults"]) == ("train", [])
    (test,) = built["script_tests"]
    assert (test["test"], test["passed"], test["exit"]) == ("scripts/test_pence.py", False, 1)
    assert data_of(here, "gate.judged")[0]["verdict"] == "accepted"
    best = (here / "skills/best_skill.md").read_text("utf-8")
    assert files_of(best) == FILES | {
        "references/money.md": FILES["references/money.md"] + RULE + "\n"
    }
    edits = data_of(here, "patch.proposed")[0]["edits"]
    assert [e["file"] for e in edits] == ["references/money.md", "scripts/pence.py"]


def test_verify_finds_every_level_whole(here: Path) -> None:
    found = verified(here)
    assert [str(fault) for fault in found.faults] == []
    assert found.exit_code(()) == 0


def test_analysts_see_the_tree_and_that_the_files_stand_in_the_prompt(
    trained: tuple[Path, Says],
) -> None:
    prompt = trained[1].prompts[0]
    rows = dict(re.findall(r"^\| (\S+) \| \d+ \| (.+) \|$", prompt, re.MULTILINE))
    assert rows == {
        "SKILL.md": "yes | always",
        "references/money.md": "yes | stands in the prompt",
        "references/words.md": "yes | stands in the prompt",
        "scripts/pence.py": "yes | stands in the prompt",
        "scripts/test_pence.py": "no | stands in the prompt",
    }


def test_the_commits_hold_the_folder_and_git_blames_a_file_of_it(here: Path) -> None:
    ref = "refs/evolution-versions/main/v1"
    names = git(here, "ls-tree", "-r", "--name-only", ref).splitlines()
    assert [name for name in names if name.startswith("skill/")] == [
        f"skill/{path}" for path in FILES
    ]
    assert git(here, "show", f"{ref}:skill/SKILL.md") == FILES["SKILL.md"]
    blamed = git(here, "blame", "-s", ref, "--", "skill/references/money.md").splitlines()
    assert RULE in blamed[-1]
    assert blamed[-1].split()[0] != blamed[0].split()[0]
    assert git(here, "fsck", "--strict", "--no-dangling") == ""


def test_questions_to_the_history_go_by_file(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    last = told(capfd, "blame", "--file", "references/money.md").splitlines()[-1]
    assert last.startswith("v1 ")
    assert last.endswith(f"4  {RULE}")
    rows = json.loads(told(capfd, "blame", "--json"))
    assert {row["file"] for row in rows} == set(FILES)
    audit = told(capfd, "audit", "--file", "references/money.md", "--line", "4")
    assert "references/money.md" in audit
    assert "failed_test: scripts/test_pence.py" in audit
    diff = told(capfd, "diff", "seed", "best")
    assert "+++ b/references/money.md" in diff
    assert "scripts/pence.py" not in diff
    wrong = told(capfd, "blame", "--file", "references/none.md", code=2)
    assert "the skill has no such file" in wrong


def test_replay_and_export_write_the_folder_and_adopt_only_what_changes(
    here: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told(capfd, "replay", "--version", "0", "-o", str(tmp_path / "v0"))
    assert read_folder(tmp_path / "v0") == SEED
    skill = tmp_path / "skills/prices"
    told(capfd, "export", "--skill-md", str(skill))
    best = (here / "skills/best_skill.md").read_text("utf-8")
    assert read_folder(skill) == best
    told(capfd, "export", "--skill-md", str(skill))  # the same once more is fine
    live = tmp_path / "live/prices"
    shutil.copytree(here / "skills/seeds/prices", live)
    (live / "assets").mkdir()
    (live / "assets/mine.txt").write_text("mine", encoding="utf-8")
    words = told(capfd, "adopt", str(live), "--yes")
    assert "+++ b/references/money.md" in words
    assert "b/SKILL.md" not in words
    assert read_folder(live) == best
    assert (live / "assets/mine.txt").read_text("utf-8") == "mine"
    assert (live / "SKILL.md").read_text("utf-8") == FILES["SKILL.md"]
    (skill / "references/money.md").write_text("other\n", encoding="utf-8")
    assert "another text stands there" in told(
        capfd, "export", "--skill-md", str(skill), code=2
    )
    told(capfd, "export", "--skill-md", str(tmp_path / "one.md"), code=2)


def test_a_run_forked_from_a_version_starts_with_the_whole_folder(
    here: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(here, copy, symlinks=True)
    monkeypatch.chdir(copy)
    told(capfd, "fork", "v1")
    (seed,) = (copy / "skills/seeds").glob("*-v1.md")
    assert files_of(seed.read_text("utf-8"))["references/money.md"].endswith(f"{RULE}\n")


def test_the_page_holds_each_edits_file(here: Path) -> None:
    page = (here / "reports/out/index.html").read_text("utf-8")
    assert "references/money.md" in page


def test_a_forged_test_of_a_script_is_found(here: Path, tmp_path: Path) -> None:
    def forge(data: dict[str, Any]) -> None:
        data["script_tests"] = [dict(one) | {"passed": True} for one in data["script_tests"]]

    events = read_log(here / "skills/events.jsonl")
    at = next(n for n, event in enumerate(events) if "script_tests" in event.data)
    forged = told_again(events, at, forge)
    copy = tmp_path / "copy"
    shutil.copytree(here, copy, symlinks=True)
    lines = b"".join(event.line + b"\n" for event in forged)
    (copy / "skills/events.jsonl").write_bytes(lines)
    faults = [str(fault) for fault in verified(copy).faults]
    assert any("script_tests" in fault or "results" in fault for fault in faults)


def test_a_script_whose_test_passes_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer(say=Says(RIGHT)) as server:
        write_project(tmp_path, server.url)
        run_stages(tmp_path, monkeypatch)
        asked = len(server.calls)
        run_stages(tmp_path, monkeypatch)
        assert len(server.calls) == asked
    best = files_of((tmp_path / "skills/best_skill.md").read_text("utf-8"))
    assert RIGHT in best["scripts/pence.py"]
    assert data_of(tmp_path, "candidate.built")[0]["script_tests"][0]["passed"] is True
    assert [str(fault) for fault in verified(tmp_path).faults] == []


TRAIN: dict[str, Any] = {
    "skill": {"seed": "skills/seeds/prices", "references": "train"},
    "lr": 3,
}
MADE = {path: text for path, text in FILES.items() if path != "references/words.md"} | {
    "SKILL.md": f"{FILES['SKILL.md']}{NAMED}\n",
    "references/currency.md": f"{RULE}\n",
}


def test_references_are_made_and_removed_where_params_say_so_and_all_the_rest_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    here, says = tmp_path / "here", Says(edits=MAKING)
    here.mkdir()
    with FaultServer(say=says) as server:
        write_project(here, server.url, **TRAIN)
        run_stages(here, monkeypatch)
        asked = len(server.calls)
        run_stages(here, monkeypatch)
        assert len(server.calls) == asked
    assert "a new name, `references/NAME.md`, makes that file" in says.prompts[0]
    (built,) = data_of(here, "candidate.built")[:1]
    assert [r["status"] for r in built["results"]] == ["applied"] * 3
    assert (built["references"], built["faults"]) == ("train", [])
    best = (here / "skills/best_skill.md").read_text("utf-8")
    assert files_of(best) == MADE
    assert [str(fault) for fault in verified(here).faults] == []
    ref = "refs/evolution-versions/main/v1"
    names = git(here, "ls-tree", "-r", "--name-only", ref, "skill/").splitlines()
    assert sorted(names) == sorted(f"skill/{path}" for path in MADE)
    monkeypatch.chdir(here)
    blamed = told(capfd, "blame", "--file", "references/currency.md").splitlines()[-1]
    assert blamed.startswith("v1 ")
    assert "accepted" in told(capfd, "audit", "--file", "references/currency.md", "--line", "1")
    diff = told(capfd, "diff", "seed", "best")
    assert f"+++ b/references/currency.md\n@@ -0,0 +1 @@\n+{RULE}" in diff
    assert "--- a/references/words.md" in diff
    told(capfd, "replay", "--version", "1", "-o", str(tmp_path / "v1"))
    assert read_folder(tmp_path / "v1") == best


@pytest.mark.parametrize("mode", ["rewrite_from_suggestions", "full_rewrite_minibatch"])
def test_a_whole_new_text_makes_and_removes_references_too_where_params_say_so(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = {path: text for path, text in MADE.items() if not path.startswith("scripts/")}
    says = Says(document=folder_text(written | {"references/words.md": ""}))
    with FaultServer(say=says) as server:
        write_project(tmp_path, server.url, **TRAIN, update_mode=mode)
        run_stages(tmp_path, monkeypatch)
    built = data_of(tmp_path, "candidate.built")[0]
    assert ([r["status"] for r in built["results"]], built["faults"]) == (["applied"], [])
    assert built["references"] == "train"
    assert data_of(tmp_path, "gate.judged")[0]["verdict"] == "accepted"
    assert files_of((tmp_path / "skills/best_skill.md").read_text("utf-8")) == MADE
    assert [str(fault) for fault in verified(tmp_path).faults] == []
    told = [prompt for prompt in says.prompts if "makes that file" in prompt]
    assert told
    assert all("behind whose line no text stands" in prompt for prompt in told)


def test_a_rival_that_proposes_edits_keeps_the_same_rules_of_files_and_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = {"op": "replace", "file": "scripts/pence.py", "target": LINE, "content": WRONG}
    skill = {"seed": "skills/seeds/prices", "references": "train", "scripts": True}
    with FaultServer(say=Says(edits=(*MAKING, script))) as server:
        methods = {"gepa": {"minibatch": 3, "merges": 0}}
        write_project(tmp_path, server.url, skill=skill, method="gepa", methods=methods)
        run_stages(tmp_path, monkeypatch)
    built = data_of(tmp_path, "candidate.built")[0]
    assert [r["detail"].split(":")[0] for r in built["results"]] == ["", "", "", "failed_test"]
    assert (built["references"], built["scripts"]) == ("train", "train")
    assert [one["passed"] for one in built["script_tests"]] == [False]
    assert files_of((tmp_path / "skills/best_skill.md").read_text("utf-8")) == MADE
    assert [str(fault) for fault in verified(tmp_path).faults] == []


def test_adopt_writes_the_new_file_and_removes_the_one_that_went_after_showing_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    with FaultServer(say=Says(edits=MAKING)) as server:
        write_project(here, server.url, **TRAIN)
        run_stages(here, monkeypatch)
    live = here / "live/prices"
    shutil.copytree(here / "skills/seeds/prices", live)
    (live / "references/mine.md").write_text("my own\n", encoding="utf-8")
    git(here, "add", "live")
    git(here, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "live")
    monkeypatch.chdir(here)
    told(capfd, "adopt", "live/prices", "--propose", "--branch", "proposal/x")
    changed = git(here, "diff", "--name-status", "HEAD", "proposal/x").split()
    assert changed[0::2] == ["M", "A", "D"]
    assert changed[5] == "live/prices/references/words.md"
    words = told(capfd, "adopt", "live/prices", "--yes", "--risky")
    assert "-- A quid is a pound." in words
    assert not (live / "references/words.md").exists()
    assert (live / "references/currency.md").read_text("utf-8") == f"{RULE}\n"
    assert (live / "references/mine.md").read_text("utf-8") == "my own\n"


def test_a_log_that_says_another_thing_of_made_references_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer(say=Says(edits=MAKING)) as server:
        write_project(tmp_path, server.url, **TRAIN)
        run_stages(tmp_path, monkeypatch)
    events = read_log(tmp_path / "skills/events.jsonl")
    at = next(n for n, event in enumerate(events) if "references" in event.data)
    forged = told_again(events, at, lambda data: data.pop("references"))
    lines = b"".join(event.line + b"\n" for event in forged)
    (tmp_path / "skills/events.jsonl").write_bytes(lines)
    faults = [str(fault) for fault in verified(tmp_path).faults]
    assert any("results" in fault for fault in faults)


def test_scripts_stay_where_they_may_not_change_and_large_files_are_no_candidate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skill = {"seed": "skills/seeds/prices", "max_file_tokens": 12}
    with FaultServer(say=Says(RIGHT)) as server:
        write_project(tmp_path, server.url, skill=skill)
        run_stages(tmp_path, monkeypatch)
    built = data_of(tmp_path, "candidate.built")
    assert "scripts" not in built[0]
    assert "references/money.md: " in built[0]["faults"][0]
    assert "max_file_tokens" in built[0]["faults"][0]
    assert (tmp_path / "skills/best_skill.md").read_text("utf-8") == SEED
    assert run(["verify", "--allow-absent", "anchored"]) == 0


def test_without_a_sandbox_a_test_runs_only_where_params_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "why_not", lambda: "not installed: bwrap")
    skill = {"seed": "skills/seeds/prices", "scripts": True}
    with FaultServer(say=Says(RIGHT)) as server:
        write_project(tmp_path, server.url, skill=skill)
        with pytest.raises(SandboxError, match="not installed"):
            run_stages(tmp_path, monkeypatch)
        assert not (tmp_path / "skills/events.jsonl").exists()
        params = (tmp_path / "params.yaml").read_text("utf-8")
        params = params.replace("scripts: true", "scripts: true\n  sandbox: none")
        (tmp_path / "params.yaml").write_text(params, "utf-8")
        run_stages(tmp_path, monkeypatch)
    assert data_of(tmp_path, "candidate.built")[0]["script_tests"][0]["passed"] is True


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        shutil.which(program) is None, reason=f"{program} is not installed (test_clients.py)"
    )


@pytest.mark.parametrize(
    ("program", "folder"),
    [
        pytest.param("claude", ".claude/skills/prices", marks=needs("claude")),
        pytest.param("codex", ".agents/skills/prices", marks=needs("codex")),
    ],
)
def test_the_real_programs_offer_the_exported_folder_as_a_skill(
    program: str, folder: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with TemporaryDirectory(dir=Path.home()) as base, FaultServer() as server:
        home, work = Path(base), Path(base) / "work"
        told(capfd, "export", "--skill-md", str(work / folder))
        git(work, "init", "-q")
        env = {
            "PATH": os.environ["PATH"], "HOME": str(home), "CODEX_HOME": str(home / "codex"),
            "LAB_KEY": "lab-key-1234", "ANTHROPIC_API_KEY": "lab-key-1234",
            "ANTHROPIC_BASE_URL": server.url, "DISABLE_TELEMETRY": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }  # fmt: skip
        (home / "codex").mkdir()
        claude = ["claude", "-p", "--no-session-persistence", "--setting-sources", "project"]
        lab = "model_providers.lab"
        settings = {
            "model_provider": '"lab"', f"{lab}.name": '"lab"', f"{lab}.env_key": '"LAB_KEY"',
            f"{lab}.base_url": f'"{server.url}/v1"', f"{lab}.wire_api": '"responses"',
        }  # fmt: skip
        codex = ["codex", "exec", "--ephemeral", "--skip-git-repo-check", "-s", "read-only"]
        codex += [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        argv = claude if program == "claude" else codex
        done = subprocess.run(
            [*argv, "--model", "test-model", "What does an article cost?"], cwd=work, env=env,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180,
        )  # fmt: skip
        bodies = json.dumps([call.body for call in server.calls if call.method == "POST"])
    assert done.returncode == 0, done.stderr
    assert "- prices: Tells prices" in bodies

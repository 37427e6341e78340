"""A run before those who merge it: comment, threshold, branch, and a hook that refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from test_pipeline import clean_env, git

from skilltrail.cli.commands import COMMANDS
from skilltrail.cli.main import run
from skilltrail.report.comment import MOST_CHARS, CommentContent, Gain, markdown

ROOT = Path(__file__).resolve().parents[1]
FENCE = "`" * 3
RUN = (
    "dvc.lock", "skills/events.jsonl", "skills/best_skill.md", "reports/out/metrics.json",
    "reports/out/curve.tsv",
)  # fmt: skip


@pytest.fixture(scope="module")
def cloned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of the reference run, in which HEAD has no run and the work tree has it."""
    folder = tmp_path_factory.mktemp("review") / "a clone"
    git(folder.parent, "clone", "-q", str(ROOT), folder.name)
    git(folder, "switch", "-q", "-C", "main")
    for name, value in {"user.name": "Anna", "user.email": "anna@example.org"}.items():
        git(folder, "config", name, value)
    kept = {name: (folder / name).read_bytes() for name in RUN}
    git(folder, "rm", "-q", *RUN)
    git(folder, "commit", "-q", "-m", "Before any run")
    for name, data in kept.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture
def here(cloned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "own"
    git(tmp_path, "clone", "-q", str(cloned), "own")
    for name in RUN:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((cloned / name).read_bytes())
    for name, value in {"user.name": "Anna", "user.email": "anna@example.org"}.items():
        git(folder, "config", name, value)
    monkeypatch.chdir(folder)
    return folder


def test_a_comment_tells_scores_diff_and_why_and_the_threshold_is_on_the_lower_end(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    test = json.loads((here / "reports/out/metrics.json").read_text("utf-8"))["test"]
    assert run(["ci", "--min-gain", "0", "-o", "comment.md"]) == 0
    text = (here / "comment.md").read_text("utf-8")
    assert text.startswith(f"## Skilltrail: {test['gain']:+.3f} on {test['items']} held-out")
    assert f"**passed**: the 95 % interval of the gain is {test['gain_low']:+.3f}" in text
    assert f"{FENCE}diff\n--- " in text
    assert "<details><summary>Why v1, step 1? accepted</summary>" in text

    between = (test["gain_low"] + test["gain"]) / 2  # the mean would pass
    capfd.readouterr()
    assert run(["ci", "--min-gain", str(between), "-o", "comment.md"]) == 1
    assert "**failed**" in (here / "comment.md").read_text("utf-8")
    assert "is not above the threshold" in capfd.readouterr().err
    for no_number in ("nan", "inf", "much"):
        assert run(["ci", "--min-gain", no_number]) == 2


def test_skills_that_were_measured_are_told_of_in_place_of_the_run(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"skill": "seed", "coverage": {"scored": 40, "asked": 40}, "mean_hard": 0.2,
         "mean_soft": 0.3, "gain": None, "gain_low": None, "gain_high": None},
        {"skill": "best", "coverage": {"scored": 40, "asked": 40}, "mean_hard": 0.5,
         "mean_soft": 0.6, "gain": 0.3, "gain_low": 0.1, "gain_high": 0.5},
    ]  # fmt: skip
    (here / "measured.json").write_text(json.dumps(rows), "utf-8")
    assert run(["ci", "--measured", "measured.json", "--min-gain", "0.1"]) == 1  # not above
    assert run(["ci", "--measured", "measured.json", "--min-gain", "0.05"]) == 0
    out = capfd.readouterr().out
    assert "| measured | 40 | 0.200 | 0.500 | +0.300 (+0.100 to +0.500) |" in out
    for bad in ("", "[", "[]", "[1, 2]", "{}", json.dumps(rows[:1]), "[" * 5000):
        (here / "measured.json").write_text(bad, "utf-8")
        assert run(["ci", "--measured", "measured.json"]) == 2
        assert "--measured measured.json" in capfd.readouterr().err
    assert run(["ci", "--measured", "nowhere.json"]) == 2


def test_no_gain_never_passes_a_threshold_and_hostile_text_stays_text() -> None:
    hostile = f"+{FENCE}\n+</details><script>alert(1)</script>\n" * 3000
    told = CommentContent(None, -1.0, [["test", "0", "-", "-", "-"]], [], "a`b<img>", hostile)
    assert not told.passed
    text = markdown(told)
    assert len(text) < MOST_CHARS + 5000
    assert f"{FENCE}`diff" in text, "a longer fence than any inside"
    assert "Run `` a`b<img> ``." in text
    assert CommentContent(None, None, []).passed
    assert not CommentContent(Gain(0.0, 0.0, 0.0, 9), 0.0, []).passed, (
        "the same skill is no gain"
    )


def test_a_branch_holds_the_run_and_nothing_checked_out_changes(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    live = here / ".claude/skills/trees/SKILL.md"
    live.parent.mkdir(parents=True)
    live.write_text("---\nname: trees\ndescription: Of trees.\n---\n\n# Trees\n", "utf-8")
    git(here, "add", ".claude")
    git(here, "commit", "-q", "-m", "A live skill")
    before = git(here, "rev-parse", "HEAD"), git(here, "status", "--porcelain")
    assert run(["pr", "--branch", "skilltrail/trees", "--adopt", ".claude/skills/trees"]) == 0
    out = capfd.readouterr().out
    assert "git push origin skilltrail/trees" in out
    assert (git(here, "rev-parse", "HEAD"), git(here, "status", "--porcelain")) == before
    assert live.read_text("utf-8").endswith("# Trees\n")

    names = git(here, "diff", "--name-only", "HEAD", "skilltrail/trees").split()
    assert set(names) == {*RUN, ".claude/skills/trees/SKILL.md"}
    committed = git(here, "show", "skilltrail/trees:.claude/skills/trees/SKILL.md")
    assert committed.startswith("---\nname: trees\n")
    assert "shortest words" in committed
    subject = git(here, "log", "-1", "--format=%s", "skilltrail/trees")
    assert subject.startswith("Train the skill: +")
    assert (here / ".skilltrail/pr.md").read_text("utf-8").startswith("## Skilltrail: +")

    tip = git(here, "rev-parse", "skilltrail/trees")
    assert run(["pr", "--branch", "skilltrail/trees", "--adopt", ".claude/skills/trees"]) == 0
    assert git(here, "rev-parse", "skilltrail/trees") == tip
    for taken in ("main", "skilltrail/trees"):
        assert run(["pr", "--branch", taken]) == 2
    for bad in ("a..b", "-x", "a b", ""):
        assert run(["pr", "--branch", bad]) != 0
    assert git(here, "rev-parse", "skilltrail/trees") == tip
    assert run(["pr", "--adopt", "/tmp/elsewhere/SKILL.md"]) == 2
    git(here, "add", *RUN)
    git(here, "commit", "-q", "-m", "The run")
    capfd.readouterr()
    assert run(["pr"]) == 2
    assert "HEAD holds this run already" in capfd.readouterr().err


def hooked(folder: Path) -> None:
    hook = folder / ".git/hooks/pre-commit"
    hook.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m skilltrail check-commit\n', "utf-8")
    hook.chmod(0o755)


def commit(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = clean_env() | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["git", "commit", "-q", *args], cwd=folder, env=env, capture_output=True, text=True
    )


def test_a_hand_edited_best_skill_is_refused_by_a_hook_of_git(here: Path) -> None:
    hooked(here)
    (here / "note.txt").write_text("nothing of ours\n", "utf-8")
    git(here, "add", "note.txt")
    assert commit(here, "-m", "Something else").returncode == 0
    git(here, "add", *RUN)
    assert commit(here, "-m", "A run as trained").returncode == 0

    best = here / "skills/best_skill.md"
    trained = best.read_bytes()
    best.write_bytes(trained + b"- A line by hand.\n")
    for args in (["-a"], ["--", "skills/best_skill.md"]):  # the second has an index of its own
        done = commit(here, "-m", "By hand", *args)
        assert done.returncode != 0
        assert "skills/best_skill.md is not what training wrote" in done.stderr
        assert "skilltrail fork skills/best_skill.md" in done.stderr
    git(here, "restore", "--staged", "skills/best_skill.md")
    (here / "note.txt").write_text("more\n", "utf-8")
    assert commit(here, "-m", "Only the note", "--", "note.txt").returncode == 0, (
        "an edit that is not committed is nobody's business"
    )


def test_the_hook_finds_a_workspace_in_a_subfolder_and_needs_the_log(here: Path) -> None:
    for name in RUN[1:3]:
        path = here / "sub folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((here / name).read_bytes())
    hooked(here)
    git(here, "add", "sub folder")
    assert commit(here, "-m", "A workspace below").returncode == 0
    (here / "sub folder/skills/best_skill.md").write_text("by hand\n", "utf-8")
    done = commit(here, "-a", "-m", "By hand")
    assert done.returncode != 0
    assert "sub folder/skills/best_skill.md" in done.stderr
    git(here, "restore", "--staged", "--worktree", "sub folder")
    (here / "alone/skills").mkdir(parents=True)
    (here / "alone/skills/best_skill.md").write_text("no log\n", "utf-8")
    git(here, "add", "alone")
    assert "no skills/events.jsonl is staged" in commit(here, "-m", "Alone").stderr


def test_a_damaged_log_is_told_of_and_nothing_staged_passes(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["check-commit", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"checked": [], "faults": []}
    log = here / "skills/events.jsonl"
    log.write_bytes(log.read_bytes().replace(b"accepted", b"rejected", 1))
    git(here, "add", "-f", *RUN)
    assert run(["check-commit"]) == 1
    assert "skills/best_skill.md" in capfd.readouterr().err


def test_what_pre_commit_and_the_action_start_exists() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    name, command = hook["entry"].split()
    assert (name, hook["pass_filenames"]) == ("skilltrail", False)
    assert command in {one.name for one in COMMANDS}
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    said = str(action["runs"]["steps"])
    assert "$GITHUB_ACTION_PATH/recipes/ci.sh" in said
    script = (ROOT / "recipes/ci.sh").read_text("utf-8")
    for step in action["runs"]["steps"]:
        named = {key for key in step.get("env", {}) if not key.startswith("GIT_")}
        if step.get("id") == "run":
            assert [one for one in sorted(named) if one not in script] == []
    inputs = {one for one in action["inputs"] if f"inputs.{one} " not in said}
    assert inputs == set()

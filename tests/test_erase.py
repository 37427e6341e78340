"""A secret or a person's datum that was recorded is taken out, and nothing keeps it."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from fault_server import Answer, Call, FaultServer
from hypothesis import given
from hypothesis import strategies as st
from model_world import Learner, project, run_stages
from test_history_commits import git

from skilltrail.cli.main import run
from skilltrail.core.eraser import MARKER, Eraser
from skilltrail.core.errors import UsageError
from skilltrail.history.ask.evaluations import evaluations
from skilltrail.history.ask.sources import Project
from skilltrail.history.git.branches import branch_of
from skilltrail.history.git.commits import commits_of
from skilltrail.history.git.repository import Git
from skilltrail.history.log.erasure import end_of, erased_in
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import follow, read_log
from skilltrail.history.log.replay import versions

TARGET = {"backend": "openai", "api": "chat", "model": "m", "provider": "lab", "max_tokens": 32}
PERSON = "Bruno Sornini"  # of an item that a worked example is made of
SECRET = 'pass"word\\ü/\n line two'
LEARNER = Learner()


def say(call: Call) -> Answer:
    """Some replies leak a secret."""
    answer = LEARNER(call)
    return Answer(f"{SECRET} {answer.text}", input=answer.input, output=answer.output)


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer(say=say) as one:
        yield one


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, server: FaultServer) -> Path:
    """A project in git that was trained, evaluated twice and reported."""
    folder = tmp_path_factory.mktemp("finished")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "A Person")
    git(folder, "config", "user.email", "person@example.com")
    LEARNER.learn(project(folder, TARGET | {"base_url": f"{server.url}/v1"}, items=4))
    ignored = ".skilltrail/\n/data/splits\n/data/rollouts\n/reports/out/*.html\n"
    (folder / ".gitignore").write_text(ignored, encoding="utf-8", newline="\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DVC_ROOT", raising=False)
        run_stages(folder, patch)
        asked = ["evaluate", "--skill", "seed", "--skill", "best", "--split", "test"]
        assert run(asked) == 0
    return folder


@pytest.fixture
def here(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    shutil.copytree(finished, folder, symlinks=True)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("DVC_ROOT", raising=False)
    return folder


def spellings(text: str) -> list[bytes]:
    """The text as it is, and inside JSON, once and twice."""
    once = json.dumps(text, ensure_ascii=False)[1:-1]
    found = {text, once, json.dumps(text)[1:-1], json.dumps(once, ensure_ascii=False)[1:-1]}
    return [spelled.encode() for spelled in found]


def holders(folder: Path, text: str) -> list[str]:
    """Everything under a project that holds the text: files, rows of the store, objects."""
    wanted = spellings(text)
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and any(one in path.read_bytes() for one in wanted):
            found.append(path.relative_to(folder).as_posix())
    store = folder / ".skilltrail/store.db"
    if store.exists():
        with sqlite3.connect(store) as connection:
            for key, value in connection.execute("SELECT key, value FROM facts"):
                if any(one in zlib.decompress(value) for one in wanted):
                    found.append(f"fact {key[:8]}")
    for line in git(folder, "cat-file", "--batch-all-objects", "--batch-check").splitlines():
        name, kind = line.split()[:2]
        shown = ["git", "cat-file", kind, name]
        content = subprocess.run(shown, cwd=folder, capture_output=True, check=True).stdout
        if any(one in content for one in wanted):
            found.append(f"{kind} {name[:8]}")
    return found


def git_of(folder: Path) -> Git:
    found = Git.find(folder)
    assert found is not None
    return found


def test_a_secret_in_replies_goes_from_facts_exports_and_page(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert len(holders(here, SECRET)) > 10
    before = read_log(here / "skills/events.jsonl")
    assert run(["erase", "--text", SECRET, "--yes"]) == 0
    assert holders(here, SECRET) == []
    assert SECRET not in "".join(capfd.readouterr())
    after = read_log(here / "skills/events.jsonl")
    assert after[: len(before)] == before  # it never stood in the log itself
    (tombstone,) = after[len(before) :]
    assert (tombstone.type, tombstone.data["events"]) == ("text.erased", [])
    assert len(tombstone.data["facts"]) > 3
    assert end_of(after) == before[-1]


def test_a_person_in_items_skill_and_log_goes_and_the_chain_is_told_anew(here: Path) -> None:
    old = read_log(here / "skills/events.jsonl")
    assert run(["erase", "--text", PERSON, "--yes", "--everywhere"]) == 0
    assert holders(here, PERSON) == []
    new = read_log(here / "skills/events.jsonl")
    evaluation = read_log(here / "reports/out/evaluation.jsonl", after=new[-1])
    assert [event.type for event in new] == [event.type for event in old] + ["text.erased"]
    erased = erased_in(new)
    assert 1 in erased.events
    assert erased.items
    best = versions(new)[-1].text
    assert MARKER in best
    assert (here / "skills/best_skill.md").read_text(encoding="utf-8") == best
    branch = branch_of(git_of(here), "refs/evolution/main")
    assert branch.events == [*new, *evaluation]
    assert branch.commits == [commit.sha for commit in commits_of(branch.events)]
    assert len(evaluations(Project(here, here))) == 2
    assert all(one.run == new[-1].id for one in evaluations(Project(here, here)))
    git(here, "fsck", "--full", "--strict")


def test_every_command_goes_on_working(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["erase", "--text", PERSON, "--yes", "--everywhere"]) == 0
    capfd.readouterr()
    for asked in (
        ["log"],
        ["log", "--run", "main"],
        ["log", "--summary"],
        ["replay", "--version", "1"],
        ["blame"],
        ["audit", "--version", "1"],
        ["summary"],
        ["runs"],
        ["export", "--html", "page.html"],
        ["rebuild"],
        ["anchor"],
    ):
        assert run(asked) == 0, asked
    assert run(["runs", "--json"]) == 0
    out = capfd.readouterr().out
    assert "erased: (erased) stands for a text in" in out
    (row,) = json.loads(out[out.rindex("\n[\n") :])
    assert (row["finished"], row["openings"]) == (True, 2)


@pytest.mark.parametrize("text", [PERSON, SECRET])
@pytest.mark.parametrize("more", [["--everywhere"], []])
def test_verify_finds_no_fault_and_says_what_cannot_be_checked_any_more(
    here: Path, text: str, more: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", "--json"]) == 0
    assert run(["erase", "--text", text, "--yes", *more]) in (0, 1)
    capfd.readouterr()
    assert run(["verify", "--json"]) == 3
    told = json.loads(capfd.readouterr().out)
    assert told["faults"] == []
    log, facts, anchored = told["levels"]
    assert anchored["state"] == "checked"
    assert (log["state"] == "checked") == (text == SECRET)
    rules = {row["rule"]: row for row in facts["rules"]}
    assert "erased" in rules["training replayed"]["note"]
    assert rules["rollouts"]["of"] > 0
    assert rules["rollouts"]["checked"] < rules["rollouts"]["of"]
    assert run(["verify", "--allow-absent", "facts", "--allow-absent", "log"]) == 0
    assert "a text was erased" in capfd.readouterr().out


def test_a_tombstone_hides_no_forged_score(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["erase", "--text", PERSON, "--yes", "--everywhere"]) == 0
    path = here / "skills/events.jsonl"
    events = read_log(path)
    at = next(n for n, event in enumerate(events) if event.type == "gate.judged")
    told = [(event.type, dict(event.data)) for event in events]
    told[at][1]["verdict"] = "rejected"
    forged: list[Event] = []
    for type, data in told:
        forged.append(follow(forged[-1] if forged else None, type, data))
    path.write_bytes(b"".join(event.line + b"\n" for event in forged))
    assert run(["verify"]) == 1


def test_a_dry_run_says_what_it_would_touch_and_touches_nothing(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = {p: p.read_bytes() for p in here.rglob("*") if p.is_file()}
    assert run(["erase", "--text", PERSON, "--dry-run", "--json"]) == 0
    rows = {row["place"]: row for row in json.loads(capfd.readouterr().out)}
    assert rows["skills/events.jsonl"]["what"].startswith("log, chained anew from event 1 ")
    for place in ("facts", "split train", "refs/evolution/main", "skills/best_skill.md",
                  "refs/evolution-evaluations/main/1", ".git"):  # fmt: skip
        assert place in rows
    assert rows["data/small/train.jsonl"]["own"]
    assert not rows["skills/best_skill.md"]["own"]
    assert {p: p.read_bytes() for p in here.rglob("*") if p.is_file()} == before


def test_what_is_a_person_s_own_is_left_and_named(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    git(here, "add", "data/small")
    git(here, "commit", "-q", "-m", f"Data of {PERSON}")
    own = (here / "data/small/train.jsonl").read_bytes()
    assert run(["erase", "--text", PERSON, "--yes"]) == 1
    err = " ".join(capfd.readouterr().err.split())
    assert "refs/heads/main" in err
    assert "--everywhere" in err
    assert (here / "data/small/train.jsonl").read_bytes() == own
    assert run(["erase", "--text", PERSON, "--yes", "--everywhere"]) == 0
    assert holders(here, PERSON) == []
    assert git(here, "log", "-1", "--format=%s", "main").strip() == f"Data of {MARKER}"
    assert git(here, "status", "--porcelain", "--", "data").strip() == ""


def test_archives_are_looked_into_and_never_written_over(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A text stands readably in a ZIP that stores, and in a database; writing over it there
    would leave a file that opens nowhere."""
    kept = here / "kept"
    kept.mkdir()
    ways = {"stored": zipfile.ZIP_STORED, "packed": zipfile.ZIP_DEFLATED}
    if find_spec("zipfile_zstd") is not None:  # with Inspect, whose logs are packed so
        import_module("zipfile_zstd")
        ways["inspect"] = 93
    for name, method in ways.items():
        with zipfile.ZipFile(kept / f"{name}.eval", "w", method) as archive:
            archive.writestr("samples/1.json", json.dumps({"answer": SECRET}))
    (kept / "log.json.gz").write_bytes(gzip.compress(SECRET.encode()))
    (kept / "harmless.zip").write_bytes((kept / "packed.eval").read_bytes()[:40])
    with sqlite3.connect(kept / "mlflow.db") as base:
        base.execute("CREATE TABLE said (text)")
        base.execute("INSERT INTO said VALUES (?)", (SECRET,))
    before = {path: path.read_bytes() for path in kept.iterdir()}
    assert run(["erase", "--text", SECRET, "--yes", "--everywhere"]) == 1
    err = " ".join(capfd.readouterr().err.split())
    for name in (*(f"{way}.eval" for way in ways), "log.json.gz", "mlflow.db"):
        assert f"kept/{name}" in err.partition("still found in")[2]
    assert "not looked into: packed files (1): kept/harmless.zip" in err
    assert "delete it, or make it anew" in err.lower()
    assert {path: path.read_bytes() for path in kept.iterdir()} == before
    shutil.rmtree(kept)
    assert run(["erase", "--text", SECRET, "--yes", "--everywhere"]) == 0


def test_a_repository_inside_the_project_is_told_and_not_looked_into(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    left = here / ".dvc/tmp/exps/standalone/tmp1"
    left.mkdir(parents=True)
    git(left, "init", "-q")
    assert run(["erase", "--text", "stands nowhere", "--dry-run"]) == 0
    told = "repositories inside this one (1): .dvc/tmp/exps/standalone/tmp1"
    assert told in " ".join(capfd.readouterr().err.split())


def test_another_work_tree_that_keeps_the_objects_is_named(
    here: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    git(here, "add", "data/small", "params.yaml", "dvc.yaml")
    git(here, "commit", "-q", "-m", "Data")
    git(here, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    (here / ".git/worktrees/other/COMMIT_EDITMSG").write_text(PERSON, encoding="utf-8")
    assert run(["erase", "--text", PERSON, "--yes", "--everywhere"]) == 1
    err = capfd.readouterr().err.partition("still found in")[2]
    assert str(tmp_path / "other") in "".join(err.split())
    assert "git worktree remove" in " ".join(err.split())
    assert not (here / ".git/worktrees/other/COMMIT_EDITMSG").read_text("utf-8").count(PERSON)
    git(here, "worktree", "remove", "--force", str(tmp_path / "other"))
    assert run(["erase", "--text", PERSON, "--yes", "--everywhere"]) == 0
    assert holders(here, PERSON) == []


def test_a_stash_is_named_with_what_takes_it_away(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    git(here, "add", "params.yaml")
    git(here, "commit", "-q", "-m", "Base")
    (here / "params.yaml").write_text(f"# {PERSON}\n", encoding="utf-8", newline="\n")
    git(here, "stash", "-q")
    assert run(["erase", "--text", PERSON, "--yes", "--everywhere"]) == 1
    err = " ".join(capfd.readouterr().err.partition("still found in")[2].split())
    assert "refs/stash" in err
    assert "drop or edit it yourself" in err.lower()
    assert "--everywhere" not in err
    git(here, "stash", "drop", "-q")
    assert run(["erase", "--text", PERSON, "--yes", "--everywhere"]) == 0
    assert holders(here, PERSON) == []


def test_old_objects_are_gone_from_packs_reflogs_and_replaced_refs(here: Path) -> None:
    git(here, "config", "core.logAllRefUpdates", "always")
    old = git(here, "rev-parse", "refs/evolution/main").strip()
    git(here, "update-ref", "-m", "back", "refs/evolution/main", f"{old}~1")
    git(here, "update-ref", "-m", "again", "refs/evolution/main", old)
    git(here, "repack", "-a", "-d", "-q")
    git(here, "replace", f"{old}~2", f"{old}~3")
    git(here, "replace", f"{old}:skill.md", f"{old}~8:event.json")
    assert run(["erase", "--text", PERSON, "--yes", "--everywhere"]) == 0
    assert holders(here, PERSON) == []
    assert git(here, "for-each-ref", "refs/replace") == ""


def test_experiments_are_written_anew(here: Path) -> None:
    git(here, "add", "params.yaml")
    git(here, "commit", "-q", "-m", "Base")
    git(here, "add", "-f", "skills", "reports/out")
    tree = git(here, "write-tree").strip()
    made = git(here, "commit-tree", tree, "-p", "HEAD", "-m", "An experiment").strip()
    git(here, "update-ref", "refs/exps/ab/cdef/slow-lr", made)
    git(here, "reset", "-q")
    base = git(here, "rev-parse", "HEAD").strip()
    shutil.rmtree(here / "data/small")
    assert run(["erase", "--text", PERSON, "--yes"]) == 0
    assert holders(here, PERSON) == []
    assert git(here, "rev-parse", "refs/exps/ab/cdef/slow-lr~1").strip() == base
    shown = git(here, "show", "refs/exps/ab/cdef/slow-lr:skills/events.jsonl")
    assert shown.encode() == (here / "skills/events.jsonl").read_bytes()


def test_doing_it_again_or_after_a_stop_goes_on(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import skilltrail.runtime.erase as erasing

    whole = here.parent / "whole"
    shutil.copytree(here, whole, symlinks=True)
    for stop in ("rewrite_split", "replace_rows", "clean_lines"):

        def fail(*args: object) -> None:
            raise UsageError("stopped", "here")

        with monkeypatch.context() as patch:
            patch.setattr(erasing, stop, fail)
            assert run(["erase", "--text", PERSON, "--yes", "--everywhere"]) == 2
    assert run(["erase", "--text", PERSON, "--yes", "--everywhere"]) == 0
    assert holders(here, PERSON) == []
    monkeypatch.chdir(whole)
    assert run(["erase", "--text", PERSON, "--yes", "--everywhere"]) == 0
    for name in ("skills/events.jsonl", "reports/out/evaluation.jsonl"):
        assert (here / name).read_bytes() == (whole / name).read_bytes()
    assert git(here, "for-each-ref", "refs/evolution") == git(
        whole, "for-each-ref", "refs/evolution"
    )
    events = (here / "skills/events.jsonl").read_bytes()
    assert run(["erase", "--text", PERSON, "--yes"]) == 0
    assert (here / "skills/events.jsonl").read_bytes() == events


def test_a_second_text_adds_a_second_tombstone(here: Path) -> None:
    assert run(["erase", "--text", SECRET, "--yes"]) == 0
    assert run(["erase", "--text", PERSON, "--yes", "--everywhere"]) == 0
    events = read_log(here / "skills/events.jsonl")
    assert [event.type for event in events[-2:]] == ["text.erased"] * 2
    assert holders(here, PERSON) == holders(here, SECRET) == []


@pytest.mark.parametrize("text", ["", "abc", "   ", "x" * 5000, "gate.judged", "selec", MARKER])
def test_what_cannot_be_told_apart_is_refused(
    here: Path, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = (here / "skills/events.jsonl").read_bytes()
    assert run(["erase", "--text", text, "--yes"]) == 2
    assert (here / "skills/events.jsonl").read_bytes() == before


def test_without_yes_nobody_can_be_asked_in_a_pipe(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["erase", "--text", PERSON]) == 2
    assert "--yes" in capfd.readouterr().err
    assert holders(here, PERSON)


def test_a_text_that_stands_nowhere_changes_nothing(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["erase", "--text", "nobody of that name", "--yes"]) == 0
    assert "not found" in capfd.readouterr().out


def test_a_rerun_makes_no_call_and_keeps_the_tombstones(
    here: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["erase", "--text", SECRET, "--yes"]) == 0
    names = ("skills/events.jsonl", "reports/out/evaluation.jsonl")
    before = [(here / name).read_bytes() for name in names]
    refs, calls = git(here, "for-each-ref"), len(server.calls)
    run_stages(here, monkeypatch)
    assert [(here / name).read_bytes() for name in names] == before
    assert len(server.calls) == calls
    assert git(here, "for-each-ref") == refs


def test_a_run_that_was_stopped_is_cut_and_goes_on_from_there(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (live,) = (here / ".skilltrail/runs").glob("*/events.jsonl")
    lines = live.read_bytes().split(b"\n")
    at = next(n for n, line in enumerate(lines) if PERSON.encode() in line)
    live.write_bytes(b"\n".join(lines[: at + 2]) + b"\n")
    (here / "skills/events.jsonl").unlink()
    shutil.rmtree(here / "reports/out")
    shutil.rmtree(here / ".skilltrail/evaluations")
    for line in git(here, "for-each-ref").splitlines():
        git(here, "update-ref", "-d", line.split("\t")[1])
    shutil.rmtree(here / "data/splits")  # else the first event, which names the items, changes
    assert run(["erase", "--text", PERSON, "--yes"]) == 1  # it is in the source of the data
    assert live.read_bytes() == b"".join(line + b"\n" for line in lines[:at])


DVC_STAGES = """\
stages:
  train:
    cmd: "true"
    deps: [data/splits]
    outs:
      - data/rollouts/train: {persist: true}
      - skills/events.jsonl: {cache: false}
  evaluate:
    cmd: "true"
    deps: [skills/events.jsonl]
    outs: [data/rollouts/test, reports/out/evaluation.jsonl]
"""


def dvc(folder: Path, *args: str) -> str:
    environ = {n: v for n, v in os.environ.items() if not n.startswith("DVC_")}
    done = subprocess.run(
        [sys.executable, "-m", "dvc", *args],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("link", ["copy", "hardlink"])
def test_dvc_s_cache_keeps_nothing_and_its_lock_follows(here: Path, link: str) -> None:
    (here / "dvc.yaml").write_text(DVC_STAGES, encoding="utf-8", newline="\n")
    dvc(here, "init", "-q")
    dvc(here, "config", "cache.type", link)
    dvc(here, "commit", "-f", "-q")
    dvc(here, "checkout", "--relink", "-q")
    assert any(".dvc/cache" in name for name in holders(here, PERSON))
    assert run(["erase", "--text", PERSON, "--yes", "--everywhere"]) == 0
    assert holders(here, PERSON) == []
    assert "up to date" in dvc(here, "status")
    dvc(here, "checkout", "-q")
    assert holders(here, PERSON) == []


# The spellings of a text


@given(
    st.text(min_size=4, max_size=12).filter(lambda t: len(t.strip("\r\n")) >= 4 and t.strip())
)
def test_a_text_is_found_in_json_however_deep(text: str) -> None:
    if any("\ud800" <= char <= "\udfff" for char in text) or text.strip("\r\n") in MARKER:
        return
    eraser = Eraser(text)
    wanted = text.strip("\r\n")
    for ascii in (True, False):
        spelled = wanted
        for _ in range(3):
            assert wanted not in eraser.text(spelled)
            assert eraser.holds(spelled.encode())
            spelled = json.dumps(spelled, ensure_ascii=ascii)
            assert MARKER in eraser.text(spelled)


@given(st.recursive(st.text(max_size=8), lambda inner: st.lists(inner, max_size=3)))
def test_what_does_not_hold_the_text_stays_as_it_is(value: object) -> None:
    assert Eraser("quite another text").value(value) == value


@pytest.mark.parametrize(
    "spelled",
    [
        "a b&c",
        "a%20b%26c",
        "a b&amp;c",
        "a\\u0020b\\u0026c",
        "a b\\u0026c",
        "a b&#38;c",
        "a b&#x26;c",
    ],
)
def test_a_text_is_found_in_urls_and_html(spelled: str) -> None:
    assert Eraser("a b&c").text(f"<{spelled}>") == f"<{MARKER}>"


def test_line_ends_stay_so_that_no_line_moves() -> None:
    eraser = Eraser("one\n\ntwo")
    assert eraser.text("- one\n\ntwo.") == f"- {MARKER}\n\n{MARKER}."
    assert eraser.text("- one\\n\\ntwo.") == f"- {MARKER}\\n\\n{MARKER}."
    assert eraser.text("- one\r\n\r\ntwo.") == f"- {MARKER}\r\n\r\n{MARKER}."


def test_digests_are_no_texts() -> None:
    key = "deadbeef" * 8
    assert Eraser("deadbeef").value({"key": key, "said": "deadbeef"}) == {
        "key": key,
        "said": MARKER,
    }

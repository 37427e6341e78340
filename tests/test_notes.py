"""Tags and notes on runs: operations that people do, in no event and no commit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from history_world import World

from skilltrail.cli.main import run
from skilltrail.core.errors import UsageError
from skilltrail.history.log.events import Event
from skilltrail.report.notes import Noted, notes_of, write_note
from skilltrail.store.ops import Ops

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Event]]:
    """A run, and another that parts from it at its first budget."""
    folder = tmp_path_factory.mktemp("runs")
    made = {}
    for name, params in {"main": {}, "other": {"lr": 1}}.items():
        (folder / name).mkdir()
        made[name] = list(World(params=params).run(folder / name).events)
    return made


def test_a_note_is_shown_with_its_run_and_with_none_that_forked_before_it(
    tmp_path: Path, runs: dict[str, list[Event]]
) -> None:
    ops = Ops(tmp_path / "ops.jsonl")
    assert notes_of(ops.path, runs) == {"main": Noted(), "other": Noted()}
    write_note(ops, "main", runs["main"][-1], tags=["baseline"], note="good on dates")
    write_note(ops, "main", runs["main"][-1], tags=["august"], note="poor on names")
    found = notes_of(ops.path, runs)
    assert found["main"] == Noted(("baseline", "august"), ("good on dates", "poor on names"))
    assert not found["other"]
    early = {"main": runs["main"][:-3]}
    assert not notes_of(ops.path, early)["main"], "the run as it was then"
    write_note(ops, "main", runs["main"][-1], untagged=["baseline"])
    assert notes_of(ops.path, runs)["main"].tags == ("august",)
    write_note(ops, "main", runs["main"][-1], cleared=True, note="anew")
    assert notes_of(ops.path, runs)["main"] == Noted((), ("anew",))


def test_a_run_that_goes_on_keeps_what_was_said_of_it(
    tmp_path: Path, runs: dict[str, list[Event]]
) -> None:
    ops = Ops(tmp_path / "ops.jsonl")
    half = runs["main"][:9]
    write_note(ops, "main", half[-1], tags=["early"])
    assert notes_of(ops.path, {"later-name": runs["main"]})["later-name"].tags == ("early",)


@pytest.mark.parametrize("tag", ["", "two words", "x" * 41, "a\nb", "\x1b[31m", "‮x"])
def test_a_tag_is_a_word(tmp_path: Path, runs: dict[str, list[Event]], tag: str) -> None:
    ops = Ops(tmp_path / "ops.jsonl")
    with pytest.raises(UsageError):
        write_note(ops, "main", runs["main"][-1], tags=[tag])
    assert not ops.path.exists()


def test_what_others_wrote_in_the_journal_does_no_harm(
    tmp_path: Path, runs: dict[str, list[Event]]
) -> None:
    id = runs["main"][-1].id
    lines = [
        {"type": "run.noted"},
        {"type": "run.noted", "event": 7, "tags": ["x"]},
        {"type": "run.noted", "event": id, "tags": "abc", "note": {"a": 1}},
        {"type": "run.noted", "event": id, "tags": [1, None, "kept"], "untagged": {"a": 1}},
    ]
    path = tmp_path / "ops.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines) + "{torn", "utf-8")
    assert notes_of(path, runs)["main"] == Noted(("kept",), ())


def test_runs_shows_notes_and_events_and_commits_stay_as_they_are(
    reference_clone: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["rebuild"]) == 0
    log = (reference_clone / "skills/events.jsonl").read_bytes()
    refs = subprocess.check_output(
        ["git", "for-each-ref", "refs/evolution"], cwd=reference_clone
    )
    capfd.readouterr()
    assert run(["runs"]) == 0
    assert "noted" not in capfd.readouterr().out
    assert run(["note", "main", "good on dates", "--tag", "baseline"]) == 0
    assert run(["runs"]) == 0
    assert "baseline; good on dates" in capfd.readouterr().out
    assert run(["runs", "--json"]) == 0
    (row,) = json.loads(capfd.readouterr().out)
    assert (row["tags"], row["notes"]) == (["baseline"], ["good on dates"])
    assert run(["export", "--html", "page.html", "--runs"]) == 0
    assert '"tags":["baseline"]' in (reference_clone / "page.html").read_text("utf-8")
    assert (reference_clone / "skills/events.jsonl").read_bytes() == log
    assert (
        subprocess.check_output(["git", "for-each-ref", "refs/evolution"], cwd=reference_clone)
        == refs
    )

    for asked in (["nobody", "x"], ["main", ""], ["--tag", "x"], ["main", "--tag", "a b"]):
        assert run(["note", *asked]) == 2
    capfd.readouterr()
    assert run(["erase", "--text", "good on dates", "--dry-run"]) == 0
    assert "ops.jsonl" in capfd.readouterr().out

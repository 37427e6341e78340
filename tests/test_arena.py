"""The arena: its numbers from toy runs, its page, and a real queue of experiments."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import pytest
from methods_world import run_method
from null_store import NullStore
from ruamel.yaml import YAML
from toy_world import ToyRun
from verify_project import says, write_project

from skilltrail.cli.commands.measure.arena import bouts_of
from skilltrail.cli.main import run
from skilltrail.history.ask.arena import Arena, arena_of, entry_of
from skilltrail.history.ask.evaluations import HeldOut
from skilltrail.history.log.log import read_log
from skilltrail.report.arena import as_csv, chart, markdown
from skilltrail.report.book.runs import run_rows
from tests.fault_server import FaultServer

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "tests" / "corpus"


def evaluation_of(done: ToyRun, right: int) -> dict[str, HeldOut]:
    """Return an evaluation: the seed skill has 1 of 4 items right and the best one `right`."""
    seed = {f"t{n}": Fraction(n < 1) for n in range(4)}
    best = {f"t{n}": Fraction(n < right) for n in range(4)}
    last = done.recorder.events[-1].id
    return {last: HeldOut("hard", (right - 1) / 4, "4 items", best, seed)}


def cost(keys: Iterable[str]) -> tuple[int, float]:
    return 8 * len(list(keys)), 0.0


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Arena:
    entries = []
    for seed in (1, 2):
        for method, right in (("skillopt", 3 + seed % 2), ("bootstrap", 2)):
            folder = tmp_path_factory.mktemp(f"{method}{seed}")
            stop = {"calls": 24}
            done = run_method(folder, NullStore(), method, seed=seed, stop=stop)
            events = done.recorder.events
            entry = entry_of(
                method, f"{method}-{seed}", events, evaluation_of(done, right), cost, 2.0
            )
            assert entry is not None
            entries.append(entry)
    return arena_of(entries)


def test_a_gain_is_over_items_with_seeds_averaged_within(found: Arena) -> None:
    gain = found.gains["skillopt"]
    assert gain is not None
    assert (gain.mean, gain.items, gain.seeds) == (2.5 / 4, 4, 2)
    assert gain.low < gain.mean < gain.high
    contrast = found.contrasts["skillopt", "bootstrap"]
    mirror = found.contrasts["bootstrap", "skillopt"]
    assert contrast is not None
    assert mirror is not None
    assert contrast.mean == -mirror.mean == 1.5 / 4


def test_every_method_has_spent_the_same_and_the_curve_rises(found: Arena) -> None:
    for entry in found.entries:
        assert (entry.why, entry.spent) == ("calls", 24)
        assert entry.curve[0].calls == 8  # the seed skill, on eight selection items
        means = [point.mean for point in entry.curve]
        assert means == sorted(means)
        assert entry.best_tokens == 8 * entry.curve[-1].calls
        assert entry.calls <= 24


def test_the_page_names_its_command_and_its_denominators(found: Arena) -> None:
    page = markdown(found, "skilltrail arena --methods x", "On toys.", "arena.svg", ["gone-1"])
    assert "    skilltrail arena --methods x" in page
    assert "over 4 test items, up to 2 seeds" in page
    assert "Not there, and in no number: gone-1." in page
    assert page.count("| skillopt |") == 3  # a row, a head and a row of pairs
    rows = list(csv.DictReader(io.StringIO(as_csv(found))))
    assert [row["method"] for row in rows] == ["skillopt", "bootstrap"] * 2
    assert {row["calls_to_best"] for row in rows} == {
        str(entry.curve[-1].calls) for entry in found.entries
    }
    drawn = chart(found)
    assert drawn.startswith("<?xml")
    assert "skillopt" in drawn
    assert "by calls" in drawn


def test_an_arena_without_an_evaluation_has_no_gain_and_says_so(tmp_path: Path) -> None:
    done = run_method(tmp_path, NullStore(), "bootstrap")
    entry = entry_of(
        "bootstrap", "b", done.recorder.events, {}, lambda keys: (None, None), None
    )
    assert entry is not None
    alone = arena_of([entry])
    assert alone.gains == {"bootstrap": None}
    assert "| bootstrap | – |" in markdown(alone, "c", "a", "s", [])
    unfinished = done.recorder.events[:-1]
    assert entry_of("bootstrap", "b", unfinished, {}, cost, None) is None


@pytest.mark.parametrize("name", ["1-forced", "11-targets", "12-breeding", "6-erased"])
def test_the_pages_runs_and_the_arena_have_the_same_curve_by_calls(name: str) -> None:
    log = read_log(CORPUS / f"{name}.jsonl")
    [row] = run_rows({name: log})
    entry = entry_of("any", name, log, {}, lambda keys: (None, None), None)
    assert entry is not None
    assert row["anytime"] == [[point.calls, point.mean] for point in entry.curve]
    assert row["calls"] == entry.spent

    # The same anew, from the log's rows alone.
    seen: set[str] = set()
    accepted = []
    for event in log:
        if event.type == "rollouts.scored":
            seen |= {one["key"] for one in event.data["items"] if one["key"]}
        if event.type == "skill.versioned" and event.data["best"] and event.data["version"]:
            accepted.append(len(seen))
    assert [calls for calls, _ in row["anytime"][1:]] == accepted
    assert row["calls"] == len(seen)
    assert row["anytime"][0][1] == pytest.approx(row["seed"])
    assert row["anytime"][-1][1] == pytest.approx(row["best"])


def test_an_unfinished_run_has_its_curve_by_calls_as_far_as_it_went() -> None:
    log = read_log(CORPUS / "1-forced.jsonl")
    whole = run_rows({"a": log})[0]
    for length in range(2, len(log)):
        [row] = run_rows({"a": log[:length]})
        assert row["anytime"] == whole["anytime"][: len(row["anytime"])]
        assert row["calls"] <= whole["calls"]


def test_runs_have_names_that_tell_settings_apart_and_whole_seeds_come_first() -> None:
    one = bouts_of(["skillopt", "random_search"], [1, 2], 50, [])
    two = bouts_of(["skillopt", "random_search"], [1, 2], 50, ["lr=8"])
    assert not {bout.name for bout in one} & {bout.name for bout in two}
    assert [(bout.seed, bout.method) for bout in one[:3]] == [
        (1, "skillopt"), (1, "random_search"), (2, "skillopt"),
    ]  # fmt: skip
    assert "seed=1" in one[0].overrides


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("--methods nobody", "no method 'nobody'. There are skillopt, bootstrap"),
        ("--methods gepa,gepa", "each is to be named once"),
        ("--methods gepa -S seed=3", "the arena sets it"),
        ("--methods gepa -S lr=x", "lr"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_is_queued(
    args: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["arena", *args.split()]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


STAGE = """
import asyncio
from stages.evaluate import main as evaluate
from stages.split import main as split
from stages.train import main as train
for stage in (split, train, evaluate):
    asyncio.run(stage())
"""


def test_an_arena_is_a_queue_of_experiments_and_a_second_one_makes_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = ["arena", "--methods", "bootstrap,random_search", "--seeds", "1", "--calls", "14"]
    with FaultServer(say=says) as server:
        write_project(tmp_path, server.url)
        (tmp_path / "run_all.py").write_text(STAGE, "utf-8")
        outs = [{"skills/events.jsonl": {"cache": False}}, "reports/out/evaluation.jsonl"]
        stage = {"cmd": "python run_all.py", "params": ["method", "seed", "stop"], "outs": outs}
        tree = YAML(typ="safe").load((tmp_path / "params.yaml").read_text("utf-8"))
        tree |= {"method": "skillopt", "seed": 42, "stop": {"calls": 0}, "patience": 0}
        tree |= {"evaluate": {"skills": []}}
        with (tmp_path / "params.yaml").open("w", encoding="utf-8") as file:
            YAML().dump(tree, file)
        with (tmp_path / "dvc.yaml").open("w", encoding="utf-8") as file:
            YAML().dump({"stages": {"train": stage}}, file)
        for words in ("dvc init -q", "git add .", "git commit -qm pipeline"):
            subprocess.run(words.split(), check=True, env={**os.environ})
        assert run(command) == 0
        page, calls = (tmp_path / "reports/out/arena/arena.md").read_text(), len(server.calls)
        assert run([*command, "--json"]) == 0
        assert len(server.calls) == calls
    told = json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))
    assert [entry["why"] for entry in told["entries"]] == ["calls", "calls"]
    assert "| bootstrap |" in page
    assert "over 6 test items, up to 1 seeds" in page
    assert (tmp_path / "reports/out/arena/arena.md").read_text() == page

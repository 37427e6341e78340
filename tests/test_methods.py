"""What every method keeps: one suite over all of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from methods_world import METHODS, REGION_SEED, method_params, run_method
from null_store import NullStore
from toy_world import ToyModel, ToyRun, items_of
from verify_project import says, write_project
from verify_world import verified

from skilltrail.cli.main import run
from skilltrail.core.errors import IncompleteError, UsageError
from skilltrail.history.ask.audit import audit_version
from skilltrail.history.ask.audit_record import LogOnly
from skilltrail.history.ask.blame import blame
from skilltrail.history.log.log import read_log
from skilltrail.history.log.replay import versions
from skilltrail.history.log.run_log import RunLog
from skilltrail.method.calls import LimitedRollouts
from skilltrail.models.errors import Transient
from skilltrail.params.methods import ASK
from skilltrail.params.methods import METHODS as NAMES
from skilltrail.params.read import run_digest_params
from skilltrail.skill.document import region_text, split_lines
from skilltrail.store.facts import FactStore
from skilltrail.verify.log import verify_log
from tests.fault_server import FaultServer
from tests.model_world import run_stages

RIVALS = [name for name in METHODS if name != "skillopt"]
TESTS = Path(__file__).parent


def test_every_method_is_in_this_suite() -> None:
    assert tuple(METHODS) == NAMES


@pytest.mark.parametrize("method", METHODS)
def test_the_same_facts_give_the_same_log_at_any_concurrency(
    tmp_path: Path, method: str
) -> None:
    logs = set()
    for workers in (1, 3, 16):
        folder = tmp_path / str(workers)
        logs.add(run_method(folder, NullStore(), method, ToyModel(workers=workers)).log)
    assert len(logs) == 1


@pytest.mark.parametrize("method", ["opro", "promptbreeder"])
def test_a_document_of_which_nothing_was_scored_has_no_fitness_and_not_0(
    tmp_path: Path, method: str
) -> None:
    asked: list[str] = []

    def fail(word: str) -> Exception | None:
        asked.append(word)
        return None if len(asked) <= len(items_of("selection")) else Transient("toy", "gone")

    with pytest.raises(IncompleteError, match=r"none of the 4 rollouts.*retry-missing"):
        run_method(
            tmp_path, NullStore(), method, ToyModel(fail=fail), gate={"min_coverage": 0.0}
        )
    log = (tmp_path / "events.jsonl").read_text("utf-8")
    assert '"purpose":"baseline"' in log
    assert '"purpose":"fitness"' not in log


@pytest.mark.parametrize("stop_after", [3, 9, 17, 26])
@pytest.mark.parametrize("method", METHODS)
def test_stopping_anywhere_and_running_again_equals_never_stopping(
    tmp_path: Path, method: str, stop_after: int
) -> None:
    whole = run_method(tmp_path / "whole", FactStore.open(tmp_path / "whole"), method)
    store, calls = FactStore.open(tmp_path / "cut"), []

    def stop(word: str) -> Exception | None:
        calls.append(word)
        return KeyboardInterrupt() if len(calls) > stop_after else None  # type: ignore[return-value]

    with pytest.raises(KeyboardInterrupt):
        run_method(tmp_path / "cut", store, method, ToyModel(workers=1, fail=stop))
    rest = run_method(tmp_path / "cut", store, method)
    assert rest.log == whole.log


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [{tests!r}]
from methods_world import run_method
from toy_world import ToyModel
from skilltrail.store.facts import FactStore

calls = []
def kill(word):
    calls.append(word)
    if len(calls) > {after}:
        os.kill(os.getpid(), signal.SIGKILL)

run_method(Path({folder!r}), FactStore.open(Path({folder!r})), {method!r}, ToyModel(fail=kill))
"""


@pytest.mark.parametrize("method", METHODS)
def test_a_run_killed_at_five_places_leaves_the_same_bytes(tmp_path: Path, method: str) -> None:
    whole = run_method(tmp_path / "whole", FactStore.open(tmp_path / "whole"), method)
    folder = tmp_path / "cut"
    folder.mkdir()
    for _ in range(5):  # each goes on from where the one before was killed
        code = KILLED.format(tests=str(TESTS), after=4, folder=str(folder), method=method)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert run_method(folder, FactStore.open(folder), method).log == whole.log


@pytest.mark.parametrize("calls", [8, 13, 21, 34])
@pytest.mark.parametrize("method", METHODS)
def test_a_training_takes_exactly_the_calls_that_it_may(
    tmp_path: Path, method: str, calls: int
) -> None:
    logs = set()
    for workers in (1, 5):
        store, model = FactStore.open(tmp_path / str(workers)), ToyModel(workers=workers)
        done = run_method(tmp_path / str(workers), store, method, model, stop={"calls": calls})
        end = done.events("run.finished")[0]
        assert (end["why"], end["calls"]) == ("calls", calls)
        assert isinstance(done.rollouts, LimitedRollouts)
        assert done.rollouts.spent == calls
        logs.add(done.log)
        logs.add(run_method(tmp_path / "again", store, method, stop={"calls": calls}).log)
    assert len(logs) == 1
    assert len(rollouts_named(done)) <= calls
    assert_sound(done)


def rollouts_named(done: ToyRun) -> set[str]:
    return {row["key"] for data in done.events("rollouts.scored") for row in data["items"]}


@pytest.mark.parametrize("method", METHODS)
def test_too_few_calls_to_measure_the_seed_skill_are_an_error_with_a_remedy(
    tmp_path: Path, method: str
) -> None:
    with pytest.raises(UsageError, match=r"stop\.calls: 7: spent before .* 0 for no end"):
        run_method(tmp_path, NullStore(), method, stop={"calls": 7})


@pytest.mark.parametrize("method", METHODS)
def test_a_right_log_has_no_fault_and_every_decision_is_recomputed(
    tmp_path: Path, method: str
) -> None:
    assert_sound(run_method(tmp_path, NullStore(), method))


def assert_sound(done: ToyRun) -> None:
    report = verify_log(done.log, "log")
    assert ([str(fault) for fault in report.faults], dict(report.tags.unknown)) == ([], {})


@pytest.mark.parametrize("method", METHODS)
def test_every_accepted_document_was_measured_in_full(tmp_path: Path, method: str) -> None:
    done = run_method(tmp_path, NullStore(), method)
    ids = {item.id for item in items_of("selection")}
    made = done.events("skill.versioned")
    assert len(made) > 1
    for version in made:
        full = [
            data
            for data in done.events("rollouts.scored")
            if data["skill"] == version["digest"]
            and data["purpose"] in ("baseline", "selection")
            and {row["item"] for row in data["items"]} == ids
        ]
        assert full


@pytest.mark.parametrize("method", METHODS)
def test_protected_regions_survive_every_method(tmp_path: Path, method: str) -> None:
    done = run_method(tmp_path, NullStore(), method, seed_skill=REGION_SEED)
    found = versions(done.recorder.events)
    assert len(found) > 1
    assert {region_text(version.text, "slow_update") for version in found} == {"keep this"}


@pytest.mark.parametrize("method", METHODS)
def test_blame_and_audit_tell_where_every_line_comes_from(tmp_path: Path, method: str) -> None:
    done = run_method(tmp_path, NullStore(), method)
    story = RunLog(done.recorder.events)
    for version in story.versions:
        rows = blame(story, version.number)
        assert [row.text for row in rows] == split_lines(version.text)
        assert all(row.edit is not None or row.version == 0 for row in rows)
        audit = audit_version(story, version.number, LogOnly())
        assert audit.version == version.number
        if version.number:
            assert audit.gate is not None
            assert audit.gate.verdict == "accepted"
            assert audit.proposals
            of_versions = method not in (
                "mipro",
                "opro",
                "promptbreeder",
            )  # others: of any document
            assert audit.parent_version is not None or not of_versions
            assert bool(audit.parents) == (method != "skillopt")


@pytest.mark.parametrize("method", RIVALS)
def test_all_runs_share_their_first_events_and_part_at_the_choice_of_the_method(
    tmp_path: Path, method: str
) -> None:
    ours = run_method(tmp_path / "ours", NullStore(), "skillopt")
    rival = run_method(tmp_path / "rival", NullStore(), method)
    types = [event.type for event in rival.recorder.events]
    at = types.index("method.chosen")
    assert ours.log.split(b"\n")[:at] == rival.log.split(b"\n")[:at]
    assert types[:at] == ["run.started", "skill.versioned", "rollouts.scored"]
    assert b"method.chosen" not in ours.log


@pytest.mark.parametrize("method", RIVALS)
def test_a_knob_that_a_method_does_not_read_is_no_part_of_its_run(method: str) -> None:
    mine = run_digest_params(method_params(method))
    assert mine["method"] == method
    assert run_digest_params(method_params(method, lr_warmup=3)) == mine
    assert not [key for key in mine if key.startswith("slow_update")]
    others = [key for key in mine if key.startswith("methods.")]
    assert others
    assert all(key.startswith(f"methods.{method}.") for key in others)


def test_the_default_run_keeps_its_identity() -> None:
    mine = run_digest_params(method_params("skillopt"))
    names = ("method", "stop", "methods")
    assert not [key for key in mine if key.split(".")[0] in names]


@pytest.mark.parametrize("method", METHODS)
def test_a_whole_run_is_verified_at_three_levels_and_again_at_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    settings = {name: value for name, value in METHODS[method].items() if name != "optimizer"}
    with FaultServer(say=says) as server:
        write_project(tmp_path, server.url, {"method": method, **settings})
        run_stages(tmp_path, monkeypatch)
        log, calls = (tmp_path / "skills/events.jsonl").read_bytes(), len(server.calls)
        run_stages(tmp_path, monkeypatch)
        assert len(server.calls) == calls
    asked = [json.dumps(one.body) for one in server.calls if one.body["model"] == "optimizer"]
    assert bool(asked) == (method in ASK)
    assert not [text for text in asked if "of selection" in text or "of test" in text]
    assert (tmp_path / "skills/events.jsonl").read_bytes() == log
    found = verified(tmp_path)
    assert [str(fault) for fault in found.faults] == []
    assert [(r.rule, r.check.note) for r in found.rows if not r.check.whole] == []
    assert found.exit_code() == 0


@pytest.mark.parametrize("method", RIVALS)
def test_a_run_of_every_method_is_forked_from_a_version_and_goes_on_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    settings = {name: value for name, value in METHODS[method].items() if name != "optimizer"}
    log = tmp_path / "skills/events.jsonl"
    with FaultServer(say=says) as server:
        write_project(tmp_path, server.url, {"method": method, **settings})
        run_stages(tmp_path, monkeypatch)
        first = RunLog(read_log(log))
        last = first.versions[-1]
        # Worked examples teach this target nothing: a run of bootstrap ends with its seed.
        assert last.number > 0 or method == "bootstrap"
        assert run(["fork", f"v{last.number}"]) == 0
        run_stages(tmp_path, monkeypatch)
    start = RunLog(read_log(log)).start.data
    assert start["parent"] == last.event.id
    assert start["seed_skill"]["text"] == last.text
    assert verified(tmp_path).exit_code() == 0

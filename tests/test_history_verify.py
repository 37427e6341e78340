"""Verify names every fault of a log, and finds none in a log that is right."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from history_world import World
from hypothesis import given, settings
from hypothesis import strategies as st
from null_store import NullStore
from test_method import Whole, run_whole
from verify_world import told_again

from skilltrail.core.canon import text_digest
from skilltrail.history.log.events import Event
from skilltrail.history.log.evolve import evolve
from skilltrail.history.log.patching import patched
from skilltrail.history.log.replay import version_of, versions
from skilltrail.history.log.run_state import RunState
from skilltrail.verify.log import verify_log
from skilltrail.verify.rules import DECISIONS

fast = settings(max_examples=20, deadline=None)


class Log(list[Event]):
    """Events with a short name in test reports."""

    def __repr__(self) -> str:
        return f"<log of {len(self)} events>"


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Log:
    folder = tmp_path_factory.mktemp("run")
    return Log(World(n_train=16, n_selection=6, params={"epochs": 2}).run(folder).events)


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """A run with every kind of event."""
    done = run_whole(
        tmp_path_factory.mktemp("rich"),
        NullStore(),
        Whole(),
        skill_aware={"enabled": True},
        lr_schedule="autonomous",
        slow_update={"enabled": True, "samples": 4},
        meta_skill={"enabled": True},
    )
    return Log(done.recorder.events)


def data_of(events: Sequence[Event]) -> bytes:
    return b"".join(event.line + b"\n" for event in events)


def faults_of(data: bytes, **options: Any) -> list[str]:
    return [str(fault) for fault in verify_log(data, "log", **options).faults]


def forged(
    events: Sequence[Event], index: int, change: Callable[[dict[str, Any]], None]
) -> bytes:
    """Return the log with one event's data changed and every hash after it made right."""
    return data_of(told_again(events, index, change))


def first(events: Sequence[Event], type: str, **fields: Any) -> int:
    return next(
        at
        for at, event in enumerate(events)
        if event.type == type and all(event.data[k] == v for k, v in fields.items())
    )


def test_a_right_log_has_no_fault(events: Log, rich: Log) -> None:
    assert faults_of(data_of(events)) == []
    report = verify_log(data_of(rich), "log")
    assert report.faults == []
    assert set(report.decisions) >= {event.type for event in rich} & set(DECISIONS)


@pytest.mark.parametrize(
    "params",
    [
        {"gate": {"metric": "soft", "rule": "paired"}},
        {"gate": {"metric": "mixed", "rule": "no_regression", "tolerance": 0.01}},
        {"gate": {"metric": "soft", "repeats": 2}},
        {"use_gate": False, "accumulation": 2, "lr_schedule": "linear", "lr_warmup": 2},
    ],
)
def test_a_right_log_has_no_fault_whatever_the_params(
    tmp_path: Path, params: dict[str, Any]
) -> None:
    made = World(n_train=16, n_selection=6, params={"epochs": 1} | params).run(tmp_path).events
    assert faults_of(data_of(made)) == []


@fast
@given(st.data())
def test_any_flipped_bit_is_named(events: Log, data: st.DataObject) -> None:
    log = bytearray(data_of(events))
    log[data.draw(st.integers(0, len(log) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert faults_of(bytes(log))


@fast
@given(st.data())
def test_a_log_cut_at_any_byte_is_named(events: Log, data: st.DataObject) -> None:
    log = data_of(events)
    cut = data.draw(st.integers(0, len(log) - 1))
    assert faults_of(log[:cut])
    whole_lines = log[: log.rfind(b"\n", 0, cut) + 1]
    assert faults_of(whole_lines, allow_unfinished=True) == []


@fast
@given(st.data())
def test_lost_doubled_and_swapped_lines_are_named(events: Log, data: st.DataObject) -> None:
    lines = data_of(events).splitlines(keepends=True)
    at = data.draw(st.integers(0, len(lines) - 2))
    for changed in (
        [*lines[:at], *lines[at + 1 :]],
        [*lines[: at + 1], *lines[at:]],
        [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]],
    ):
        assert any("event" in fault for fault in faults_of(b"".join(changed)))


def test_one_damaged_line_is_one_fault_and_the_rest_is_still_checked(
    events: Log,
) -> None:
    lines = data_of(events).splitlines(keepends=True)
    at = first(events, "budget.decided")
    lines[at] = lines[at].replace(b'"budget":4', b'"budget":5')
    report = verify_log(b"".join(lines), "log")
    assert [(fault.seq, fault.what) for fault in report.faults][0] == (at + 1, "line")
    assert len(report.events) == len(events) - 1


def set_row(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        data["items"][0][name] = value

    return change


def set_field(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        assert data[name] != value
        data[name] = value

    return change


def set_edit(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        data["edits"][0][name] = value

    return change


FORGERIES = [
    ("run.started", {}, set_field("seed", 43), "batch"),
    ("rollouts.scored", {"purpose": "baseline"}, set_row("soft", 0.9), "mean_soft"),
    ("rollouts.scored", {"purpose": "baseline"}, set_field("mean_soft", 0.9), "mean_soft"),
    ("rollouts.scored", {"purpose": "train"}, set_row("item", "train-99"), "batch"),
    ("rollouts.scored", {"purpose": "train"}, set_row("outcome", "missing"), "coverage"),
    ("rollouts.scored", {"purpose": "selection"}, set_row("item", "train-0"), "order"),
    ("budget.decided", {}, set_field("budget", 3), "budget"),
    ("budget.decided", {}, set_field("lr", 9), "budget"),
    ("patch.proposed", {}, set_field("items", ["selection-0"]), "items"),
    ("patch.proposed", {}, set_edit("support", 40), "support"),
    ("patch.proposed", {}, set_edit("edit", "1.1"), "edit id"),
    ("patch.merged", {}, set_edit("parents", ["1.1"]), "parents"),
    ("patch.merged", {}, set_field("dropped", ["1.1"]), "dropped"),
    ("edits.selected", {}, set_field("budget", 40), "budget"),
    ("edits.selected", {}, set_field("selected", []), "edits"),
    ("candidate.built", {}, set_field("tokens", 1), "tokens"),
    ("candidate.built", {}, set_field("sources", [[1, 1]]), "sources"),
    ("candidate.built", {}, set_field("diff", ""), "document"),
    ("candidate.built", {}, set_field("candidate", "0" * 64), "document"),
    ("gate.judged", {}, set_field("before", 0.1), "before"),
    ("gate.judged", {"verdict": "accepted"}, set_field("verdict", "rejected"), "verdict"),
    ("gate.judged", {"verdict": "rejected"}, set_field("verdict", "accepted"), "verdict"),
    ("gate.judged", {}, set_field("flips", {"won": [], "lost": []}), "flips"),
    ("gate.judged", {}, set_field("rule", "none/1"), "order"),
    ("gate.judged", {}, set_field("metric", "hard"), "order"),
    ("gate.judged", {}, set_field("saved", 99), "saved"),
    ("skill.versioned", {"version": 1}, set_field("version", 7), "version"),
    ("skill.versioned", {"version": 1}, set_field("best", False), "best"),
    ("skill.versioned", {"version": 1}, set_field("edits", []), "edits"),
    ("skill.versioned", {"version": 1}, set_field("gate", 1), "gate"),
    ("step.ended", {"result": "rejected"}, set_field("result", "no_change"), "result"),
    ("run.finished", {}, set_field("accepted", 99), "accepted"),
    ("run.finished", {}, set_field("totals", {"judged": 1}), "totals"),
]


@pytest.mark.parametrize(("type", "fields", "change", "named"), FORGERIES)
def test_a_decision_that_does_not_follow_is_named_though_all_hashes_are_right(
    events: Log,
    type: str,
    fields: dict[str, Any],
    change: Callable[[dict[str, Any]], None],
    named: str,
) -> None:
    found = faults_of(forged(events, first(events, type, **fields), change))
    assert any(named in fault for fault in found), found


def test_a_consistent_change_of_a_train_score_is_beyond_the_log(events: Log) -> None:
    """Nothing in the log depends on it; levels *facts* and *anchored* catch it."""
    at = first(events, "rollouts.scored", purpose="train")

    def change(data: dict[str, Any]) -> None:
        soft = [row["soft"] for row in data["items"]]
        data["items"][0]["soft"] = soft[1]
        data["items"][1]["soft"] = soft[0]

    assert faults_of(forged(events, at, change)) == []


def test_a_batch_that_does_not_say_how_it_was_drawn_is_named(events: Log) -> None:
    at = first(events, "rollouts.scored", purpose="train")
    found = faults_of(forged(events, at, lambda data: data.pop("batch")))
    assert any("batch" in str(fault) for fault in found)


@pytest.mark.parametrize("name", [b"hard", b"mean_hard"])
def test_a_score_written_as_a_whole_number_is_another_form_and_named(
    events: Log, name: bytes
) -> None:
    score = re.compile(rb'("%s":[01])\.0' % name)
    at = next(at for at, event in enumerate(events) if score.search(event.line))
    changed = score.sub(rb"\1", events[at].line, count=1)
    bare = re.sub(rb',"id":"[0-9a-f]{64}"(?=,"prev":)', b"", changed)
    changed = changed.replace(events[at].id.encode(), sha256(bare).hexdigest().encode())
    faults = faults_of(data_of(events[:at]) + changed + b"\n", allow_unfinished=True)
    assert any("another form" in fault for fault in faults)


def test_an_unknown_decision_tag_is_not_recomputed_and_no_fault(events: Log) -> None:
    at = first(events, "budget.decided")
    report = verify_log(forged(events, at, set_field("rule", "constant/2")), "log")
    assert report.faults == []
    assert report.tags.unknown["constant/2"] == 1
    assert report.check.done == report.check.of - 1


# Replay


def test_every_version_is_rebuilt_byte_for_byte(rich: Log) -> None:
    found = versions(rich)
    assert [version.number for version in found] == list(range(len(found)))
    assert all(text_digest(version.text) == version.digest for version in found)
    assert version_of(rich, "seed").number == 0
    assert version_of(rich, "last").number == found[-1].number


def test_the_best_skill_at_each_event_is_the_last_version_that_was_best(
    events: Log,
) -> None:
    best = None
    state = RunState()
    for event in events:
        state = evolve(state, event)
        if event.type == "skill.versioned" and event.data["best"]:
            best = event.data["version"]
        assert state.best_version == best
        if best is not None:
            assert text_digest(state.best_skill) == version_of(events, best).digest


documents = st.lists(st.sampled_from(["a", "b", "", "- x", "\r", "é\u2028", "\x0c"])).map(
    "\n".join
)


@given(documents, documents)
@settings(deadline=None)
def test_a_recorded_diff_leads_from_one_document_to_the_other(before: str, after: str) -> None:
    from skilltrail.skill.document import unified_diff

    assert patched(before, unified_diff(before, after)) == after

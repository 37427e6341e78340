"""Whatever the method does, a right log has no fault, and what is changed is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from null_store import NullStore
from test_history_verify import Log, data_of, forged
from test_method import WORDS, Whole, run_whole
from test_rules_modes import run_rules
from verify_project import role, says, write_project
from verify_world import verified

from skilltrail.core.errors import FaultError
from skilltrail.history.log.events import Event, parse_event
from skilltrail.verify.log import verify_log
from skilltrail.verify.rerun import ComparingRecorder, EventMismatch
from tests.fault_server import FaultServer
from tests.model_world import run_stages

MODES = ["patch", "rewrite_from_suggestions", "full_rewrite_minibatch"]
SLOW = {"slow_update": {"enabled": True, "samples": 4}}
FORCED = {"slow_update": {"enabled": True, "samples": 4, "mode": "force"}}
NOTES = {"skill_aware": {"enabled": True, "consolidate_over": 1}}
META = {"meta_skill": {"enabled": True}}
ABILITIES: Mapping[str, Mapping[str, Any]] = {
    "forced": FORCED | META,
    "judged": SLOW | NOTES | {"use_gate": False},
    "autonomous": {"lr_schedule": "autonomous", "accumulation": 2} | SLOW,
    "warm-up": {"lr_warmup": 2, "lr_schedule": "cosine", "gate": {"metric": "mixed"}},
    "repeats": {"gate": {"repeats": 2, "rule": "no_regression", "metric": "soft"}} | NOTES,
    "limits": {"max_skill_tokens": 12, "patience": 1, "lr_schedule": "none"},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ABILITIES)
def test_a_right_log_has_no_fault_in_any_mode(tmp_path: Path, mode: str, name: str) -> None:
    params = {"epochs": 2, "lr": 2, "update_mode": mode} | ABILITIES[name]
    helpful = Whole("\n".join(f"- know {word}" for word in WORDS))
    logs = [run_whole(tmp_path, NullStore(), helpful, **params).recorder.events]
    if name in ("forced", "autonomous"):
        logs.append(run_rules(tmp_path / "rules", **params).recorder.events)
    for events in logs:
        report = verify_log(data_of(events), "log")
        assert [str(fault) for fault in report.faults] == []


# Every field of every event


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """A run with every kind of event."""
    folder = tmp_path_factory.mktemp("rich")
    params = FORCED | META | NOTES | {"lr_schedule": "autonomous", "epochs": 2}
    return Log(run_whole(folder, NullStore(), Whole(), **params).recorder.events)


Place = tuple[str | int, ...]


def leaves(value: Any, path: Place = ()) -> Iterator[Place]:
    """Yield the place of every number, string and truth value in an event's data."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from leaves(inner, (*path, at))
    elif value is not None:
        yield path


def other(value: Any) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return 1.0 - value if value != 0.5 else 0.25
    if isinstance(value, int):
        return value + 1
    if len(value) == 64:
        return ("0" if value[0] != "0" else "1") + value[1:]
    return f"{value}x"


def changing(path: Place) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        inner: Any = data
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = other(inner[path[-1]])

    return change


def level_that_names(events: Log, changed: bytes) -> str:
    """Return the first level that names a change whose hashes were all made right again.

    What the log does not imply, the loop told again does: that is what level *facts* runs, and
    a ref would part from it in any case. Here the events that stand are told again.
    """
    if verify_log(changed, "log").faults:
        return "log"
    lines = changed.split(b"\n")[:-1]
    recorder = ComparingRecorder(reread(lines))
    try:
        for event in events:
            recorder.append(event.type, event.data)
    except EventMismatch:
        return "facts"
    return "none"


def reread(lines: list[bytes]) -> list[Event]:
    return [parse_event(line, f"line {at}") for at, line in enumerate(lines, 1)]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_change_of_any_field_is_named_though_all_hashes_are_right(
    rich: Log, data: st.DataObject
) -> None:
    kinds = sorted({event.type for event in rich})
    kind = data.draw(st.sampled_from(kinds))
    at = data.draw(st.sampled_from([n for n, e in enumerate(rich) if e.type == kind]))
    path = data.draw(st.sampled_from(list(leaves(rich[at].data))))
    try:
        changed = forged(rich, at, changing(path))
    except FaultError:
        return  # the schema would not let such a value into any log
    assert level_that_names(rich, changed) in ("log", "facts")


# What the log alone implies, by event type and field: a change there needs no store to be seen.
IMPLIED = {
    "run.started": {"seed"},
    "rollouts.scored": {"coverage", "mean_hard", "mean_soft", "skill", "purpose"},
    "budget.decided": {"budget"},
    "patch.proposed": {"patch"},
    "patch.merged": {"patch", "inputs"},
    "appendix.proposed": {"patch"},
    "slow_update.proposed": {"patch"},
    "slow_update.compared": {"current", "counts"},
    "meta_skill.written": {"text", "digest"},
    "edits.selected": {"patch", "selected", "budget"},
    "candidate.built": {"parent", "candidate", "diff", "tokens", "sources", "results"},
    "gate.judged": {"before", "after", "verdict", "judged", "total", "flips", "candidate"},
    "skill.versioned": {"version", "digest", "parent", "candidate", "gate", "edits", "tokens"},
    "step.ended": {"result", "version"},
    "run.finished": {"steps", "accepted", "rejected", "best", "last", "totals"},
}


def test_what_the_log_implies_is_named_by_the_log(rich: Log) -> None:
    for kind, names in IMPLIED.items():
        seen = dict.fromkeys(names, False)
        for at, event in enumerate(rich):
            if event.type != kind:
                continue
            for name in names:
                path = next((p for p in leaves(event.data) if p[0] == name), None)
                if path is None or seen[name]:
                    continue
                seen[name] = True
                try:
                    changed = forged(rich, at, changing(path))
                except FaultError:
                    continue
                assert level_that_names(rich, changed) == "log", (kind, name)
        assert all(seen.values()), (kind, [name for name in seen if not seen[name]])


# Every pair of settings, in whole runs


AXES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "mode": {mode: {"update_mode": mode} for mode in MODES},
    "notes": {
        "off": {},
        "notes": {"skill_aware": {"enabled": True}},
        "consolidated": NOTES,
    },
    "compaction": {"off": {}, "on": {"compaction": True}},
    "accumulation": {"1": {}, "2": {"accumulation": 2, "batch_size": 2}},
    "slow update": {
        "off": {"slow_update": {"enabled": False}},
        "gated": SLOW,
        "forced": FORCED,
        "changed": {"slow_update": {"enabled": True, "samples": 3, "pairs": "changed"}},
    },
    "meta skill": {"off": {"meta_skill": {"enabled": False}}, "on": META},
    "judge": {"off": {}, "on": {"judged": True}},
    "targets": {"one": {}, "two": {"several": True}},
    "proposals": {"help": {}, "stall": {"optimizer": "stubborn"}},
    "schedule": {
        "constant": {},
        "linear": {"lr_schedule": "linear", "lr": 3},
        "cosine": {"lr_schedule": "cosine", "lr_warmup": 2},
        "autonomous": {"lr_schedule": "autonomous"},
        "none": {"lr_schedule": "none"},
    },
    "gate": {
        "strict": {},
        "paired": {"gate": {"rule": "paired", "metric": "soft"}},
        "no regression": {"gate": {"rule": "no_regression", "metric": "mixed", "repeats": 2}},
        "no gate": {"use_gate": False},
        "pareto": {"gate": {"rule": "pareto"}},
    },
}
Row = dict[str, str]


def covering(axes: Mapping[str, Iterable[str]]) -> list[Row]:
    """Return rows in which each two values of two axes stand together at least once.

    Each row is filled axis by axis with the value that covers most pairs still missing.
    """
    names = list(axes)
    missing = {
        ((a, x), (b, y)) for a, b in combinations(names, 2) for x in axes[a] for y in axes[b]
    }
    rows = []
    while missing:
        (first, value), (second, other) = min(missing)
        row = {first: value, second: other}
        for name in names:
            if name not in row:
                row[name] = max(axes[name], key=lambda v: _covered(row | {name: v}, missing))
        missing = {((a, x), (b, y)) for (a, x), (b, y) in missing if (row[a], row[b]) != (x, y)}
        rows.append(row)
    return rows


def _covered(row: Row, missing: set[Any]) -> int:
    return sum(row.get(a) == x and row.get(b) == y for (a, x), (b, y) in missing)


ROWS = covering(AXES)


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer(say=says) as found:
        yield found


def test_the_array_is_small_and_holds_every_pair() -> None:
    pairs = {pair for row in ROWS for pair in combinations(row.items(), 2)}
    wanted = [
        ((a, x), (b, y)) for a, b in combinations(AXES, 2) for x in AXES[a] for y in AXES[b]
    ]
    assert {frozenset(pair) for pair in pairs} >= {frozenset(pair) for pair in wanted}
    assert len(ROWS) <= 34


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row.values()))
def test_a_run_in_any_pair_of_modes_is_checked_whole_at_every_level(
    row: Row, server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {}
    for axis, value in row.items():
        settings |= AXES[axis][value]
    judged = settings.pop("judged", False)
    if settings.pop("several", False):
        one, two = (role(server.url, "target", provider=name) for name in ("lab", "other"))
        settings["targets"] = {"one": one | {"floor": 0.2}, "two": two | {"weight": 2}}
    optimizer = settings.pop("optimizer", "optimizer")
    write_project(tmp_path, server.url, settings, judged=judged, optimizer=optimizer)
    run_stages(tmp_path, monkeypatch)
    ticks, expected = [0], [0]  # what a progress bar is told

    def tick() -> None:
        ticks[0] += 1

    found = verified(tmp_path, tick=tick, expect=lambda more: expected.append(more))
    assert ticks[0] == sum(expected) > 0
    assert [str(fault) for fault in found.faults] == []
    assert [(r.rule, r.check.note) for r in found.rows if not r.check.whole] == []
    assert {r.rule for r in found.rows} >= {
        "training replayed",
        "evaluations replayed",
        "objects",
    }
    assert found.exit_code() == 0


def test_a_stalled_epoch_asks_for_guidance_costs_no_target_call_and_is_checked_whole(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path, server.url, SLOW | META | {"epochs": 3}, optimizer="stubborn")
    run_stages(tmp_path, monkeypatch)
    events = reread((tmp_path / "skills" / "events.jsonl").read_bytes().split(b"\n")[:-1])
    compared = [e.data for e in events if e.type == "slow_update.compared"]
    proposed = {e.data["epoch"] for e in events if e.type == "slow_update.proposed"}
    rolled = [e.data for e in events if e.type == "rollouts.scored"]
    stalled = {data["epoch"] for data in compared if data["rule"] == "recorded/1"}
    assert stalled & proposed
    for data in rolled:
        assert data["purpose"] != "slow_update" or data["epoch"] not in stalled
    found = verified(tmp_path)
    assert [str(fault) for fault in found.faults] == []
    assert found.exit_code() == 0

"""One skill for several targets: weights, floors, and a verdict that names who would fall."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from null_store import NullStore
from test_gate import grades
from test_history_verify import data_of, first, forged
from toy_world import Tally, ToyEnvironment, ToyModel, ToyOptimizer, items_of, toy_params
from verify_project import role, says, write_project
from verify_world import verified

from skilltrail.core.errors import ParamError
from skilltrail.core.score import Outcome, Score
from skilltrail.core.targets import Target, cases_of
from skilltrail.history.ask.audit import audit_patch
from skilltrail.history.ask.audit_record import LogOnly
from skilltrail.history.ask.audit_text import audit_text
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import read_log
from skilltrail.history.log.recorder import Recorder
from skilltrail.history.log.run_log import RunLog
from skilltrail.history.log.types.parts import RowScored
from skilltrail.history.log.words import sentence, sentences
from skilltrail.method.gate import GateRule, gate_order, judge_all
from skilltrail.method.rollout import Rollouts
from skilltrail.method.run import Run, gate_rule
from skilltrail.methods.registry import train
from skilltrail.models.panel import Panel
from skilltrail.models.protocol import Reply, Request
from skilltrail.optimizers.protocol import Answer, StepView
from skilltrail.report.tables import curve
from skilltrail.runtime.evaluation import mean_by
from skilltrail.skill.edit import Edit, Patch
from skilltrail.verify.log import verify_log
from skilltrail.verify.rules.evaluations import means_of
from tests.fault_server import FaultServer
from tests.model_world import results, run_stages

TWO = (Target("big", 2.0, 0.5), Target("small"))


def by_case(big: list[float | None], small: list[float | None]) -> dict[str, Score]:
    pairs = [value for pair in zip(big, small, strict=True) for value in pair]
    names = cases_of([f"i{n}" for n in range(len(big))], TWO)
    return {
        name: Score.missing("429") if value is None else Score.scored(value)
        for name, value in zip(names, pairs, strict=True)
    }


def verdict_on(before: dict[str, Score], after: dict[str, Score], **rule: Any) -> Any:
    settings = GateRule(targets=TWO, **rule)
    return judge_all(settings, gate_order(list(before), before, settings), before, after)


def test_what_is_shown_of_several_targets_counts_cases_and_commits_keep_their_words() -> None:
    folder = Path(__file__).parent / "corpus"
    logs = [
        read_log(folder / f"11-targets{kind}.jsonl", continues=bool(kind))
        for kind in ("", ".evaluation")
    ]
    shown = [words for events in logs for _, words in sentences(events)]
    counted = [words for words in shown if words.startswith(("rollouts:", "gate:"))]
    assert any("selection on 4 of 12 cases" in words for words in counted)
    assert any(" on 12 cases" in words for words in counted)
    assert not [words for words in counted if " item" in words]
    assert "selection on 12 items" in "".join(sentence(event, None) for event in logs[0])
    one = read_log(folder / "11-pareto.jsonl")
    assert not [words for _, words in sentences(one) if " case" in words]


def test_the_score_of_several_targets_is_their_weighted_mean() -> None:
    before, after = by_case([0, 1], [0, 1]), by_case([1, 1], [0, 1])
    found = verdict_on(before, after)
    assert (found.verdict, found.before) == ("accepted", 0.5)
    assert found.after == pytest.approx((2 * 1.0 + 0.5) / 3)
    assert [(one.target.name, one.before, one.after) for one in found.targets] == [
        ("big", 0.5, 1.0),
        ("small", 0.5, 0.5),
    ]


def test_a_candidate_that_brings_one_target_down_is_rejected_and_the_target_named() -> None:
    before, after = by_case([0, 0, 1], [1, 1, 1]), by_case([1, 1, 1], [1, 1, 0])
    found = verdict_on(before, after)
    assert found.verdict == "rejected"
    assert found.reason.startswith("target small falls from 1.000 to ")
    assert verdict_on(before, after, tolerance=0.5).verdict == "accepted"


def test_within_the_tolerance_the_floor_still_holds() -> None:
    before, after = by_case([1, 1, 1, 0], [0] * 4), by_case([1, 0, 0, 0], [1, 1, 1, 1])
    found = verdict_on(before, after, tolerance=1.0)
    assert found.verdict == "rejected"
    assert "target big falls" in found.reason
    assert "below its floor 0.5" in found.reason


def test_a_target_below_its_floor_may_rise_but_not_fall() -> None:
    low = by_case([1, 0, 0, 0], [0] * 4)
    assert verdict_on(low, by_case([1, 0, 0, 0], [1, 0, 0, 0])).verdict == "accepted"
    fallen = verdict_on(low, by_case([0, 0, 0, 0], [1, 1, 1, 1]), tolerance=1.0)
    assert (fallen.verdict, "target big" in fallen.reason) == ("rejected", True)


rules = st.builds(
    GateRule,
    rule=st.sampled_from(["strict", "paired", "no_regression", "pareto", "none"]),
    metric=st.sampled_from(["hard", "soft", "mixed"]),
    alpha=st.sampled_from([0.05, 0.3, 0.9]),
    tolerance=st.sampled_from([0.0, 0.1, 0.3, 1.0]),
    prefer_shorter=st.booleans(),
    min_items=st.integers(1, 3),
    min_coverage=st.sampled_from([0.3, 0.6, 1.0]),
    targets=st.builds(
        lambda weights, floors: tuple(map(Target, ("a", "b", "c"), weights, floors)),
        st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=3, max_size=3),
        st.lists(st.sampled_from([0.0, 0.4, 0.8]), min_size=3, max_size=3),
    ),
)
value = st.one_of(grades, st.none())


@given(
    st.lists(st.tuples(*[st.tuples(value, value)] * 3), min_size=1, max_size=5),
    rules,
    st.booleans(),
)
def test_with_several_targets_stopping_early_never_changes_a_verdict(
    rows: list[tuple[tuple[float | None, float | None], ...]], rule: GateRule, shorter: bool
) -> None:
    names = cases_of([f"i{n}" for n in range(len(rows))], rule.targets)
    sides: tuple[dict[str, Score], dict[str, Score]] = ({}, {})
    for name, pair in zip(names, (pair for row in rows for pair in row), strict=True):
        for side, known in zip(sides, pair, strict=True):
            # Where all must be covered a missing item stops the run before any verdict.
            gone = known is None and rule.min_coverage < 1
            score = Score.scored(0.5 if known is None else known)
            side[name] = Score.missing("429") if gone else score
    before, after = sides
    order = gate_order(names, before, rule)
    tokens = {"tokens_before": 5, "tokens_after": 4 if shorter else 5}
    early = judge_all(rule, order, before, after, **tokens)
    full = judge_all(rule, order, before, after, early=False, **tokens)
    assert early.verdict == full.verdict
    assert early.judged == full.judged[: len(early.judged)]


HARMFUL = "- know elm\n- know fir" + "".join(
    f"\n- know yew makes {word} slip" for word in ("ash", "elm", "fir")
)


class Forgetful(ToyModel):
    """Knows what the skill says but for what a line makes it forget."""

    identity = {"backend": "toy", "model": "forgetful"}

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        gone = f"- know yew makes {request.prompt} slip" in request.system
        return replace(reply, text="") if gone else reply


class Tempting(ToyOptimizer):
    """Proposes first a line that helps one target and harms the other, then one that helps."""

    async def reflect(self, view: StepView) -> Answer:
        lines = [HARMFUL, "- know oak"]
        ids = tuple(o.item.id for o in view.observations[:1])
        edits = (Edit("append", content=lines[(view.step - 1) % 2], items=ids),)
        return Answer([Patch("failure", ids, edits)], rule=self.tag)


PANEL = {"big": {"weight": 2.0}, "small": {"floor": 0.1}}


def run_two(
    folder: Path, workers: int = 2, **params: Any
) -> tuple[Recorder, dict[str, ToyModel]]:
    import asyncio

    values = toy_params(**{"epochs": 1, "targets": PANEL} | params)
    members = {"big": ToyModel(workers=workers), "small": Forgetful(workers=workers)}
    recorder = Recorder(folder / "events.jsonl")
    counters = {name: Tally() for name in members}
    run = Run(
        params=values,
        train=items_of("train"),
        selection=items_of("selection"),
        seed_skill="# Trees\n\n- know ash\n",
        rollouts=Rollouts(
            ToyEnvironment(),
            Panel(values.targets_named, members),
            NullStore(),
            counters,
            costs=gate_rule(values).counts_cost,
        ),
        optimizer=Tempting(),
        history=recorder,
    )
    try:
        asyncio.run(train(run))
        recorder.finish()
    finally:
        recorder.close()
    return recorder, members


def gates_of(events: list[Event]) -> list[Mapping[str, Any]]:
    return [event.data for event in events if event.type == "gate.judged"]


def test_a_run_rejects_what_harms_one_target_and_says_so_wherever_one_looks(
    tmp_path: Path,
) -> None:
    recorder, members = run_two(tmp_path)
    events = recorder.events
    gates = gates_of(events)
    assert [gate["verdict"] for gate in gates] == ["rejected", "accepted", "rejected"]
    assert gates[0]["reason"].startswith("target small falls from 0.125 to ")
    assert {one["target"]: (one["weight"], one["floor"]) for one in gates[0]["targets"]} == {
        "big": (2.0, 0.0),
        "small": (1.0, 0.1),
    }
    patch = events[first(events, "edits.selected", step=1)].data["patch"]
    assert "target small falls" in audit_text(audit_patch(RunLog(events), patch, LogOnly()))
    words = [line for event, line in sentences(events) if event.type == "gate.judged"]
    assert "small 0.125 → " in words[0]
    rows = curve(events)
    assert (rows[1]["before_small"], rows[1]["after_small"]) == (0.125, 0.25)
    train_rows = [
        row
        for event in events
        if event.type == "rollouts.scored" and event.data["purpose"] == "train"
        for row in event.data["items"]
    ]
    assert len(train_rows) == 8  # a pass over train costs what it costs with one target
    assert {row["target"] for row in train_rows} == {"big", "small"}
    assert all(model.calls for model in members.values())


def test_the_log_of_several_targets_is_the_same_at_any_concurrency(tmp_path: Path) -> None:
    logs = [
        run_two(tmp_path / str(workers), workers)[0].path.read_bytes() for workers in (1, 2, 7)
    ]
    assert len(set(logs)) == 1


@pytest.mark.parametrize("gate", [{}, {"rule": "paired"}, {"rule": "pareto"}])
def test_a_log_of_several_targets_has_no_fault_and_a_forged_one_does(
    tmp_path: Path, gate: dict[str, Any]
) -> None:
    events = run_two(tmp_path, gate=gate)[0].events
    assert verify_log(data_of(events), "log").faults == []
    at = first(events, "gate.judged")
    for change in (
        lambda data: data["targets"][1].update(floor=0.0),
        lambda data: data["targets"][0].update(before=0.0),
        lambda data: data.update(verdict="accepted"),
    ):
        assert verify_log(forged(events, at, change), "log").faults
    rows = first(events, "rollouts.scored", purpose="train")
    swapped = forged(
        events,
        rows,
        lambda data: data["items"][0].update(
            target="small" if data["items"][0]["target"] == "big" else "big"
        ),
    )
    assert any("target of" in str(fault) for fault in verify_log(swapped, "log").faults)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"targets": {"a b": {}}}, "targets.a b"),
        ({"targets": {"a": {"flor": 0.5}}}, "targets.a.flor"),
        ({"targets": {"a": {"floor": 1.5}}}, "targets.a.floor"),
        ({"targets": {"a": {"weight": 0}}}, "targets.a.weight"),
        ({"targets": {"a": {}}, "method": "random_search"}, "targets"),
        ({"targets": {"a": {}}, "evaluate": {"targets": {"b": {}}}}, "evaluate.targets"),
        ({"targets": [1]}, "targets"),
    ],
)
def test_targets_that_cannot_work_are_refused_by_name(
    values: dict[str, Any], named: str
) -> None:
    with pytest.raises(ParamError) as refused:
        toy_params(**values)
    assert named in str(refused.value)


def test_whole_runs_on_two_models_are_evaluated_per_target_and_verified_at_every_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer(say=says) as server:
        targets = {
            "one": role(server.url, "target", floor=0.1, weight=2),
            "two": role(server.url, "target", provider="other"),
        }
        write_project(tmp_path, server.url, {"targets": targets, "epochs": 1})
        run_stages(tmp_path, monkeypatch)
        before, calls = results(tmp_path), len(server.calls)
        run_stages(tmp_path, monkeypatch)
        assert len(server.calls) == calls  # everything is recorded
        assert results(tmp_path) == before
    found = verified(tmp_path)
    assert [str(fault) for fault in found.faults] == []
    assert [(row.rule, row.check.note) for row in found.rows if not row.check.whole] == []
    assert found.exit_code() == 0
    numbers = json.loads((tmp_path / "reports/out/metrics.json").read_text("utf-8"))
    assert set(numbers["test"]["targets"]) == {"one", "two"}
    assert numbers["test"]["items"] == numbers["test"]["targets"]["one"]["items"] == 6
    training = read_log(tmp_path / "skills/events.jsonl")
    evaluation = read_log(tmp_path / "reports/out/evaluation.jsonl", after=training[-1])
    measured = [e.data for e in evaluation if e.type == "skill.evaluated"]
    assert [one["target"] for one in measured[0]["targets"]] == ["one", "two"]
    page = (tmp_path / "reports/out/index.html").read_text("utf-8")
    assert "several models (one, two), which stay frozen" in page


@given(st.lists(st.integers(0, 100).map(lambda n: n / 100), min_size=1, max_size=60))
@example([0.3] * 12 + [1.0] * 24)
def test_the_verifier_takes_the_means_of_an_evaluation_as_the_evaluation_does(
    softs: list[float],
) -> None:
    scores = [Score.scored(0.0, soft, "judged") for soft in softs]
    rows = [RowScored(item="a", outcome=Outcome.SCORED, hard=0.0, soft=soft, reason="judged",
                      key=None) for soft in softs]  # fmt: skip
    assert means_of(rows)["mean_soft"] == mean_by(GateRule(metric="soft"), scores)

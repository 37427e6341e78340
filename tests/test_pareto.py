"""Cost as an objective: the rule `pareto`, from the gate to the chart."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from test_gate import grades, scores
from test_history_verify import data_of, forged
from toy_world import ToyModel, ToyOptimizer, ToyRun, run_toy, toy_params

from skilltrail.core.score import Cost, Score
from skilltrail.history.log.words import sentences
from skilltrail.method.gate import GateRule, GateVerdict, gate_order, judge_all, recorded
from skilltrail.models.protocol import Reply, Request
from skilltrail.optimizers.protocol import Answer, StepView
from skilltrail.report.costs import cost_chart, priced
from skilltrail.report.page import page
from skilltrail.skill.edit import Edit, Patch
from skilltrail.verify.log import verify_log
from tests.null_store import NullStore

PARETO = GateRule(rule="pareto")
WORDY = "# Trees\n\n- know ash\n- know elm\n" + "".join(f"- aside {n}\n" for n in range(6))


def costing(values: Sequence[float], *costs: Cost | None) -> dict[str, Score]:
    return {
        id: replace(score, cost=cost)
        for (id, score), cost in zip(scores(list(values)).items(), costs, strict=True)
    }


def word(before: dict[str, Score], after: dict[str, Score], **options: bool) -> GateVerdict:
    return judge_all(PARETO, gate_order(list(before), before, PARETO), before, after, **options)


def test_a_higher_score_wins_at_any_cost_and_a_lower_one_loses_at_any() -> None:
    cheap, dear = [Cost(1, 1)] * 2, [Cost(100, 9)] * 2
    assert word(costing([0, 1], *cheap), costing([1, 1], *dear)).verdict == "accepted"
    assert word(costing([1, 1], *dear), costing([0, 1], *cheap)).verdict == "rejected"


def test_an_equal_score_wins_with_fewer_tokens_or_calls_and_not_more_of_the_other() -> None:
    now = costing([0, 1], Cost(10, 2), Cost(10, 2))
    for cost, verdict in (
        (Cost(9, 2), "accepted"), (Cost(10, 1), "accepted"), (Cost(10, 2), "rejected"),
        (Cost(9, 3), "rejected"), (Cost(11, 1), "rejected"), (Cost(None, 1), "rejected"),
    ):  # fmt: skip
        found = word(now, costing([0, 1], cost, Cost(10, 2)), early=False)
        assert found.verdict == verdict, cost
    assert recorded(word(now, costing([0, 1], Cost(9, 2), Cost(10, 2))), 2)["cost"] == {
        "before": {"tokens": 20, "calls": 4},
        "after": {"tokens": 19, "calls": 4},
    }


costs = st.one_of(
    st.none(), st.builds(Cost, st.one_of(st.none(), st.integers(0, 3)), st.integers(0, 3))
)
measured = st.tuples(grades, costs, st.one_of(grades, st.none()), costs)


@given(
    st.lists(measured, min_size=1, max_size=9),
    st.sampled_from([0.3, 0.6, 1.0]),
    st.integers(1, 3),
)
def test_stopping_early_never_changes_a_verdict_on_cost(
    rows: list[tuple[float, Cost | None, float | None, Cost | None]], share: float, least: int
) -> None:
    rule = replace(PARETO, min_coverage=share, min_items=least)
    before = costing([row[0] for row in rows], *(row[1] for row in rows))
    after = {}
    for n, (_, _, value, cost) in enumerate(rows):
        missing = value is None and share < 1
        score = Score.scored(0.5 if value is None else value)
        after[f"i{n}"] = Score.missing("429") if missing else replace(score, cost=cost)
    order = gate_order(list(before), before, rule)
    early = judge_all(rule, order, before, after)
    full = judge_all(rule, order, before, after, early=False)
    assert early.verdict == full.verdict
    assert early.judged == full.judged[: len(early.judged)]


class Counting(ToyModel):
    """Uses as many tokens as it is told words."""

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        return replace(reply, usage={"input": len(request.system.split()), "output": 1})


class Shortener(ToyOptimizer):
    """Takes one aside out at each step, and nothing that helps."""

    async def reflect(self, view: StepView) -> Answer:
        line = next((one for one in view.skill.split("\n") if one.startswith("- aside")), None)
        edits = () if line is None else (Edit("delete", line),)
        ids = tuple(o.item.id for o in view.observations[:1])
        return Answer([Patch("failure", ids, edits)], rule=self.tag)


def pareto_run(folder: Path, **gate: object) -> ToyRun:
    params = toy_params(epochs=1, gate={"rule": "pareto", **gate})
    return run_toy(
        folder, NullStore(), params, Counting(), optimizer=Shortener(), seed_skill=WORDY
    )


def test_an_equal_score_at_a_lower_cost_is_accepted_and_delivered(tmp_path: Path) -> None:
    run = pareto_run(tmp_path)
    gates = run.events("gate.judged")
    assert [gate["verdict"] for gate in gates] == ["accepted"] * 4
    assert {gate["reason"] for gate in gates} == {"mean equal at a lower cost"}
    assert {gate["after"] - gate["before"] for gate in gates} == {0.0}
    assert run.state.best_skill == run.state.skill
    assert run.state.best_skill.count("- aside") == 2
    kept = run_toy(
        tmp_path / "kept", NullStore(), toy_params(epochs=1, gate={"prefer_shorter": False}),
        Counting(), optimizer=Shortener(), seed_skill=WORDY,
    )  # fmt: skip
    assert kept.state.version == 0
    assert b'"cost"' not in kept.log


def test_what_was_decided_on_cost_is_verified_shown_and_drawn(tmp_path: Path) -> None:
    run = pareto_run(tmp_path)
    events = run.recorder.events
    assert verify_log(data_of(events), "log").faults == []
    at = next(n for n, event in enumerate(events) if event.type == "gate.judged")
    changed = forged(events, at, lambda data: data["cost"]["after"].update(tokens=1))
    assert any("cost" in str(fault) for fault in verify_log(changed, "log").faults)
    words = [line for event, line in sentences(events) if event.seq == at + 1]
    assert "agent: 216 → 192 tokens, 8 → 8 calls" in words[0]
    points = priced(events)
    assert [point.name for point in points] == ["seed", *(f"step {n}" for n in range(1, 5))]
    assert [point.tokens for point in points] == [27.0, 24.0, 21.0, 18.0, 15.0]
    assert "step 4: 0.250, 15 tokens, 1.0 calls" in cost_chart(points)
    assert "Score against tokens a rollout" in page(events, [])
    strict = run_toy(tmp_path / "strict", NullStore(), toy_params(epochs=1)).recorder.events
    assert "Score against tokens" not in page(strict, [])

"""The loop: same facts, same log, at any concurrency and after any interruption."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from toy_world import SEED_SKILL, WORDS, ToyModel, ToyOptimizer, run_toy, toy_params

import skilltrail.verify.rules
from skilltrail.core.errors import IncompleteError
from skilltrail.models.errors import ModelConfigError, Transient
from skilltrail.models.protocol import Reply, Request
from skilltrail.optimizers.protocol import Answer, EpochView, StepRecord, StepView
from skilltrail.runtime.outputs import facts_named
from skilltrail.skill.edit import Edit, Patch
from skilltrail.store.exports import export_shards, import_shards
from skilltrail.store.facts import FactStore
from skilltrail.verify.log import verify_log

assert skilltrail.verify.rules  # its import registers the checks


@pytest.fixture
def store(tmp_path: Path) -> FactStore:
    return FactStore.open(tmp_path)


def test_the_skill_learns_and_the_best_version_is_kept(
    tmp_path: Path, store: FactStore
) -> None:
    done = run_toy(tmp_path, store, toy_params())
    assert done.state.best_mean == 1
    assert all(f"- know {word}" in done.state.best_skill for word in WORDS)
    verdicts = [event["verdict"] for event in done.events("gate.judged")]
    assert "accepted" in verdicts
    assert "rejected" in verdicts


def test_the_log_is_the_same_at_any_concurrency(tmp_path: Path, store: FactStore) -> None:
    logs = set()
    for workers in (1, 2, 16):
        folder = tmp_path / str(workers)
        model = ToyModel(workers=workers)
        logs.add(run_toy(folder, FactStore.open(folder), toy_params(), model).log)
    assert len(logs) == 1


def test_running_again_makes_no_call_and_the_same_log(tmp_path: Path, store: FactStore) -> None:
    first = run_toy(tmp_path / "a", store, toy_params())
    again = run_toy(tmp_path / "b", store, toy_params())
    assert again.model.calls == []
    assert again.log == first.log


def test_another_learning_rate_shares_all_events_before_the_first_budget(
    tmp_path: Path, store: FactStore
) -> None:
    low = run_toy(tmp_path / "low", store, toy_params(lr=1))
    high = run_toy(tmp_path / "high", store, toy_params(lr=4))
    one, two = low.log.split(b"\n"), high.log.split(b"\n")
    types = [event.type for event in low.recorder.events]
    fork = types.index("budget.decided")
    assert one[:fork] == two[:fork]
    assert one[fork] != two[fork]
    seen = low.recorder.events[: fork + 1]
    shared = sum(len(e.data["items"]) for e in seen if e.type == "rollouts.scored")
    assert high.tally.reused >= shared


def test_the_gate_param_changes_nothing_before_the_first_verdict(
    tmp_path: Path, store: FactStore
) -> None:
    strict = run_toy(tmp_path / "strict", store, toy_params())
    paired = run_toy(tmp_path / "paired", store, toy_params(gate={"rule": "paired"}))
    types = [event.type for event in strict.recorder.events]
    fork = types.index("gate.judged")
    assert strict.log.split(b"\n")[:fork] == paired.log.split(b"\n")[:fork]


@pytest.mark.parametrize("stop_after", [1, 5, 9, 14, 23, 31])
def test_stopping_anywhere_and_running_again_equals_never_stopping(
    tmp_path: Path, stop_after: int
) -> None:
    clean = FactStore.open(tmp_path / "whole")
    whole = run_toy(tmp_path / "whole", clean, toy_params(), ToyModel(workers=1))
    folder = tmp_path / "cut"
    store = FactStore.open(folder)
    calls = []

    def stop(word: str) -> Exception | None:
        calls.append(word)
        return KeyboardInterrupt() if len(calls) > stop_after else None  # type: ignore[return-value]

    with pytest.raises(KeyboardInterrupt):
        run_toy(folder, store, toy_params(), ToyModel(workers=1, fail=stop))
    rest = run_toy(folder, store, toy_params(), ToyModel(workers=1))
    assert rest.log == whole.log
    # The call that was cut is made again; no finished one is.
    assert stop_after + len(rest.model.calls) == whole.tally.made


def test_a_failed_call_is_missing_and_never_a_zero(tmp_path: Path, store: FactStore) -> None:
    broken = ToyModel(
        fail=lambda word: Transient("connection reset") if word == "oak" else None
    )
    with pytest.raises(IncompleteError, match="connection reset"):
        run_toy(tmp_path, store, toy_params(), broken)
    assert b'"purpose":"baseline"' not in (tmp_path / "events.jsonl").read_bytes()
    fixed = run_toy(tmp_path, store, toy_params())
    assert fixed.tally.reused >= len(WORDS) - 1
    assert fixed.state.best_mean == 1


def test_with_leave_a_run_goes_on_with_gaps_and_a_rerun_agrees(
    tmp_path: Path, store: FactStore
) -> None:
    params = toy_params(gate={"min_coverage": 0.5})
    broken = ToyModel(fail=lambda word: Transient("reset") if word == "oak" else None)
    first = run_toy(tmp_path / "a", store, params, broken)
    baseline = first.events("rollouts.scored")[0]
    assert baseline["coverage"] == {"scored": 7, "asked": 8}
    assert baseline["mean_hard"] == pytest.approx(1 / 7)
    again = run_toy(tmp_path / "b", store, params)  # the endpoint works now; the gap stays
    assert again.log == first.log


class Forgetful(ToyModel):
    """Gives no reply to two items that the seed skill fails, once the skill has changed."""

    async def complete(self, request: Request) -> Reply:
        if request.system != SEED_SKILL and request.prompt in ("oak", "elm"):
            raise Transient("reset")
        return await super().complete(request)


class Idle(ToyOptimizer):
    """Proposes a line that helps nobody."""

    async def reflect(self, view: StepView) -> Answer:
        edit = Edit("append", content=f"- step {view.step} passed")
        return Answer([Patch("failure", (), (edit,))], rule=self.tag)


def test_gaps_lift_no_mean_and_move_no_best_skill(tmp_path: Path, store: FactStore) -> None:
    """One of eight is 0.125, one of six 0.167: the same one item both times."""
    params = toy_params(gate={"min_coverage": 0.5}, use_gate=False, epochs=1)
    done = run_toy(tmp_path, store, params, Forgetful(), optimizer=Idle())
    judged = done.events("gate.judged")[0]
    assert (judged["before"], judged["after"]) == (1 / 6, 1 / 6)
    assert (judged["compared"], judged["total"]) == (6, 8)
    assert [e["best"] for e in done.events("skill.versioned")][:2] == [True, False]
    assert done.events("run.finished")[0]["best"]["version"] == 0
    assert verify_log(done.log, "log").faults == []


def test_too_low_a_coverage_stops_the_run_even_with_leave(
    tmp_path: Path, store: FactStore
) -> None:
    params = toy_params(gate={"min_coverage": 0.9})
    broken = ToyModel(fail=lambda word: Transient("reset") if word in "oak elm" else None)
    with pytest.raises(IncompleteError, match="min_coverage"):
        run_toy(tmp_path, store, params, broken)


def test_a_wrong_key_stops_the_run_at_once(tmp_path: Path, store: FactStore) -> None:
    refused = ToyModel(workers=4, fail=lambda word: ModelConfigError("the key", "refused"))
    with pytest.raises(ModelConfigError, match="refused"):
        run_toy(tmp_path, store, toy_params(), refused)
    assert len(refused.calls) <= 4


def test_no_gate_accepts_everything_and_marks_it(tmp_path: Path, store: FactStore) -> None:
    done = run_toy(tmp_path, store, toy_params(use_gate=False, epochs=1))
    judged = done.events("gate.judged")
    assert {(e["verdict"], e["forced"], e["judged"]) for e in judged} == {("accepted", True, 8)}


def test_patience_ends_a_stalled_run_and_says_so(tmp_path: Path, store: FactStore) -> None:
    done = run_toy(tmp_path, store, toy_params(epochs=9, patience=2))
    end = done.events("run.finished")[0]
    assert (end["why"], end["patience"]) == ("patience", 2)
    assert end["steps"] < 9 * 4


@pytest.mark.parametrize("rule", ["strict", "paired", "no_regression"])
def test_a_full_score_ends_a_run_in_which_no_shorter_document_counts(
    tmp_path: Path, store: FactStore, rule: str
) -> None:
    gate = {"rule": rule, "alpha": 0.99, "prefer_shorter": False}
    done = run_toy(tmp_path, store, toy_params(epochs=9, gate=gate))
    end = done.events("run.finished")[0]
    assert (end["why"], end["best"]["score"]) == ("full_score", 1.0)
    assert done.events("step.ended")[-1]["result"] == "accepted"
    assert end["steps"] < 9 * 4
    assert verify_log(done.log, "log").faults == []


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"gate": {"rule": "pareto"}},
        {"use_gate": False},
        {"gate": {"prefer_shorter": False}, "slow_update": {"enabled": True, "mode": "force"}},
    ],
)
def test_a_full_score_ends_no_run_in_which_a_candidate_may_still_be_accepted(
    tmp_path: Path, store: FactStore, changes: dict[str, Any]
) -> None:
    done = run_toy(tmp_path, store, toy_params(**changes), optimizer=Guiding())
    assert done.state.best_mean == 1
    assert done.events("run.finished")[0]["why"] == "epochs"


def test_a_full_score_ends_a_run_whose_optimizer_has_no_more_to_say(
    tmp_path: Path, store: FactStore
) -> None:
    done = run_toy(tmp_path, store, toy_params(epochs=9), optimizer=Content())
    assert done.events("run.finished")[0]["why"] == "full_score"
    more = {"skill_aware": {"enabled": True}}
    again = run_toy(tmp_path / "2", store, toy_params(epochs=2, **more), optimizer=Content())
    assert again.events("run.finished")[0]["why"] == "epochs"


class Guiding(ToyOptimizer):
    async def slow_update(self, view: EpochView) -> Answer:
        return Answer(None, rule=self.tag)


class Content(Guiding):
    """Wants no more than a full score."""

    def is_done(self, history: Sequence[StepRecord]) -> bool:
        return any(record.after == 1.0 for record in history)


def test_early_stopping_saves_rollouts_and_counts_them(
    tmp_path: Path, store: FactStore
) -> None:
    done = run_toy(tmp_path, store, toy_params())
    rejected = [e for e in done.events("gate.judged") if e["verdict"] == "rejected"]
    assert rejected
    for event in rejected:
        assert event["saved"] == event["total"] - event["judged"]
        assert event["after"] is None or event["judged"] == event["total"]
    total = done.events("run.finished")[0]["totals"]["saved"]
    assert total == sum(event["saved"] for event in done.events("gate.judged"))


class Silent(ToyOptimizer):
    async def reflect(self, view: StepView) -> Answer:
        return Answer([Patch("failure", (), ())], rule=self.tag)


class Repeating(ToyOptimizer):
    """Proposes an edit that cannot apply and one that changes nothing."""

    async def reflect(self, view: StepView) -> Answer:
        edits = (
            Edit("replace", target="- ghost", content="- x"),
            Edit("replace", target="- know ash", content="- know ash"),
        )
        return Answer([Patch("failure", ("train-oak",), edits)], rule=self.tag)


def test_a_step_without_edits_changes_nothing_and_says_so(
    tmp_path: Path, store: FactStore
) -> None:
    done = run_toy(tmp_path, store, toy_params(epochs=1), optimizer=Silent())
    assert {e["result"] for e in done.events("step.ended")} == {"no_patch"}
    assert done.events("gate.judged") == []


def test_edits_without_effect_are_never_evaluated(tmp_path: Path, store: FactStore) -> None:
    done = run_toy(tmp_path, store, toy_params(epochs=1), optimizer=Repeating())
    assert {e["result"] for e in done.events("step.ended")} == {"no_change"}
    statuses = [r["status"] for r in done.events("candidate.built")[0]["results"]]
    assert statuses == ["not_found", "noop"]
    assert done.events("gate.judged") == []


class Mixed(ToyOptimizer):
    async def reflect(self, view: StepView) -> Answer:
        good = Edit("append", content="- know oak", items=("train-oak",))
        ghosts = [Edit("delete", target=f"- x{n}") for n in range(3)]
        return Answer([Patch("failure", ("train-oak",), (good, *ghosts))], rule=self.tag)

    async def rank(self, view: StepView, edits: Sequence[Edit]) -> Answer:
        return Answer(list(range(len(edits))), rule=self.tag)


def test_only_the_applied_edit_is_credited_with_an_acceptance(
    tmp_path: Path, store: FactStore
) -> None:
    done = run_toy(tmp_path, store, toy_params(epochs=1, lr=4), optimizer=Mixed())
    version = done.events("skill.versioned")[1]
    selected = done.events("edits.selected")[0]["selected"]
    assert version["edits"] == selected[:1]
    assert version["not_applied"] == selected[1:]


def test_a_budget_of_edits_is_never_exceeded(tmp_path: Path, store: FactStore) -> None:
    for lr in (1, 2, 3):
        done = run_toy(tmp_path / str(lr), store, toy_params(lr=lr, batch_size=8))
        assert all(len(e["selected"]) <= lr for e in done.events("edits.selected"))


def test_accumulation_pools_batches_into_one_step(tmp_path: Path, store: FactStore) -> None:
    done = run_toy(tmp_path, store, toy_params(epochs=1, batch_size=2, accumulation=3))
    scored = [e for e in done.events("rollouts.scored") if e["purpose"] == "train"]
    assert [len(e["items"]) for e in scored] == [6, 2]
    assert len(done.events("step.ended")) == 2


def test_a_store_that_holds_only_what_the_log_names_is_enough_for_no_call(
    tmp_path: Path, store: FactStore
) -> None:
    first = run_toy(tmp_path / "a", store, toy_params(), ToyModel(workers=4))
    folder = tmp_path / "export"
    export_shards(store, facts_named(first.recorder.events), folder)
    with FactStore.open(tmp_path / "second") as second:
        import_shards(second, folder)
        again = run_toy(tmp_path / "b", second, toy_params(), ToyModel(workers=4))
    assert again.model.calls == []
    assert again.log == first.log

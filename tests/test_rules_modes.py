"""The embedded optimizer in every part of the method: modes, epoch ends, its memory."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from toy_world import ToyEnvironment, ToyModel, ToyRun, run_toy, toy_params

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.catalogue import Catalogue, FailureType
from skilltrail.optimizers.protocol import EpochView, Observation, Pair, StepRecord
from skilltrail.optimizers.rules import RulesOptimizer
from skilltrail.optimizers.rules.epochs import guidance, memory_text, weights
from skilltrail.optimizers.rules.writing import as_edit, as_suggestion, written
from skilltrail.skill.document import region_text
from skilltrail.skill.edit import Edit, EditResult, EditStatus
from skilltrail.store.facts import FactStore

HINT = "Think of trees."


class ToyTeacher(ToyEnvironment):
    """The toy environment with a catalogue and examples; an example teaches its own word."""

    @cached_property
    def catalogue(self) -> Catalogue:
        return Catalogue((FailureType("blank", "no answer", ("wrong",), (HINT, "Try.")),))

    def example(self, item: Item) -> str | None:
        return f"- know {item.input['word']}"

    def traits(self, item: Item) -> frozenset[str]:
        return frozenset({str(item.input["word"])})


def run_rules(folder: Path, model: ToyModel | None = None, **params: Any) -> ToyRun:
    with FactStore.open(folder) as store:
        optimizer = RulesOptimizer(ToyTeacher())
        return run_toy(folder, store, toy_params(**params), model, optimizer=optimizer)


@pytest.mark.parametrize(
    "mode", ["patch", "rewrite_from_suggestions", "full_rewrite_minibatch"]
)
def test_rules_learn_in_every_update_mode(tmp_path: Path, mode: str) -> None:
    done = run_rules(tmp_path, update_mode=mode, epochs=4, lr=3)
    assert done.state.best_mean > 0.6
    assert {event["mode"] for event in done.events("candidate.built")} == {mode}


@pytest.mark.parametrize("mode", ["rewrite_from_suggestions", "full_rewrite_minibatch"])
def test_no_candidate_that_lost_is_proposed_again_on_the_same_document(
    tmp_path: Path, mode: str
) -> None:
    done = run_rules(tmp_path, update_mode=mode, epochs=6)
    built = done.events("candidate.built")
    tried = [(event["parent"], event["candidate"]) for event in built]
    assert len(tried) == len(set(tried))


def test_suggestions_stand_for_the_edits_they_came_from() -> None:
    for edit in (
        Edit("append", content="- a"),
        Edit("replace", target="- a", content="- b"),
        Edit("delete", target="- a"),
    ):
        assert as_edit(as_suggestion(edit)) == edit
    line = Edit("insert_after", target="# T", content="- a")
    assert written("# T\n", [as_edit(as_suggestion(line))]) == "# T\n- a\n"


def test_slow_update_meta_skill_and_budget_run_with_rules_and_give_one_log(
    tmp_path: Path,
) -> None:
    params = {
        "epochs": 3,
        "lr": 2,
        "lr_schedule": "autonomous",
        "slow_update": {"enabled": True, "samples": 4, "mode": "force"},
        "meta_skill": {"enabled": True},
    }
    logs = set()
    for workers in (1, 8):
        done = run_rules(tmp_path / f"{workers}", ToyModel(workers=workers), **params)
        logs.add(done.log)
    assert len(logs) == 1
    assert [event["epoch"] for event in done.events("meta_skill.written")] == [1, 2, 3]
    assert done.events("budget.decided")[1]["rule"] == "autonomous/1"


def pair(category: str, hard: float, reason: str) -> Pair:
    item = Item("a", {"word": "oak"}, "oak")
    seen = Observation(item, Trajectory((), ""), Score.scored(hard, reason=reason), "k")
    return Pair(item, None, seen, category)


def epoch(*pairs: Pair, number: int = 2, skill: str = "# T\n") -> EpochView:
    return EpochView(number, 1, skill, "", pairs, "", "", ())


def test_guidance_is_a_line_against_what_still_fails_and_not_yet_said() -> None:
    failing = pair("persistent_failure", 0.0, "wrong")
    assert guidance(epoch(failing), ToyTeacher()) == HINT
    assert guidance(epoch(failing, skill=f"# T\n- {HINT}\n"), ToyTeacher()) == "Try."
    assert guidance(epoch(failing, number=3), ToyTeacher()) == "Try."
    assert guidance(epoch(pair("stable_success", 1.0, "")), ToyTeacher()) is None


def record(verdict: str, *edits: Edit) -> StepRecord:
    results = tuple(EditResult(edit.id, EditStatus.APPLIED) for edit in edits)
    return StepRecord(1, 1, verdict, edits, results)


def test_the_weight_of_what_was_rejected_falls() -> None:
    line, example = Edit("append", content="- x"), Edit("append", content="E", kind="example")
    history = (record("accepted", example), record("rejected", line), record("rejected", line))
    text = memory_text(history)
    assert "- line added: kept 0, lost 2" in text
    share = weights(text)
    assert share["line added"] < share["part removed"] < share["example added"]
    assert set(weights("").values()) == {0.5}


def test_forced_guidance_stands_in_its_region(tmp_path: Path) -> None:
    slow = {"enabled": True, "samples": 8, "mode": "force"}
    done = run_rules(tmp_path, epochs=2, batch_size=8, lr=1, slow_update=slow)
    assert region_text(done.state.skill, "slow_update") == HINT

"""Compaction: the same skill in fewer tokens, judged at the end of an epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from llm_script import ScriptedModel, epoch_view, optimizer_of
from llm_script import run as wait
from null_store import NullStore
from test_method import Whole
from toy_world import SEED_SKILL, ToyRun, run_toy, toy_params

from skilltrail.history.log.candidate_events import candidate_around
from skilltrail.history.log.events import Event, parse_event
from skilltrail.history.log.log import follow
from skilltrail.history.log.run_log import RunLog
from skilltrail.optimizers.protocol import Answer, EpochView, StepRecord, StepView
from skilltrail.optimizers.rules.compacting import shorter
from skilltrail.skill.edit import Edit, EditResult, EditStatus
from skilltrail.verify.log import verify_log

USELESS = "- step"


class Brief(Whole):
    """Leaves out the lines that no item needs."""

    def __init__(self, keep: str = "- know") -> None:
        super().__init__()
        self.keep = keep

    async def compact(self, view: EpochView) -> Answer:
        lines = [line for line in view.skill.split("\n") if not line.startswith(USELESS)]
        text = "\n".join(line for line in lines if self.keep in line or line[:1] != "-")
        return Answer(text, "useless lines left out", self.tag)


def train(folder: Path, optimizer: Whole, **params: Any) -> ToyRun:
    params = {"compaction": True, "lr": 3, "use_gate": True} | params
    return run_toy(folder, NullStore(), toy_params(**params), optimizer=optimizer)


def compactions(done: ToyRun, type: str) -> list[dict[str, Any]]:
    return [event for event in done.events(type) if event.get("source") == "compaction"]


def test_an_equal_score_with_fewer_tokens_is_the_next_version(tmp_path: Path) -> None:
    done = train(tmp_path, Brief())
    judged = compactions(done, "gate.judged")[0]
    assert judged["verdict"] == "accepted"
    assert "shorter" in judged["reason"]
    assert judged["before"] == judged["after"]
    assert judged["tokens_after"] < judged["tokens_before"]
    assert USELESS not in done.state.skill
    patch = done.events("compaction.proposed")[0]["patch"]
    assert patch in [event["patch"] for event in done.events("skill.versioned")]


@pytest.mark.parametrize("rule", ["strict", "no_regression", "none"])
def test_an_accepted_shorter_skill_is_what_is_delivered(tmp_path: Path, rule: str) -> None:
    gate = {} if rule == "none" else {"gate": {"rule": rule}}
    done = train(tmp_path, Brief(), use_gate=rule != "none", **gate)
    judged = compactions(done, "gate.judged")[-1]
    assert (judged["verdict"], judged["before"]) == ("accepted", judged["after"])
    versions = done.events("skill.versioned")
    assert versions[-1]["best"]
    finished = done.events("run.finished")[0]
    assert finished["best"] == finished["last"]
    assert finished["best"]["score"] == judged["after"]
    assert done.state.best_skill == done.state.skill
    assert verify_log(done.log, "log").faults == []


def test_a_log_by_the_earlier_rule_for_best_is_not_recomputed_and_no_fault(
    tmp_path: Path,
) -> None:
    done = train(tmp_path, Brief())
    events = [parse_event(line, "log") for line in done.log.splitlines()]
    ties = {e.seq for e in events if e.type == "gate.judged" and e.data["reason"] == "shorter"}
    log: list[Event] = []
    for event in events:
        data = dict(event.data)
        if event.type == "skill.versioned" and data["gate"] in ties:
            data["best"] = False
        if event.type == "run.finished":
            best = [e.data for e in log if e.type == "skill.versioned" and e.data["best"]][-1]
            data["best"] = {"version": best["version"], "digest": best["digest"], "score": 1.0}
        log.append(follow(log[-1] if log else None, event.type, data))
    report = verify_log(b"".join(event.line + b"\n" for event in log), "log")
    assert report.faults == []
    assert report.tags.unknown == {"best_by_score/1": len(ties)}


def test_a_document_that_lost_what_counts_is_rejected(tmp_path: Path) -> None:
    done = train(tmp_path, Brief(keep="- never"))
    assert {e["verdict"] for e in compactions(done, "gate.judged")} == {"rejected"}
    assert done.state.skill.count("- know") > 1


def test_without_the_param_nobody_is_asked(tmp_path: Path) -> None:
    done = train(tmp_path, Brief(), compaction=False)
    assert done.events("compaction.proposed") == []
    assert USELESS in done.state.skill


def test_a_document_that_is_no_shorter_is_never_evaluated(tmp_path: Path) -> None:
    class Wordy(Brief):
        async def compact(self, view: EpochView) -> Answer:
            return Answer(view.skill + "- and so on\n", rule=self.tag)

    done = train(tmp_path, Wordy())
    assert len(compactions(done, "candidate.built")) == 2
    assert compactions(done, "gate.judged") == []


def learned(*contents: tuple[str, int]) -> StepRecord:
    edits = tuple(
        Edit("append", content=text, items=tuple(map(str, range(support))), id=f"9.{n}")
        for n, (text, support) in enumerate(contents)
    )
    results = tuple(EditResult(edit.id, EditStatus.APPLIED) for edit in edits)
    return StepRecord(1, 1, "accepted", edits, results)


@pytest.mark.parametrize(("epoch", "gone"), [(1, "- b"), (2, "- a"), (3, "- b")])
def test_rules_leave_out_what_the_fewest_items_stand_behind(epoch: int, gone: str) -> None:
    view = EpochView(
        epoch, 1, SEED_SKILL + "- a\n- b\n", "", (), "", "", (learned(("- a", 5), ("- b", 1)),)
    )
    text, _ = shorter(view)
    assert text is not None
    assert set(view.skill.split("\n")) - set(text.split("\n")) == {gone}


def test_rules_spare_what_stood_in_the_seed_skill() -> None:
    text, reason = shorter(EpochView(1, 1, SEED_SKILL, "", (), "", "", ()))
    assert text is None
    assert "nothing" in reason


def test_a_prompted_optimizer_is_told_when_its_document_is_not_shorter() -> None:
    long = epoch_view(()).skill + "- More words.\n"
    short = "# Answers\n\n- Answer briefly.\n"
    optimizer, model = optimizer_of([{"document": long}, {"document": short}])
    answer = wait(optimizer.compact(epoch_view(())))
    assert answer.value == short
    assert "not_shorter" in answer.rejected[0].message
    assert len(model.requests) == 2


def test_nothing_to_spare_is_an_answer() -> None:
    optimizer, _ = optimizer_of(ScriptedModel([{"document": None}]))
    answer = wait(optimizer.compact(epoch_view(())))
    assert (answer.value, answer.rejected) == (None, ())


def test_no_evaluation_is_paid_for_a_line_that_the_skill_has(tmp_path: Path) -> None:
    class Parrot(Whole):
        async def reflect(self, view: StepView) -> Answer:
            answer = await super().reflect(view)
            said = Edit("append", content="* KNOW ash!")
            patches = [
                patch.__class__("failure", patch.items, (said,)) for patch in answer.value
            ]
            return Answer(patches, rule=self.tag)

    done = train(tmp_path, Parrot(), compaction=False, epochs=1)
    assert all(event["edits"] == [] for event in done.events("patch.merged"))
    assert all("repeats_skill" in e["reason"] for e in done.events("patch.merged"))
    assert {event["result"] for event in done.events("step.ended")} == {"no_change"}
    assert done.events("gate.judged") == []


@pytest.mark.parametrize("mode", ["patch", "rewrite_from_suggestions"])
def test_a_run_with_compactions_is_verified_and_explained(tmp_path: Path, mode: str) -> None:
    done = train(
        tmp_path, Brief(), update_mode=mode, slow_update={"enabled": True, "samples": 4}
    )
    report = verify_log(done.log, "log")
    assert [str(fault) for fault in report.faults] == []
    story = RunLog(done.recorder.events)
    assert len(story.versions) == done.state.version + 1
    proposed = next(e for e in story.events if e.type == "compaction.proposed")
    trial = candidate_around(story, proposed)
    assert [event.type for event in trial.proposals] == ["compaction.proposed"]
    assert trial.gate is not None
    assert trial.gate.data["source"] == "compaction"

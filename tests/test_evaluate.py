"""Evaluation is paired, counts only scored items, and never touches the training log."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from toy_world import (
    SEED_SKILL,
    WORDS,
    Tally,
    ToyEnvironment,
    ToyModel,
    items_of,
    run_toy,
    toy_params,
)

from skilltrail.core.item import Item
from skilltrail.history.log.events import Event
from skilltrail.history.log.recorder import Recorder
from skilltrail.method.gate import GateRule
from skilltrail.method.rollout import Rollouts
from skilltrail.report.tables import COLUMNS, curve, metrics, tsv
from skilltrail.runtime.evaluation import NamedSkill, measure, skills_of
from skilltrail.store.facts import FactStore


def evaluated(
    folder: Path, training: Sequence[Event], items: Sequence[Item], rule: GateRule
) -> list[Event]:
    """Measure the skills of a training log with the toy model."""
    with FactStore.open(folder) as store:
        rollouts = Rollouts(ToyEnvironment(), ToyModel(), store, Tally())
        recorder = Recorder(folder / "evaluation.jsonl", after=training[-1])
        skills = skills_of(training)
        asyncio.run(measure(rollouts, rule, items, skills, recorder, "test"))
        recorder.finish()
    return recorder.events


def test_the_gain_is_paired_and_the_log_goes_on_from_the_training_log(tmp_path: Path) -> None:
    with FactStore.open(tmp_path) as store:
        done = run_toy(tmp_path, store, toy_params())
    events = evaluated(tmp_path, done.recorder.events, items_of("test"), GateRule())
    assert events[0].prev == done.recorder.events[-1].id
    assert [e.type for e in events][:1] == ["test.opened"]
    seed, best, *_ = [e.data for e in events if e.type == "skill.evaluated"]
    assert (seed["name"], seed["gain"]) == ("seed", None)
    assert best["mean_hard"] == 1.0
    assert best["gain"] == pytest.approx(7 / 8)
    assert best["gain_low"] < 7 / 8 < best["gain_high"] + 1e-9


def test_metrics_and_curve_tell_the_run_in_numbers(tmp_path: Path) -> None:
    with FactStore.open(tmp_path) as store:
        done = run_toy(tmp_path, store, toy_params())
    training = done.recorder.events
    evaluation = evaluated(tmp_path, training, items_of("test"), GateRule())
    numbers = metrics(training, evaluation)
    assert numbers["selection"]["seed"] == 1 / 8
    assert numbers["selection"]["best"] == numbers["selection"]["best_hard"] == 1.0
    assert numbers["test"]["gain"] == numbers["test"]["gain_soft"] == 7 / 8
    assert numbers["test"]["gain_low"] < numbers["test"]["gain"]
    rows = curve(training)
    assert len(rows) == numbers["steps"] == len(done.events("step.ended"))
    assert [row["verdict"] for row in rows].count("accepted") == numbers["accepted"]
    assert rows[-1]["best"] == 1.0
    header, *lines = tsv(rows).splitlines()
    assert header.split("\t") == list(COLUMNS)
    assert len(lines) == len(rows)


def test_a_sealed_test_split_leaves_no_test_numbers(tmp_path: Path) -> None:
    with FactStore.open(tmp_path) as store:
        done = run_toy(tmp_path, store, toy_params())
    assert "test" not in metrics(done.recorder.events, [])


def test_skills_to_measure_are_seed_best_and_last_where_it_differs(tmp_path: Path) -> None:
    with FactStore.open(tmp_path) as store:
        done = run_toy(tmp_path, store, toy_params(use_gate=False))
    skills = skills_of(done.recorder.events)
    assert skills[0] == NamedSkill("seed", SEED_SKILL)
    texts = [skill.text for skill in skills]
    assert len(set(texts)) == len(texts)
    assert all(f"- know {word}" in skills[1].text for word in WORDS)

"""Calls and tokens among the metrics are those of the run, not of the time it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from llm_script import ScriptedModel
from test_evaluate import evaluated
from test_llm_loop import Died, say
from toy_world import SEED_SKILL, WORDS, ToyModel, ToyRun, run_toy, toy_params

from skilltrail.core.item import Item
from skilltrail.history.log.events import Event, make_event
from skilltrail.method.gate import GateRule
from skilltrail.models.errors import Transient
from skilltrail.models.protocol import Reply, Request
from skilltrail.optimizers.llm.optimizer import LlmOptimizer
from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.report.book.cost import cost_rows, totals
from skilltrail.report.book.facts import RunFacts
from skilltrail.report.tables import baseline_mean, scores_by_skill
from skilltrail.runtime.outputs import facts_named
from skilltrail.store.exports import export_shards, import_shards
from skilltrail.store.facts import FactStore


def train(
    folder: Path,
    target: ToyModel | None = None,
    optimizer: ScriptedModel | None = None,
    seed_skill: str = SEED_SKILL,
    **params: object,
) -> ToyRun:
    """Train the toy world with a scripted optimizer; rollouts and replies go to one store."""
    model = ScriptedModel(say) if optimizer is None else optimizer
    with FactStore.open(folder) as store:
        options = LlmOptions(minibatch_size=1)
        return run_toy(
            folder,
            store,
            toy_params(**{"batch_size": 4, "lr": 2} | params),
            target,
            seed_skill=seed_skill,
            optimizer=LlmOptimizer(lambda stage: model, store, options, "toy"),
        )


def numbers_of(folder: Path, events: Sequence[Event]) -> dict[str, int]:
    with FactStore.open(folder) as store:
        return totals(events, RunFacts(store.get_many(sorted(facts_named(events))), True))


def test_each_fact_counts_once_however_often_it_is_used(tmp_path: Path) -> None:
    model = ScriptedModel(say)
    done = train(tmp_path, optimizer=model)
    training = done.recorder.events
    rollouts = {key for key in facts_named(training) if key not in _replies(training)}
    numbers = numbers_of(tmp_path, training)
    assert numbers["calls"] == len(rollouts) + len(model.requests)
    assert numbers["tokens"] == len(rollouts) * (7 + 1) + len(model.requests) * (100 + 20)


def test_the_evaluation_counts_too(tmp_path: Path) -> None:
    training = train(tmp_path).recorder.events
    unseen = [Item(f"test-{word}", {"word": word}, word) for word in ("larch", "rowan")]
    before = numbers_of(tmp_path, training)
    after = evaluated(tmp_path, training, unseen, GateRule())
    skills = len([event for event in after if event.type == "rollouts.scored"])
    both = numbers_of(tmp_path, [*training, *after])
    assert both["calls"] == before["calls"] + skills * len(unseen)


def test_they_are_the_same_at_any_concurrency(tmp_path: Path) -> None:
    """With more in flight the gate's early stop leaves more rollouts that no event names."""

    def hums(request: Request) -> Reply:
        reply = say(request)
        return replace(reply, text=reply.text.replace("know", "hum"))

    seed_skill = "# Trees\n" + "".join(f"- know {word}\n" for word in WORDS[:6])
    found, made = set(), []
    for workers in (1, 3, 16):
        folder = tmp_path / str(workers)
        done = train(folder, ToyModel(workers=workers), ScriptedModel(hums), seed_skill)
        found.add(tuple(numbers_of(folder, done.recorder.events).items()))
        made.append(done.tally.made)
    assert len(found) == 1
    assert made[-1] > made[0]  # what this test is about did happen


@pytest.mark.parametrize("after", [1, 6, 11, 17, 24])
def test_they_are_the_same_after_a_stop_anywhere(tmp_path: Path, after: int) -> None:
    whole = train(tmp_path / "whole")
    expected = numbers_of(tmp_path / "whole", whole.recorder.events)
    asked = 0

    def stops(word: str) -> Exception | None:
        nonlocal asked
        asked += 1
        return Died() if asked > after else None

    def dies(request: Request) -> Reply:
        if stops(""):
            raise Died
        return say(request)

    folder = tmp_path / "cut"
    with pytest.raises(Died):
        train(folder, ToyModel(fail=stops), ScriptedModel(dies))
    again = train(folder)
    assert again.tally.reused
    assert numbers_of(folder, again.recorder.events) == expected


def test_they_are_the_same_when_all_is_reused_and_when_the_store_holds_more(
    tmp_path: Path,
) -> None:
    alone = train(tmp_path / "alone")
    expected = numbers_of(tmp_path / "alone", alone.recorder.events)
    shared = tmp_path / "shared"
    train(shared, lr=4)
    train(shared, seed=3)
    first = train(shared)
    assert numbers_of(shared, first.recorder.events) == expected
    again = train(shared)
    assert (again.tally.made, again.model.calls) == (0, [])
    assert numbers_of(shared, again.recorder.events) == expected


def test_they_are_the_same_in_a_second_clone(tmp_path: Path) -> None:
    done = train(tmp_path / "first")
    events = done.recorder.events
    export = tmp_path / "export"
    with FactStore.open(tmp_path / "first") as store:
        export_shards(store, facts_named(events), export)
    with FactStore.open(tmp_path / "second") as store:
        import_shards(store, export)
    silent = ScriptedModel([])
    again = train(tmp_path / "second", optimizer=silent)
    assert (again.model.calls, silent.requests) == ([], [])
    assert numbers_of(tmp_path / "second", again.recorder.events) == numbers_of(
        tmp_path / "first", events
    )


def test_a_missing_rollout_is_no_call(tmp_path: Path) -> None:
    broken = ToyModel(fail=lambda word: Transient("reset") if word == "oak" else None)
    done = train(tmp_path, broken, gate={"min_coverage": 0.5})
    events = done.recorder.events
    missing = [
        row
        for event in events
        if event.type == "rollouts.scored"
        for row in event.data["items"]
        if row["outcome"] == "missing"
    ]
    assert missing
    with FactStore.open(tmp_path) as store:
        held = store.get_many(sorted(facts_named(events)))
    assert totals(events, RunFacts(held, True))["calls"] == len(held)


def test_without_the_facts_calls_are_known_and_tokens_are_not(tmp_path: Path) -> None:
    events = train(tmp_path).recorder.events
    assert totals(events, RunFacts()) == {"calls": numbers_of(tmp_path, events)["calls"]}


def test_a_judgement_is_a_call_with_the_tokens_of_both_its_replies(tmp_path: Path) -> None:
    events = train(tmp_path).recorder.events
    scored = next(event for event in events if event.type == "rollouts.scored")
    key = "a" * 64
    rows = [dict(row) | {"judgement": key} for row in scored.data["items"]]
    judged = make_event(scored.type, dict(scored.data) | {"items": rows}, seq=1, prev=None)
    usage = {"input": 30, "output": 4}
    with FactStore.open(tmp_path) as store:
        held = store.get_many(sorted(facts_named([scored])))
    held[key] = {"reply": {"usage": usage}, "rejected": {"usage": usage}}
    alone, both = totals([scored], RunFacts(held)), totals([judged], RunFacts(held))
    assert both == {"calls": alone["calls"] + 1, "tokens": alone["tokens"] + 2 * 34}


def _replies(events: Sequence[Event]) -> set[str]:
    return {event.data["reply"] for event in events if event.data.get("reply") is not None}


def test_repeats_of_an_item_are_one_score_in_the_metrics_as_in_the_gate() -> None:
    """The last repeat alone stood there."""
    KEY = "0" * 64
    rows = [("a", 1.0), ("a", 0.0), ("b", 0.0), ("b", 0.0)]
    items = [{"item": i, "outcome": "scored", "hard": h, "soft": h, "reason": "", "key": KEY}
             for i, h in rows]  # fmt: skip

    def scored(purpose: str, rows: list[dict[str, Any]]) -> Event:
        told = {"coverage": {"scored": len(rows), "asked": len(rows)}, "mean_hard": None}
        data = {"purpose": purpose, "skill": "0" * 64, "items": rows, "mean_soft": None} | told
        return make_event("rollouts.scored", data, seq=1, prev=None)

    events = [scored("baseline", items)]
    assert baseline_mean(events) == 0.25
    (scores,) = scores_by_skill(events, "baseline").values()
    assert (scores["a"].hard, scores["b"].hard) == (0.5, 0.0)
    events.append(scored("selection", items[:2]))
    whole = scores_by_skill(events, "baseline", "selection")
    assert len(*whole.values()) == 2


def test_money_is_at_the_list_price_of_who_replied_and_unknown_is_no_nought(
    tmp_path: Path,
) -> None:
    training = train(tmp_path).recorder.events
    with FactStore.open(tmp_path) as store:
        values = dict(store.get_many(sorted(facts_named(training))))

    def rows(model: str, **usage: int) -> list[dict[str, Any]]:
        said = {
            key: {
                name: {**part, "model": model, "usage": usage or part["usage"]}
                if name in ("trajectory", "reply")
                else part
                for name, part in value.items()
            }
            for key, value in values.items()
        }
        return cost_rows(training, RunFacts(said, True))

    priced = rows("gpt-4o-2024-08-06", input=1_000_000, output=0)
    assert {row["role"] for row in priced} == {"target", "optimizer"}
    assert all(row["usd"] == 2.5 * row["made"] for row in priced)
    for unknown in (
        rows("a-model-of-ones-own"), rows("gpt-4o", input=5), cost_rows(training, RunFacts()),
    ):  # fmt: skip
        assert {row["usd"] for row in unknown if row["made"]} == {None}
    start = training[0]
    data = {**start.data, "target": {**start.data["target"], "backend": "local"}}
    free = [make_event(start.type, data, seq=start.seq, prev=start.prev), *training[1:]]
    made = [row for row in cost_rows(free, RunFacts(values, True)) if row["made"]]
    by_role = {row["role"]: row["usd"] for row in made}
    assert by_role == {"target": 0.0, "optimizer": None}

"""Bugs that users of programs like this one have met, each as a sentence about ours.

Only those that no other test tells; each docstring names its case.
"""

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from null_store import NullStore
from test_history_commits import git, project
from toy_world import (
    SEED_SKILL,
    WORDS,
    Tally,
    ToyEnvironment,
    ToyModel,
    ToyOptimizer,
    items_of,
    run_toy,
    toy_params,
)

from skilltrail.core.errors import DataError, FaultError, IncompleteError
from skilltrail.core.item import Item
from skilltrail.core.score import Outcome, Score
from skilltrail.core.tokens import count_tokens
from skilltrail.core.trajectory import Trajectory
from skilltrail.history.log.events import as_recorded, make_event
from skilltrail.history.log.types.outcomes import RolloutsScored
from skilltrail.history.log.types.parts import Purpose
from skilltrail.method.gate import GateRule, judge_all
from skilltrail.method.rollout import Rollouts, scored
from skilltrail.models.errors import Transient
from skilltrail.models.protocol import Reply, Request
from skilltrail.optimizers.protocol import Answer, EpochView, StepView
from skilltrail.runtime.session import Session
from skilltrail.runtime.training import run_name
from skilltrail.skill.edit import Edit, Patch
from skilltrail.store.facts import FactStore

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def store(tmp_path: Path) -> FactStore:
    return FactStore.open(tmp_path)


class Mute(ToyModel):
    """Never knows the word."""

    async def complete(self, request: Request) -> Reply:
        return Reply("", usage=(await super().complete(request)).usage)


class Useless(ToyOptimizer):
    """Proposes a line that helps nobody."""

    async def reflect(self, view: StepView) -> Answer:
        edit = Edit("append", content=f"- step {view.step} passed")
        ids = tuple(o.item.id for o in view.observations)
        return Answer([Patch("failure", ids, (edit,))], rule=self.tag)


class Guide(ToyOptimizer):
    """Gives guidance that knows every word."""

    async def slow_update(self, view: EpochView) -> Answer:
        return Answer("\n".join(f"- know {word}" for word in WORDS), rule=self.tag)


def stop_after(calls: int) -> ToyModel:
    """Return a mute model whose process is stopped in the call after `calls`."""
    left = iter(range(calls))

    def fail(word: str) -> Exception | None:
        stopped = next(left, None) is None
        return cast(Exception, KeyboardInterrupt()) if stopped else None

    return Mute(workers=1, fail=fail)


def test_a_locked_index_holds_up_no_commit_of_a_run(tmp_path: Path, store: FactStore) -> None:
    """Case concurrency-03: with `index.lock` there, files stayed uncommitted."""
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    lock = repo / ".git/index.lock"
    lock.touch()
    run = run_toy(tmp_path, store, toy_params(epochs=1))
    branch = project(repo, run.recorder.events)
    assert git(repo, "rev-parse", "evolution/main").strip() == branch.tip
    assert lock.exists()


def test_left_out_and_rejected_are_two_things_with_evidence_each(
    tmp_path: Path, store: FactStore
) -> None:
    """Case event-log-07: one word stood for both."""
    run = run_toy(tmp_path, store, toy_params(lr=1))
    left = {out["edit"] for e in run.events("edits.selected") for out in e["left_out"]}
    merged = {edit["edit"] for e in run.events("patch.merged") for edit in e["edits"]}
    assert left
    assert left <= merged
    rejected = [e for e in run.events("gate.judged") if e["verdict"] == "rejected"]
    built = {e["candidate"]: e for e in run.events("candidate.built")}
    assert rejected
    for event in rejected:
        tried = {result["edit"] for result in built[event["candidate"]]["results"]}
        assert tried
        assert tried.isdisjoint(left)


@pytest.mark.parametrize("changed", [{"seed": 999}, {"batch_size": 1}, {"lr": 3}])
def test_a_changed_param_makes_another_run_and_never_bends_one(
    tmp_path: Path, store: FactStore, changed: dict[str, Any]
) -> None:
    """Case resume-07: seed, batch size and first skill changed on resume without a word."""

    def name(skill: str = SEED_SKILL, **params: Any) -> str:
        session = SimpleNamespace(params=toy_params(**params), target=ToyModel(), judge=None)
        train, selection = list(items_of("train")), list(items_of("selection"))
        return run_name(cast(Session, session), train, selection, skill)

    assert name() == name()
    assert len({name(), name(**changed), name(SEED_SKILL + "- edited\n")}) == 3
    first = run_toy(tmp_path, store, toy_params(epochs=1)).log
    second = run_toy(tmp_path, store, toy_params(epochs=1, **changed))
    assert second.log != first
    assert first in [path.read_bytes() for path in tmp_path.glob("events*")]


def test_a_run_of_zeros_resumes_where_it_was(tmp_path: Path) -> None:
    """Case resume-01: a score of 0.0 was taken for none, and the history doubled."""
    whole = run_toy(tmp_path / "whole", NullStore(), toy_params(epochs=1), Mute(workers=1))
    store = FactStore.open(tmp_path)
    for calls in (3, 8, 2):
        with pytest.raises(KeyboardInterrupt):
            run_toy(tmp_path, store, toy_params(epochs=1), stop_after(calls))
    done = run_toy(tmp_path, store, toy_params(epochs=1), Mute(workers=1))
    assert done.state.best_mean == 0
    assert [event["step"] for event in done.events("step.ended")] == [1, 2, 3, 4]
    assert done.log == whole.log


def test_a_damaged_live_log_is_left_alone_and_the_way_on_is_said(
    tmp_path: Path, store: FactStore
) -> None:
    """Case event-log-04: a resume refused for ever."""
    whole = run_toy(tmp_path, store, toy_params(epochs=1)).log
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"{garbage\n" + whole)
    with pytest.raises(FaultError, match=r"events.jsonl, left as it is: .*line 1.*delete it"):
        run_toy(tmp_path, store, toy_params(epochs=1))
    assert path.read_bytes() == b"{garbage\n" + whole
    path.unlink()
    assert run_toy(tmp_path, store, toy_params(epochs=1)).log == whole


def test_no_id_is_given_twice_in_a_run(tmp_path: Path, store: FactStore) -> None:
    """Case resume-04: ids began anew after a resume."""
    run = run_toy(tmp_path, store, toy_params())
    patches = [e["patch"] for t in ("patch.proposed", "patch.merged") for e in run.events(t)]
    edits = [
        edit["edit"]
        for t in ("patch.proposed", "patch.merged")
        for e in run.events(t)
        for edit in e["edits"]
    ]
    assert len(set(patches)) == len(patches)
    assert len(set(edits)) == len(edits)


def test_a_stalled_run_ends_though_nothing_is_paid_for(
    tmp_path: Path, store: FactStore
) -> None:
    """Case retry-04: a loop that recalled every call spun without an end."""
    params = toy_params(epochs=50, patience=3)
    first = run_toy(tmp_path / "a", store, params, optimizer=Useless())
    again = run_toy(tmp_path / "b", store, params, optimizer=Useless())
    assert again.tally.made == 0
    assert again.log == first.log
    (end,) = again.events("run.finished")
    assert (end["why"], end["steps"]) == ("patience", 3)


def test_an_edit_after_helpful_guidance_is_no_new_best(
    tmp_path: Path, store: FactStore
) -> None:
    """Case slow-update-04: the next edit was credited with the guidance's gain."""
    params = toy_params(epochs=3, lr=1, slow_update={"enabled": True, "samples": 4})
    run = run_toy(tmp_path, store, params, optimizer=Guide())
    judged = run.events("gate.judged")
    at = next(n for n, event in enumerate(judged) if event["source"] == "slow_update")
    assert judged[at]["before"] < judged[at]["after"] == 1.0
    assert {event["before"] for event in judged[at + 1 :]} == {1.0}
    best = [event["patch"] for event in run.events("skill.versioned") if event["best"]]
    assert best[-1] == run.events("slow_update.proposed")[0]["patch"]


@dataclass(frozen=True)
class SilenceIsRight(ToyEnvironment):
    """Right is a reply without the word, as for a case that must not trigger."""

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        return Score.scored(float(item.gold not in trajectory.answer))


def test_a_crash_is_no_success_where_silence_is_right() -> None:
    """Case scoring-02: a run that died counted as one that rightly did nothing."""
    dead = ToyModel(fail=lambda word: Transient("timeout") if word == "oak" else None)
    door = Rollouts(SilenceIsRight(), dead, NullStore(), Tally())

    async def roll() -> list[Any]:
        return [r async for r in door.in_order(items_of("train"), SEED_SKILL)]

    rollouts = asyncio.run(roll())
    outcomes = {r.item.gold: r.score.outcome for r in rollouts}
    assert outcomes.pop("oak") is Outcome.MISSING
    assert set(outcomes.values()) == {Outcome.SCORED}
    said = scored(rollouts, SEED_SKILL, Purpose.TRAIN)
    assert (said.coverage.scored, said.coverage.asked) == (7, 8)
    assert said.mean_hard == 6 / 7
    with pytest.raises(IncompleteError, match="timeout"):
        door.require(rollouts)


@dataclass(frozen=True)
class BadScorer(ToyEnvironment):
    value: Any = float("nan")

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        return Score.scored(self.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.5, 62.0, "1", None])
def test_a_scorer_that_gives_no_number_stops_the_run_and_is_named(value: float) -> None:
    """Case gate-07: a NaN blocked every later acceptance without a word."""
    door = Rollouts(BadScorer(value=value), ToyModel(), NullStore(), Tally())
    with pytest.raises(DataError, match=r"train-\w+.*invalid_score.*scorer"):
        asyncio.run(door.all(items_of("train"), SEED_SKILL))


@dataclass(frozen=True)
class BareScorer(BadScorer):
    def score(self, item: Item, trajectory: Trajectory) -> Score:
        return cast(Score, self.value)


@pytest.mark.parametrize("value", [None, 0.5, True])
def test_a_scorer_that_returns_no_score_is_named(value: Any) -> None:
    door = Rollouts(BareScorer(value=value), ToyModel(), NullStore(), Tally())
    with pytest.raises(DataError, match=r"train-\w+.*expected a Score.*scorer"):
        asyncio.run(door.all(items_of("train"), SEED_SKILL))


@dataclass(frozen=True)
class PartlyRight(ToyEnvironment):
    def score(self, item: Item, trajectory: Trajectory) -> Score:
        return Score.scored(0.75, 0.8)


def test_a_fractional_hard_score_reaches_the_log_whole(
    tmp_path: Path, store: FactStore
) -> None:
    """Case scoring-06: 0.75 became 0."""
    door = Rollouts(PartlyRight(), ToyModel(), store, Tally())
    rollouts = asyncio.run(door.all(items_of("train"), SEED_SKILL))
    said = scored(rollouts, SEED_SKILL, Purpose.TRAIN)
    event = make_event(*as_recorded(said), seq=1, prev=None)
    rows = event.read(RolloutsScored).items
    assert {(row.hard, row.soft) for row in rows} == {(0.75, 0.8)}
    assert (event.data["mean_hard"], event.data["mean_soft"]) == (0.75, 0.8)


@pytest.mark.parametrize("emphatic", ["MUST ALWAYS NEVER MUST ALWAYS", "CRITICAL! ALWAYS! DO!"])
def test_emphatic_words_win_nothing(emphatic: str) -> None:
    """Case gate-10: a bonus for them let keyword stuffing beat an equal candidate."""
    same = {f"i{n}": Score.scored(n % 2) for n in range(4)}
    plain, loud = count_tokens("Do it well."), count_tokens(f"Do it well. {emphatic}")
    rule = GateRule()
    verdict = judge_all(rule, list(same), same, same, tokens_before=plain, tokens_after=loud)
    assert verdict.verdict == "rejected"


LEGACY = """
import sys
from pathlib import Path
sys.path.insert(0, "tests")
import toy_world
from skilltrail.runtime.progress import Progress
from skilltrail.runtime.console import say
from null_store import NullStore
toy_world.SEED_SKILL = "# Trees\\n\\n- a \\u2192 b \\u2014 caf\\u00e9\\n"
done = toy_world.run_toy(Path(sys.argv[1]), NullStore(), toy_world.toy_params(epochs=1))
say("best: " + done.state.best_skill)
"""


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_run_on_a_legacy_console_ends_and_its_log_is_utf8(
    tmp_path: Path, encoding: str
) -> None:
    """Case encoding-03: an arrow in a skill stopped the run."""
    legacy = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-c", LEGACY, str(tmp_path)],
        cwd=ROOT,
        env=os.environ | legacy | {"PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert "→ b — café".encode() in (tmp_path / "events.jsonl").read_bytes()

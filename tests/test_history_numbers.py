"""What an audit prints is what was rolled out: every number again, from trajectories alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from history_world import LinesEnvironment, World, items_of
from test_history_verify import data_of

from skilltrail.core.canon import text_digest
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.history.ask.audit import audit_version
from skilltrail.history.ask.audit_text import audit_text as in_words
from skilltrail.history.log.run_log import RunLog
from skilltrail.runtime.evidence import StoredEvidence
from skilltrail.store.facts import FactStore

ENV = LinesEnvironment()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunLog, FactStore]:
    folder = tmp_path_factory.mktemp("run")
    store = FactStore.open(folder)
    params = {"epochs": 2, "batch_size": 6, "lr": 3}
    made = World(n_train=12, n_selection=8, params=params, store=store).run(folder)
    return RunLog(made.events), store


def rescored(store: FactStore, keys: Mapping[str, str]) -> dict[str, Score]:
    """Return each item's score, judged again from its recorded trajectory."""
    items = {item.id: item for split in ("train", "selection") for item in items_of(split, 12)}
    facts = store.get_many(keys.values())
    return {
        item: ENV.score(items[item], Trajectory.from_json(facts[key]["trajectory"]))
        for item, key in keys.items()
    }


def selection_keys(story: RunLog, text: str) -> dict[str, str]:
    """Return item -> key of the rollouts of a document on the selection split."""
    rows = story.scores(text_digest(text))
    return {item: str(some[0].key) for item, some in rows.items()}


def test_every_accepted_patch_shows_the_failures_it_came_from(
    world: tuple[RunLog, FactStore],
) -> None:
    story, store = world
    evidence = StoredEvidence(store, ENV, list(items_of("train", 12)))
    assert len(story.versions) > 2
    for version in story.versions[1:]:
        found = audit_version(story, version.number, evidence)
        again = rescored(store, {case.item: str(case.key) for case in found.cases})
        assert found.cases
        for case in found.cases:
            assert (case.hard, case.soft) == (again[case.item].hard, again[case.item].soft)
            assert case.seen.reply is not None
            assert f"{case.soft:.3f}" == case.seen.reply
        failed = {id for one in found.proposals if one.source == "failure" for id in one.items}
        assert all(again[item].hard == 0 for item in failed)
        behind = {item for tried in found.edits for item in tried.edit.items}
        assert behind <= set(again)


def test_every_flip_and_mean_is_that_of_the_rollouts(world: tuple[RunLog, FactStore]) -> None:
    story, store = world
    evidence = StoredEvidence(store, ENV, [])
    for before, after in zip(story.versions, story.versions[1:], strict=False):
        found = audit_version(story, after.number, evidence)
        assert found.gate is not None
        old = soft(rescored(store, selection_keys(story, before.text)))
        new = soft(rescored(store, selection_keys(story, after.text)))
        won = {item: (old[item], new[item]) for item in new if new[item] > old[item]}
        lost = {item: (old[item], new[item]) for item in new if new[item] < old[item]}
        assert {flip.item: (flip.before, flip.after) for flip in found.gate.won} == won
        assert {flip.item: (flip.before, flip.after) for flip in found.gate.lost} == lost
        means = [sum(some.values()) / len(some) for some in (old, new)]
        assert [found.gate.before, found.gate.after] == pytest.approx(means)
        words = in_words(found, everything=True)
        assert f"accepted: {means[0]:.3f} → {means[1]:.3f} on {len(new)} items" in words
        for item, (low, high) in {**won, **lost}.items():
            assert f"{item} {low:.3g}→{high:.3g}" in words


def soft(scores: Mapping[str, Score]) -> dict[str, float]:
    return {item: score.soft for item, score in scores.items() if score.soft is not None}


OFFLINE = ("unshare", "--map-root-user", "--net")
REPLAYED = """
import sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from skilltrail.history.log.log import scan_log
from skilltrail.history.log.replay import versions
from skilltrail.verify.log import verify_log
path = Path(sys.argv[1])
found = versions(scan_log(path))
assert not verify_log(path.read_bytes(), path.name).faults
sys.stdout.write(found[-1].digest)
"""


def test_replay_and_verify_work_in_a_world_without_a_network(
    world: tuple[RunLog, FactStore], tmp_path: Path
) -> None:
    try:
        subprocess.run([*OFFLINE, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this system lets nobody make a network namespace")
    story, _ = world
    log = tmp_path / "events.jsonl"
    log.write_bytes(data_of(story.events))
    root = str(Path(__file__).resolve().parent.parent)
    command = [*OFFLINE, sys.executable, "-c", REPLAYED, str(log), root]
    done = subprocess.run(command, check=True, capture_output=True)
    assert done.stdout.decode() == story.versions[-1].digest

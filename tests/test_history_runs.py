"""Runs as one tree, logs from any source, refs rebuilt, levels of verify beyond the log."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from history_world import SEED_SKILL, LinesEnvironment, World, items_of
from test_history_commits import git, project
from test_history_verify import data_of, first, forged
from verify_world import evidence_of

from skilltrail.core.errors import FaultError, UsageError
from skilltrail.history.ask.comparable import scores_under, seed_and_best
from skilltrail.history.ask.compare import compare_runs
from skilltrail.history.ask.differences import in_words, shared_prefix, skill_diff
from skilltrail.history.ask.evaluations import held_out
from skilltrail.history.ask.runs import natural, run_tree
from skilltrail.history.ask.sources import Project, find_skill, open_source, skill_text
from skilltrail.history.git.rebuild import rebuild
from skilltrail.history.git.repository import Git
from skilltrail.history.log.consumed import consumed_items, consumed_params
from skilltrail.history.log.events import Event, make_event
from skilltrail.history.log.log import follow, read_log
from skilltrail.history.log.run_log import RunLog
from skilltrail.store.facts import FactStore
from skilltrail.verify.anchored import training_commits
from skilltrail.verify.facts import rollouts
from skilltrail.verify.log import verify_log
from skilltrail.verify.rerun import ComparingRecorder, EventMismatch

BASE = {"epochs": 1, "batch_size": 4, "lr": 3, "lr_schedule": "constant"}


def made(folder: Path, parent: str | None = None, **params: object) -> list[Event]:
    world = World(n_train=12, n_selection=6, params=BASE | params, parent=parent)
    return world.run(folder).events


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Event]]:
    folder = tmp_path_factory.mktemp("runs")
    return {
        "main": made(folder / "a"),
        "main-2": made(folder / "b", lr=1),
        "other-seed": made(folder / "c", seed=7),
        "other-seed-2": made(folder / "d", seed=7, lr=1),
    }


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "config", "user.name", "A Person")
    git(tmp_path, "config", "user.email", "person@example.com")
    (tmp_path / "dvc.yaml").write_text("stages: {}\n", encoding="utf-8", newline="\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "First")
    return tmp_path


def door_of(folder: Path) -> Git:
    door = Git.find(folder)
    assert door is not None
    return door


def test_a_run_that_two_people_made_counts_once_in_a_comparison(
    runs: dict[str, list[Event]],
) -> None:
    alone = compare_runs(runs, "lr")
    shared = compare_runs({"bob/main": runs["main"], **runs}, "lr")
    assert shared == alone


def test_runs_fork_where_the_first_decision_differs_and_it_is_said(
    runs: dict[str, list[Event]],
) -> None:
    rows = {row.name: row for row in run_tree(runs)}
    assert rows["main"].forked_from is None
    fork = rows["main-2"]
    assert fork.forked_from == "main"
    assert fork.differs == "edit budget 3 vs 1, lr 3 vs 1 at step 1"
    assert runs["main"][fork.shared].type == "budget.decided"
    assert rows["other-seed"].forked_from is None  # nothing is shared with another seed
    assert rows["other-seed-2"].forked_from == "other-seed"


def test_a_run_forked_from_a_version_names_it(
    tmp_path: Path, runs: dict[str, list[Event]]
) -> None:
    born = RunLog(runs["main"]).versions[-1].event
    child = made(tmp_path, parent=born.id)
    rows = {row.name: row for row in run_tree(runs | {"child": child})}
    assert rows["child"].parent == ("main", born.data["version"])


@pytest.mark.parametrize("cut", [0, 1, 5, 30])
def test_the_shared_prefix_is_counted_exactly(runs: dict[str, list[Event]], cut: int) -> None:
    one, two = runs["main"], runs["main-2"]
    plain = 0
    for a, b in zip(one, two, strict=False):
        if a.id != b.id:
            break
        plain += 1
    assert shared_prefix(one, two) == plain
    assert shared_prefix(one[:cut], one) == cut


def test_names_sort_as_people_count() -> None:
    assert sorted(["r-10", "r-2", "r"], key=natural) == ["r", "r-2", "r-10"]


def test_a_longer_run_and_the_same_run_differ_in_nothing_else(
    runs: dict[str, list[Event]],
) -> None:
    assert in_words(None, None) == "nothing"
    assert "ends before event 3" in in_words(None, runs["main"][2])


def test_only_consumed_params_are_known(runs: dict[str, list[Event]]) -> None:
    params = consumed_params(runs["main"])
    assert (params["lr"], params["batch_size"], params["gate.rule"]) == (3, 4, "strict")
    assert "lr_min" not in params
    assert "gate.alpha" not in params


def test_runs_on_other_items_are_not_pooled_and_where_chooses(
    runs: dict[str, list[Event]], tmp_path: Path
) -> None:
    fewer = World(n_train=12, n_selection=4, params=BASE | {"lr": 1}).run(tmp_path).events
    mixed = {"main": runs["main"], "main-2": runs["main-2"], "fewer": fewer}
    with pytest.raises(UsageError, match=r"data\.selection.*6 items.*4 items.*--where"):
        compare_runs(mixed, "lr")
    items = consumed_items(runs["main"])["data.selection"]
    for said in (items, items.rpartition(", ")[2]):
        found = compare_runs(mixed, "lr", where={"data.selection": said})
        assert [group.runs for group in found.groups] == [("main-2",), ("main",)]
        assert found.setting["data.selection"] == items
    for where, told in (({"data.selection": "9 items"}, "There is"), ({"moon": "1"}, "Known")):
        with pytest.raises(UsageError, match=told):
            compare_runs(mixed, "lr", where=where)


def changed(event: Event, id: str, **data: object) -> Event:
    """Return an event that says something else under an id of its own."""
    said = make_event(event.type, dict(event.data) | data, seq=event.seq, prev=event.prev)
    return replace(said, id=id)


@pytest.mark.parametrize("kind", ["env", "agent", "target", "judge"])
def test_runs_of_another_environment_target_or_judge_are_not_pooled(
    runs: dict[str, list[Event]], kind: str
) -> None:
    other = {
        "env": {"env": "elsewhere"},
        "agent": {"agent": {"version": "lines/2", "params": {}}},
        "target": {"target": {"backend": "lines", "model": "m2"}},
        "judge": {
            "judge": {
                "model": {"backend": "openai", "model": "j"},
                "rubric": "0" * 64,
                "threshold": 1.0,
            }
        },
    }[kind]
    started = runs["main-2"][0]
    moved = [changed(started, started.id, **other), *runs["main-2"][1:]]
    both = {"main": runs["main"], "main-2": moved}
    with pytest.raises(UsageError, match="not pooled"):
        compare_runs(both, "lr")


def test_a_run_that_patience_ended_consumed_no_number_of_epochs(tmp_path: Path) -> None:
    params = {"patience": 1, "epochs": 9, "gate": {"rule": "paired", "alpha": 0.001}}
    stopped = consumed_params(made(tmp_path / "a", **params))
    assert stopped["patience"] == 1
    assert "epochs" not in stopped


def best_scores(events: list[Event]) -> dict[str, Fraction]:
    story = RunLog(events)
    return scores_under(story, seed_and_best(story)[1], {"metric": "soft"})


def test_groups_are_compared_on_the_seeds_they_share(runs: dict[str, list[Event]]) -> None:
    found = compare_runs(runs, "lr")
    assert [group.value for group in found.groups] == ["1", "3"]
    contrast = found.contrasts[0]
    assert contrast.selection is not None
    differences = {
        seed: [
            float(two[item] - one[item])
            for one in [best_scores(runs[a])]
            for two in [best_scores(runs[b])]
            for item in two
        ]
        for seed, a, b in ((42, "main-2", "main"), (7, "other-seed-2", "other-seed"))
    }
    told = contrast.selection
    pairs = {tuple(seed_and_best(RunLog(runs[n]))[1] for n in pair)
             for pair in (("main-2", "main"), ("other-seed-2", "other-seed"))}  # fmt: skip
    assert (told.items, told.seeds, told.trainings) == (6, 2, len(pairs))
    assert told.by_seed == {s: pytest.approx(sum(d) / 6) for s, d in differences.items()}
    assert told.difference == pytest.approx(sum(map(sum, differences.values())) / 12)
    assert told.low < told.difference < told.high
    one = compare_runs({n: runs[n] for n in ("main", "main-2")}, "lr")
    assert "noise" in one.contrasts[0].note
    told_json = found.to_json()["contrasts"][0]
    assert {"items", "seeds", "difference", "low", "high", "note"} <= set(told_json)


def test_seeds_that_gave_the_same_skills_count_once_and_it_is_said(
    runs: dict[str, list[Event]],
) -> None:
    def again(name: str, seed: int) -> list[Event]:
        """Return the same run under another seed, as where the seed changed nothing."""
        events = [replace(event, id=f"{event.id}/{seed}") for event in runs[name]]
        return [changed(runs[name][0], events[0].id, seed=seed), *events[1:]]

    thrice = {f"{n}-{s}": again(n, s) for n in ("main", "main-2") for s in (1, 2, 3)}
    one = compare_runs({n: runs[n] for n in ("main", "main-2")}, "lr").contrasts[0].selection
    contrast = compare_runs(thrice, "lr").contrasts[0]
    told = contrast.selection
    assert one is not None
    assert told is not None
    assert (told.items, told.seeds, told.trainings) == (6, 3, 1)
    assert (told.difference, told.low, told.high) == (one.difference, one.low, one.high)
    assert contrast.note == "3 seeds gave the same skills: they say what one seed says"


def evaluation(training: Sequence[Event], gain: float) -> bytes:
    """Return the log of an evaluation of a run: the best skill is right on a share of items."""
    best = RunLog(training).versions[-1].digest
    items = [f"test-{n}" for n in range(10)]
    rows = [
        {"item": id, "outcome": "scored", "hard": h, "soft": h, "reason": "", "key": "0" * 64}
        for id, h in zip(items, [1.0] * round(10 * gain) + [0.0] * 10, strict=False)
    ]
    scored = {"asked": 10, "scored": 10}
    means = {"mean_hard": gain, "mean_soft": gain, "coverage": scored, "split": "test"}
    rolled = means | {"purpose": "test", "skill": best, "items": rows}
    spread = {"gain": gain, "gain_low": 0.0, "gain_high": 1.0, "interval": "adjusted_wald/1"}
    told = means | spread | {"name": "best", "skill": best, "against": "0" * 64}
    told |= {"metric": "soft", "mean": gain, "task_types": []}
    opened = follow(training[-1], "test.opened", opened_with(items))
    rolled_out = follow(opened, "rollouts.scored", rolled)
    return data_of([opened, rolled_out, follow(rolled_out, "skill.evaluated", told)])


def opened_with(items: Sequence[str]) -> dict[str, object]:
    """Return what an event says of the test split's opening."""
    rows = [{"item": id, "digest": "0" * 64} for id in items]
    return {"split": "test", "items": rows, "skills": [], "target": {"backend": "lines"}}


def test_held_out_gains_are_those_of_the_evaluations_at_hand(
    repo: Path, runs: dict[str, list[Event]]
) -> None:
    """One lies in the workspace, one in DVC's cache under the dvc.lock of an experiment."""
    (repo / "reports/out").mkdir(parents=True)
    (repo / "reports/out/evaluation.jsonl").write_bytes(evaluation(runs["main"], 0.6))
    digest = "ab" + "0" * 30
    cached = repo / ".dvc/cache/files/md5/ab" / ("0" * 30)
    cached.parent.mkdir(parents=True)
    cached.write_bytes(evaluation(runs["main-2"], 0.2))
    outs = [{"path": "reports/out/evaluation.jsonl", "md5": digest}]
    lock = {"stages": {"evaluate": {"outs": outs}}}
    (repo / "dvc.lock").write_text(json.dumps(lock), encoding="utf-8", newline="\n")
    git(repo, "add", "dvc.lock")
    git(repo, "commit", "-q", "-m", "An experiment")
    git(repo, "update-ref", "refs/exps/ab/cdef/slow-lr", "HEAD")
    found = compare_runs(runs, "lr", held_out(Project(repo, repo)))
    assert [group.held_out_gains for group in found.groups] == [(0.2,), (0.6,)]
    assert found.not_evaluated == ("other-seed", "other-seed-2")
    (contrast,) = found.contrasts
    assert contrast.held_out is not None
    assert (contrast.held_out.seeds, contrast.held_out.items) == (1, 10)
    assert contrast.held_out.difference == pytest.approx(0.4)


def test_a_param_that_nobody_consumed_is_an_error_that_lists_those_that_were(
    runs: dict[str, list[Event]],
) -> None:
    with pytest.raises(UsageError, match=r"gate\.alpha.*batch_size"):
        compare_runs(runs, "gate.alpha")


def test_two_versions_are_compared_as_text_and_item_by_item(
    tmp_path: Path, runs: dict[str, list[Event]]
) -> None:
    log = tmp_path / "skills/events.jsonl"
    log.parent.mkdir()
    log.write_bytes(data_of(runs["main"]))
    here = Project(tmp_path, tmp_path)
    last = RunLog(runs["main"]).versions[-1]
    found = skill_diff(find_skill(here, "v0"), find_skill(here, "last"))
    assert found.items == found.same + len(found.changed) == 6
    assert "+" in found.diff
    assert found.mean_soft[1] > found.mean_soft[0]
    (tmp_path / "mine.md").write_text(last.text, encoding="utf-8", newline="\n")
    mine = skill_diff(find_skill(here, "mine.md"), find_skill(here, f"v{last.number}"))
    assert (mine.diff, mine.items) == ("", 0)


# Sources


def test_a_log_is_found_by_file_run_experiment_revision_and_digest(
    repo: Path, runs: dict[str, list[Event]]
) -> None:
    events = runs["main"]
    here = Project(repo, repo)
    project(repo, events, "main")
    log = repo / "skills/events.jsonl"
    log.parent.mkdir()
    log.write_bytes(data_of(events))
    git(repo, "add", "skills")
    git(repo, "commit", "-q", "-m", "Reference")
    git(repo, "update-ref", "refs/exps/aa/bbbb/brave-fox", "HEAD")
    git(repo, "tag", "v1.0")
    live = repo / ".skilltrail/runs/0123456789abcdef/events.jsonl"
    live.parent.mkdir(parents=True)
    live.write_bytes(data_of(events[:20]))
    kinds = {}
    for name in (None, "skills/events.jsonl", "main", "brave-fox", "v1.0", "012345"):
        source = open_source(here, name)
        kinds[name] = source.kind
        assert source.events == (events[:20] if name == "012345" else events)
    assert list(kinds.values()) == ["file", "file", "run", "experiment", "revision", "live log"]
    half = git(repo, "rev-parse", "evolution/main~10").strip()
    assert open_source(here, half).events == events[:-10]
    with pytest.raises(UsageError, match="no file, run"):
        open_source(here, "nobody")


def test_a_run_is_replayed_from_its_ref_alone(repo: Path, runs: dict[str, list[Event]]) -> None:
    project(repo, runs["main"], "main")
    for version in RunLog(runs["main"]).versions:
        assert skill_text(f"main:v{version.number}", repo) == version.text
    assert skill_text("main:seed", repo) == SEED_SKILL


def test_without_any_log_the_message_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="dvc repro"):
        open_source(Project(tmp_path, tmp_path), None)


# Rebuild


def test_rebuild_makes_the_same_refs_again(repo: Path, runs: dict[str, list[Event]]) -> None:
    for events in runs.values():
        project(repo, events, "main")
    before = git(repo, "for-each-ref")
    rows = rebuild(door_of(repo), [], "main")
    assert {row.outcome for row in rows} == {"same"}
    assert git(repo, "for-each-ref") == before


def test_rebuild_makes_refs_from_logs_after_all_of_them_are_lost(
    repo: Path, runs: dict[str, list[Event]]
) -> None:
    for name in ("main", "main-2"):
        project(repo, runs[name], "main")
    before = git(repo, "for-each-ref", "refs/evolution", "refs/evolution-versions")
    door = door_of(repo)
    door.update_refs(
        f"delete {ref}" for ref in door.refs("refs/evolution", "refs/evolution-versions")
    )
    rows = rebuild(door, [runs["main"], runs["main-2"]], "main")
    assert [(row.name, row.outcome) for row in rows] == [("main", "new"), ("main-2", "new")]
    assert git(repo, "for-each-ref", "refs/evolution", "refs/evolution-versions") == before


def test_rebuild_drops_a_ref_that_holds_no_log_and_names_it(
    repo: Path, runs: dict[str, list[Event]]
) -> None:
    project(repo, runs["main"], "main")
    git(repo, "update-ref", "refs/evolution/strange", "HEAD")
    rows = {row.name: row for row in rebuild(door_of(repo), [], "main")}
    assert rows["strange"].outcome == "dropped"
    assert "strange" not in git(repo, "for-each-ref")


# Verify beyond the log


def swap_train_scores(data: dict[str, object]) -> None:
    rows = data["items"]
    assert isinstance(rows, list)
    rows[0]["soft"], rows[1]["soft"] = rows[1]["soft"], rows[0]["soft"]


def reread(folder: Path, data: bytes) -> list[Event]:
    path = folder / "forged.jsonl"
    path.write_bytes(data)
    return read_log(path)


def test_the_ref_catches_a_change_that_kept_every_hash_right(
    repo: Path, runs: dict[str, list[Event]]
) -> None:
    events = runs["main"]
    project(repo, events, "main")
    held = training_commits(evidence_of(repo, events, LinesEnvironment()))
    assert (held.done, held.faults) == (len(events), ())
    assert held.note.startswith("refs/evolution/main")
    at = first(events, "rollouts.scored", purpose="train")
    log = forged(events, at, swap_train_scores)
    assert verify_log(log, "log").faults == []
    check = training_commits(evidence_of(repo, reread(repo, log), LinesEnvironment()))
    assert [(fault.seq, fault.level) for fault in check.faults] == [(at + 1, "anchored")]
    assert check.done == at


def test_the_facts_catch_it_too(tmp_path: Path) -> None:
    store = FactStore.open(tmp_path)
    events = World(n_train=8, n_selection=4, params=BASE, store=store).run(tmp_path).events
    items = [*items_of("train", 8), *items_of("selection", 4)]
    env = LinesEnvironment()
    check = rollouts(evidence_of(tmp_path, events, env, items))
    assert (check.done > 12, check.whole, check.faults) == (True, True, ())
    at = first(events, "rollouts.scored", purpose="train")
    changed = reread(tmp_path, forged(events, at, swap_train_scores))
    faults = rollouts(evidence_of(tmp_path, changed, env, items)).faults
    assert {(fault.seq, fault.level) for fault in faults} == {(at + 1, "facts")}
    assert len(faults) == 2
    # An item that is another one by now is not checked, and is no fault.
    now = [replace(item, gold="new") for item in items[:8]] + items[8:]
    less = rollouts(evidence_of(tmp_path, changed, env, now))
    assert (less.done < check.done, less.of, less.faults) == (True, check.of, ())


def test_a_damaged_commit_chain_is_named(repo: Path, runs: dict[str, list[Event]]) -> None:
    project(repo, runs["main"], "main")
    tip = git(repo, "rev-parse", "evolution/main~3^{tree}").strip()
    sha = subprocess.run(
        ["git", "commit-tree", tip, "-p", "evolution/main", "-m", "x"],
        cwd=repo,
        capture_output=True,
        check=True,
    ).stdout.decode()
    git(repo, "update-ref", "refs/evolution/main", sha.strip())
    with pytest.raises(FaultError, match="sequence number"):
        open_source(Project(repo, repo), "main")


def test_the_loop_told_again_is_held_against_every_event(
    tmp_path: Path, runs: dict[str, list[Event]]
) -> None:
    events = runs["main"]
    world = World(n_train=12, n_selection=6, params=BASE)
    recorder = ComparingRecorder(events)
    asyncio.run(world.train(recorder))
    assert recorder.events == events
    at = first(events, "patch.proposed")

    def change(data: dict[str, object]) -> None:
        data["reasoning"] = "something else"

    changed = reread(tmp_path, forged(events, at, change))
    assert verify_log(data_of(changed), "log").faults == []  # beyond the log
    with pytest.raises(EventMismatch) as found:
        asyncio.run(world.train(ComparingRecorder(changed)))
    assert found.value.told.seq == at + 1

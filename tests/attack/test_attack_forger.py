"""A forger changes a finished project and makes the rest fit; verify names what was changed.

What it cannot name, `docs/history.md` lists with the reason; the last part here shows that.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import methods_world
import pytest
from forger import Forger, chain, changed_fact, copies, data_of
from test_history_modes import changing, leaves
from verify_project import role, says, write_project
from verify_world import told_again, verified

from skilltrail.cli.main import run
from skilltrail.core.canon import text_digest
from skilltrail.core.errors import FaultError
from skilltrail.core.layout import PAGE
from skilltrail.data.splits import read_split, write_splits
from skilltrail.history.git.ref_names import EVALUATIONS, RUNS, VERSIONS
from skilltrail.history.log.events import Event, make_event
from skilltrail.report.build import drawn
from skilltrail.store.protocol import Fact
from skilltrail.verify.result import Level
from tests.fault_server import FaultServer
from tests.model_world import run_stages

Forgery = Callable[[Forger], None]
Figure = Callable[[str, int, int], None]
SETTINGS = {
    "skill_aware": {"enabled": True},
    "slow_update": {"enabled": True, "samples": 4},
    "meta_skill": {"enabled": True},
    "lr_schedule": "linear",
    "compaction": True,
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A finished project with every part of the method, evaluated twice, once on request."""
    folder = tmp_path_factory.mktemp("base")
    with FaultServer(say=says) as server, pytest.MonkeyPatch.context() as patch:
        other = {"evaluate": {"targets": {"other": role(server.url, "target", provider="two")}}}
        write_project(folder, server.url, SETTINGS | other, typed=True)
        run_stages(folder, patch)
        assert run(["evaluate", "--skill", "seed", "--skill", "best", "--split", "test"]) == 0
        Forger(folder).lock()
        yield folder


@pytest.fixture(scope="module")
def forgers(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forger]:
    return copies(base, tmp_path_factory.mktemp("copies"))


def git(forger: Forger, *args: str, stdin: bytes | None = None) -> str:
    done = subprocess.run(
        ["git", *args], cwd=forger.folder, input=stdin, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def edit_json(path: Path, change: Callable[[Any], None]) -> None:
    value = json.loads(path.read_text("utf-8"))
    change(value)
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", "utf-8")


def replace_text(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8", newline="\n")


def at(events: list[Event], type: str, **fields: Any) -> int:
    return next(
        n
        for n, event in enumerate(events)
        if event.type == type and all(event.data[k] == v for k, v in fields.items())
    )


def test_the_project_is_right_before_it_is_changed_and_when_all_is_written_again(
    base: Path, forgers: Iterator[Forger]
) -> None:
    found = verified(base)
    assert ([str(fault) for fault in found.faults], found.exit_code()) == ([], 0)
    forger = next(forgers)
    forger.write()
    assert verified(forger.folder).exit_code() == 0


def test_the_page_gives_the_runs_name_and_another_one_is_not_taken_for_checked(
    base: Path, forgers: Iterator[Forger]
) -> None:
    page = (base / PAGE).read_text("utf-8")
    assert '<meta name="run" content="main">' in page
    assert "<title>Skilltrail: main: " in page
    forger = next(forgers)
    texts = drawn(forger.folder, forger.training, forger.evaluation, forger.folder, "other")
    (forger.folder / PAGE).write_text(next(iter(texts[PAGE])), "utf-8", newline="\n")
    forger.lock()
    found = verified(forger.folder)
    assert (found.faults, found.exit_code()) == ([], 3)
    assert "no ref calls this run 'other'" in str(found)
    for said in ("two words", "a\u202eb", "<b>", "x" * 3 + "&quot;"):
        texts = drawn(forger.folder, forger.training, forger.evaluation, forger.folder, said)
        (forger.folder / PAGE).write_text(next(iter(texts[PAGE])), "utf-8", newline="\n")
        forger.lock()
        assert verified(forger.folder).exit_code() in (1, 3)


# Every field of every event, with all that follows made to fit: logs, live logs, commits,
# metrics, curve, page, best skill, dvc.lock.


def places(events: list[Event]) -> Iterator[tuple[int, tuple[str | int, ...]]]:
    """Yield an event and the place of one value in it, for each field of each kind of event."""
    seen = set()
    for number, event in enumerate(events):
        kind = (event.type, event.data.get("purpose"))
        for place in leaves(event.data):
            if (kind, place[0]) not in seen:
                seen.add((kind, place[0]))
                yield number, place


def name_all(forgers: Iterator[Forger], log: str, part: slice) -> tuple[int, int]:
    """Change one field after another; return how many changes were named, of how many."""
    named = tried = 0
    for number, place in list(places(getattr(next(forgers), log)))[part]:
        if place[0] == "opened_before":
            continue  # openings are counted, and a count that is too low tells nothing
        forger = next(forgers)
        change = {"training": forger.change, "evaluation": forger.change_evaluation,
                  "asked": forger.change_asked}[log]  # fmt: skip
        try:
            change(number, changing(place))
        except FaultError:
            continue  # the schema lets no such value into any log
        forger.write()
        tried += 1
        named += verified(forger.folder).exit_code() == 1
    return named, tried


@pytest.mark.parametrize("log", ["training", "evaluation", "asked"])
def test_a_change_of_a_field_is_named_though_all_else_fits_it(
    forgers: Iterator[Forger], log: str
) -> None:
    named, tried = name_all(forgers, log, slice(0, None, 3))
    assert named == tried >= 7


@pytest.mark.attack
@pytest.mark.parametrize("log", ["training", "evaluation", "asked"])
def test_a_change_of_any_field_is_named_though_all_else_fits_it(
    forgers: Iterator[Forger], log: str, figure: Figure
) -> None:
    named, tried = name_all(forgers, log, slice(None))
    figure("changed fields named, all else made to fit", named, tried)
    assert named == tried >= 15


METHODS = [method for method in methods_world.METHODS if method != "skillopt"]


def finished(folder: Path, kind: str) -> Path:
    """Write and run a project of a rival's, or one with several targets and a judge."""
    with FaultServer(say=says) as server, pytest.MonkeyPatch.context() as patch:
        if kind == "targets":
            one, two = (role(server.url, "target", provider=name) for name in ("lab", "other"))
            params = {"targets": {"one": one | {"floor": 0.2}, "two": two | {"weight": 2}}}
        else:
            own = methods_world.METHODS[kind]
            params = {"method": kind, **{k: v for k, v in own.items() if k != "optimizer"}}
        write_project(folder, server.url, params, judged=kind == "targets")
        run_stages(folder, patch)
        assert run(["evaluate", "--skill", "seed", "--skill", "best", "--split", "test"]) == 0
        Forger(folder).lock()
    return folder


@pytest.mark.parametrize("kind", ["mipro", "opro", "promptbreeder", "textgrad"])
def test_a_change_of_a_field_of_a_rivals_run_is_named(kind: str, tmp_path: Path) -> None:
    forgers = copies(finished(tmp_path / "base", kind), tmp_path / "copies")
    named, tried = name_all(forgers, "training", slice(11, None, 23))
    assert named == tried >= 3


@pytest.mark.attack
@pytest.mark.parametrize("kind", [*METHODS, "targets"])
def test_a_change_of_any_field_of_another_kind_of_run_is_named(
    kind: str, tmp_path: Path, figure: Figure
) -> None:
    forgers = copies(finished(tmp_path / "base", kind), tmp_path / "copies")
    for log in ("training", "evaluation"):
        named, tried = name_all(forgers, log, slice(None))
        figure(f"changed fields named, all else made to fit ({kind})", named, tried)
        assert named == tried >= 15


# Whole events, rows and skills


def drop(log: str, type: str, **fields: Any) -> Forgery:
    def forge(forger: Forger) -> None:
        events = list(getattr(forger, log))
        del events[at(events, type, **fields)]
        getattr(forger, f"set_{log}")(events)
        forger.write()

    return forge


def insert(type: str, after: str, **data: Any) -> Forgery:
    """Insert a copy of the first event of a type, changed by `data`, after another one."""

    def forge(forger: Forger) -> None:
        events = list(forger.training)
        copied = events[at(events, type)]
        made = make_event(type, {**copied.data, **data}, seq=1, prev=None)
        events.insert(at(events, after) + 1, made)
        forger.set_training(events)
        forger.write()

    return forge


def cut(log: str, *, last: int) -> Forgery:
    def forge(forger: Forger) -> None:
        getattr(forger, f"set_{log}")(getattr(forger, log)[:-last])
        forger.write()

    return forge


def drop_row(log: str, purpose: str) -> Forgery:
    def change(data: dict[str, Any]) -> None:
        lost = data["items"].pop()
        data["coverage"] = {n: v - 1 for n, v in data["coverage"].items()}
        for name in ("hard", "soft"):
            values = [row[name] for row in data["items"]]
            data[f"mean_{name}"] = sum(values) / len(values)
        assert lost

    def forge(forger: Forger) -> None:
        events = getattr(forger, log)
        number = at(events, "rollouts.scored", purpose=purpose)
        (forger.change if log == "training" else forger.change_evaluation)(number, change)
        forger.write()

    return forge


def raise_test_score(forger: Forger) -> None:
    """Every row of the best skill right, means and gains recomputed, everything redrawn."""
    events = forger.evaluation

    def right(data: dict[str, Any]) -> None:
        for row in data["items"]:
            row |= {"hard": 1.0, "soft": 1.0, "reason": "correct"}
        data |= {"mean_hard": 1.0, "mean_soft": 1.0}

    best = forger.training[-1].data["best"]["digest"]
    number = at(events, "rollouts.scored", skill=best, purpose="test")
    forger.change_evaluation(number, right)
    means = {"mean": 1.0, "mean_hard": 1.0, "mean_soft": 1.0}
    forger.change_evaluation(number + 1, lambda data: data.update(means))
    forger.write()


def another_skill_named_best(forger: Forger) -> None:
    """The seed skill's rows under the name and place of the best one."""
    opened = forger.evaluation[0].data
    seed = opened["skills"][0]["digest"]

    def rename(data: dict[str, Any]) -> None:
        data["skills"][1]["digest"] = seed

    forger.change_evaluation(0, rename)
    for number, event in enumerate(forger.evaluation):
        if event.data.get("skill") not in (None, seed):
            forger.change_evaluation(number, lambda data: data.update(skill=seed))
    forger.write()


def keys(make: Callable[[str], str], log: str = "training") -> Forgery:
    """Put other keys into all rows of a log."""

    def change(data: dict[str, Any]) -> None:
        for row in data["items"]:
            row["key"] = make(row["key"])

    def forge(forger: Forger) -> None:
        events = getattr(forger, log)
        change_one = forger.change if log == "training" else forger.change_evaluation
        for number, event in enumerate(events):
            if event.type == "rollouts.scored":
                change_one(number, change)
        forger.write()

    return forge


def swap_keys(forger: Forger) -> None:
    def change(data: dict[str, Any]) -> None:
        one, two = data["items"][:2]
        one["key"], two["key"] = two["key"], one["key"]

    forger.change(at(forger.training, "rollouts.scored", purpose="baseline"), change)
    forger.write()


def start(**changes: Any) -> Forgery:
    """Change what event 1 says, in all logs and commits."""

    def change(data: dict[str, Any]) -> None:
        for name, value in changes.items():
            data[name] = value(data[name]) if callable(value) else value

    def forge(forger: Forger) -> None:
        forger.change(0, change)
        if "target" in changes:
            forger.change_evaluation(0, change)
        forger.write()

    return forge


def other_digest(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [rows[0] | {"digest": "0" * 64}, *rows[1:]]


def empty_seed(forger: Forger) -> None:
    text = "# Other\n"
    forger.change(0, lambda d: d.update(seed_skill={"text": text, "digest": text_digest(text)}))
    forger.write()


def evaluation_of_another_run(forger: Forger) -> None:
    """The evaluation goes on from an event that is not the run's last."""
    forger.evaluation = chain(forger.evaluation, forger.training[-2])
    forger.write()


def reordered(forger: Forger) -> None:
    events = list(forger.training)
    one = at(events, "patch.proposed")
    events[one], events[one + 1] = events[one + 1], events[one]
    forger.set_training(events)
    forger.write()


def told_twice(forger: Forger) -> None:
    """The whole run a second time behind its end."""
    forger.set_training([*forger.training, *forger.training])
    forger.write()


def unknown_tag(type: str, field: str, tag: str) -> Forgery:
    def forge(forger: Forger) -> None:
        number = at(forger.training, type)
        forger.change(number, lambda data: data.update({field: tag}))
        forger.write()

    return forge


def older_tag(forger: Forger) -> None:
    """An interval of an earlier version's, its numbers left."""
    number = at(forger.evaluation, "skill.evaluated", name="best")
    forger.change_evaluation(number, lambda data: data.update(interval="adjusted_wald/1"))
    forger.write()


def raised_type(data: dict[str, Any]) -> None:
    data["task_types"][0] |= {"hard": 0.875, "gain": 0.875}


def better_by_type(log: str, tag: str | None = None) -> Forgery:
    """Better means of a task type; under an older tag nothing is run again."""

    def forge(forger: Forger) -> None:
        number = at(getattr(forger, log), "skill.evaluated", name="best")
        change_one = forger.change_asked if log == "asked" else forger.change_evaluation
        change_one(number, raised_type)
        if tag is not None:
            change_one(number, lambda data: data.update(interval=tag))
        forger.write()

    return forge


def no_types(forger: Forger) -> None:
    number = at(forger.evaluation, "skill.evaluated", name="best")
    forger.change_evaluation(number, lambda data: data.pop("task_types"))
    forger.write()


def better_asked(events: list[Event], best: str) -> list[Event]:
    """An evaluation on request in which the best skill has everything right."""
    number = at(events, "rollouts.scored", skill=best)

    def right(data: dict[str, Any]) -> None:
        for row in data["items"]:
            row |= {"hard": 1.0, "soft": 1.0, "reason": "correct"}
        data |= {"mean_hard": 1.0, "mean_soft": 1.0}

    means = {"mean": 1.0, "mean_hard": 1.0, "mean_soft": 1.0}
    events = told_again(events, number, right)
    return told_again(events, number + 1, lambda data: data.update(means))


def better_in(ref: str) -> Forgery:
    """A better evaluation stands among the commits alone."""

    def forge(forger: Forger) -> None:
        best = forger.training[-1].data["best"]["digest"]
        forger.write_refs(**{ref: [*forger.training, *better_asked(forger.asked, best)]})

    return forge


def better_elsewhere(folder: str) -> Forgery:
    """A better evaluation in a folder of another name."""

    def forge(forger: Forger) -> None:
        best = forger.training[-1].data["best"]["digest"]
        path = forger.folder / ".skilltrail/evaluations" / folder / "0009-0.jsonl"
        path.parent.mkdir()
        path.write_bytes(data_of(better_asked(forger.asked, best)))

    return forge


def better_without_log(forger: Forger) -> None:
    """The evaluation on request is made better among the commits, and its log is gone."""
    forger.asked = better_asked(forger.asked, forger.training[-1].data["best"]["digest"])
    forger.write_refs()
    sorted((forger.folder / ".skilltrail/evaluations").glob("*/*.jsonl"))[-1].unlink()


def erased(events: list[Event], seqs: list[int], facts: list[str]) -> list[Event]:
    data = {"marker": "(erased)", "events": seqs, "facts": facts, "items": []}
    return [*events, make_event("text.erased", data, seq=1, prev=None)]


def erased_reason(forger: Forger) -> None:
    """What an analyst thought is another thing, and called erased."""
    number = at(forger.training, "patch.proposed")
    forger.change(number, lambda data: data.update(reasoning="because"))
    forger.set_training(erased(forger.training, [number + 1], []))
    forger.write()


def erased_rows(*, events: bool) -> Forgery:
    """A raised test score, the rollouts behind it called erased."""

    def forge(forger: Forger) -> None:
        best = forger.training[-1].data["best"]["digest"]
        told = better_asked(forger.evaluation, best)
        keys = {row["key"] for event in told if event.type == "rollouts.scored"
                for row in event.data["items"]}  # fmt: skip
        seqs = [event.seq for event in told] if events else []
        forger.set_evaluation(erased(told, seqs, sorted(keys)))
        forger.write()

    return forge


def asked_of_chosen_items(forger: Forger) -> None:
    """The evaluation on request opened those items alone that the best skill gets right."""
    best = forger.training[-1].data["best"]["digest"]
    rows = forger.asked[at(forger.asked, "rollouts.scored", skill=best)].data["items"]
    chosen = {row["item"] for row in rows if row["hard"] == 1.0}

    def choose(data: dict[str, Any]) -> None:
        data["items"] = [row for row in data["items"] if row["item"] in chosen]

    for number, event in enumerate(forger.asked):
        if "items" in event.data:
            forger.change_asked(number, choose)
    forger.write()


def asked_in_another_metric(forger: Forger) -> None:
    for number, event in enumerate(forger.asked):
        if event.type == "skill.evaluated":
            forger.change_asked(number, lambda data: data.update(metric="soft"))
    forger.write()


def asked_under_another_name(forger: Forger) -> None:
    """The seed skill was measured as `mine`, which is nothing here."""

    def rename(data: dict[str, Any]) -> None:
        data["skills"][0]["name"] = "mine"

    forger.change_asked(0, rename)
    number = at(forger.asked, "skill.evaluated", name="seed")
    forger.change_asked(number, lambda data: data.update(name="mine"))
    forger.write()


LOGS: dict[str, Forgery] = {
    "a better evaluation among the commits": better_in(f"{EVALUATIONS}main/2"),
    "a better evaluation on another run's ref": better_in(f"{RUNS}better"),
    "a better evaluation in another folder": better_elsewhere("0" * 16),
    "a better evaluation in a folder called out": better_elsewhere("out"),
    "a better evaluation without its log": better_without_log,
    "a changed reason that is called erased": erased_reason,
    "raised rows that are called erased": erased_rows(events=True),
    "raised rows whose facts are called erased": erased_rows(events=False),
    "an evaluation on request of chosen items": asked_of_chosen_items,
    "an evaluation on request in another metric": asked_in_another_metric,
    "better means of a task type": better_by_type("evaluation"),
    "better means of a task type under an older tag": better_by_type(
        "evaluation", "adjusted_wald/1"
    ),
    "better means of a task type on request": better_by_type("asked", "adjusted_wald/1"),
    "no task types": no_types,
    **{
        f"a lost {kind}": drop("training", kind)
        for kind in (
            "skill.versioned", "rollouts.scored", "budget.decided", "patch.proposed",
            "patch.merged", "candidate.built", "gate.judged", "step.ended", "reply.rejected",
            "meta_skill.written", "slow_update.compared", "run.finished",
        )
    },
    **{
        f"a lost {kind} of the evaluation": drop("evaluation", kind)
        for kind in ("test.opened", "rollouts.scored", "skill.evaluated", "skill.transferred")
    },
    "the last skill not measured": cut("evaluation", last=2),
    "no transfer": cut("evaluation", last=4),
    "half an evaluation": cut("evaluation", last=6),
    "a run that ends early": cut("training", last=1),
    "a run cut in a step": cut("training", last=9),
    "a second refused reply": insert("reply.rejected", "patch.proposed"),
    "a second memory": insert("meta_skill.written", "gate.judged"),
    "an event after the end": insert("meta_skill.written", "run.finished"),
    "a refused reply after the end": insert("reply.rejected", "run.finished"),
    "a second end": insert("run.finished", "run.finished"),
    "a second beginning": insert("run.started", "step.ended"),
    "a version from nowhere": insert("skill.versioned", "step.ended", version=9),
    "a run told twice": told_twice,
    "events in another order": reordered,
    "a row less at the baseline": drop_row("training", "baseline"),
    "a row less of a batch": drop_row("training", "train"),
    "a row less of the test": drop_row("evaluation", "test"),
    "a row less of a transfer": drop_row("evaluation", "transfer"),
    "a raised test score": raise_test_score,
    "another skill under the name best": another_skill_named_best,
    "keys that are in no store": keys(lambda key: "0" * 64),
    "keys of the evaluation in no store": keys(lambda key: key[::-1], "evaluation"),
    "two keys swapped": swap_keys,
    "another agent version": start(agent=lambda old: old | {"version": "qa/9"}),
    "other agent params": start(agent=lambda old: old | {"params": {"context_chars": 9}}),
    "another model label": start(target=lambda old: old | {"model": "gpt-99"}),
    "another decoding": start(target=lambda old: old | {"decoding": {"temperature": 0.7}}),
    "another provider": start(target=lambda old: old | {"provider": "elsewhere"}),
    "another environment": start(env="searchqa"),
    "another seed": start(seed=7),
    "another token counter": start(counter="words/1"),
    "a parent from nowhere": start(parent="0" * 64),
    "a judge that was not asked": start(
        judge={"model": {"backend": "x"}, "rubric": "0" * 64, "threshold": 0.5}
    ),
    "another digest of a train item": start(train=other_digest),
    "another digest of a selection item": start(selection=other_digest),
    "a train item less": start(train=lambda rows: rows[:-1]),
    "another seed skill": empty_seed,
    "an evaluation of another run": evaluation_of_another_run,
}  # fmt: skip


# Files beside the logs


def file(name: str, change: Callable[[Path], object]) -> Forgery:
    def forge(forger: Forger) -> None:
        change(forger.folder / name)
        forger.lock()

    return forge


def number_in(name: str, *path: str) -> Forgery:
    def change(value: Any) -> None:
        for part in path[:-1]:
            value = value[part]
        assert value[path[-1]] != 0.9375
        value[path[-1]] = 0.9375

    return file(name, lambda path_: edit_json(path_, change))


def split_edit(name: str, change: Callable[[dict[str, Any]], None], *, fits: bool) -> Forgery:
    """Edit an item of a split; with `fits` the manifest's digest is made right."""

    def forge(forger: Forger) -> None:
        folder = forger.folder / "data/splits"
        lines = (folder / f"{name}.jsonl").read_text("utf-8").splitlines()
        item = json.loads(lines[0])
        change(item)
        lines[0] = json.dumps(item, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
        if fits:
            manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
            records = [json.loads(line) for line in lines]
            refit(manifest, name, records)
            (folder / "manifest.json").write_text(
                json.dumps(manifest, indent=2, sort_keys=True) + "\n", "utf-8"
            )
        forger.lock()

    return forge


def refit(manifest: dict[str, Any], name: str, records: list[dict[str, Any]]) -> None:
    from skilltrail.core.canon import digest

    found = digest("split/1", [digest("item/1", record) for record in records])
    manifest["splits"][name] = manifest["splits"][name] | {
        "digest": found, "items": len(records)
    }  # fmt: skip


def gold(item: dict[str, Any]) -> None:
    item["gold"] = ["no"]


def asked(item: dict[str, Any]) -> None:
    item["input"]["question"] = "Which tree is number 99 of test?"


def consistent_splits(forger: Forger) -> None:
    """Test items exchanged for train items, manifest and all made right."""
    items = {name: read_split(forger.folder, name) for name in ("train", "selection", "test")}
    items["test"], items["train"] = items["train"], items["test"]
    path = forger.folder / "data/splits/manifest.json"
    about = {k: v for k, v in json.loads(path.read_text("utf-8")).items() if k != "splits"}
    write_splits(forger.folder, items, about)
    forger.lock()


def page_number(forger: Forger) -> None:
    best = forger.evaluation[at(forger.evaluation, "skill.evaluated", name="best")]
    page = forger.folder / "reports/out/index.html"
    replace_text(page, f"{best.data['mean_hard']:.3f}", "0.938")
    forger.lock()


def page_data(forger: Forger) -> None:
    page = forger.folder / "reports/out/index.html"
    replace_text(page, '"verdict":"good"', '"verdict":"fact"')
    forger.lock()


def page_and_metrics(forger: Forger) -> None:
    page_number(forger)
    number_in("reports/out/metrics.json", "test", "best")(forger)


def live_log(forger: Forger) -> None:
    """The live log tells of another run; everything else is as it was."""
    other = told_again(forger.training, 20, lambda data: data.update(epoch=data["epoch"] + 1))
    (live,) = (forger.folder / ".skilltrail/runs").glob("*/events.jsonl")
    live.write_bytes(data_of(other))


def asked_log(forger: Forger) -> None:
    """An evaluation on request says better of the skill than it was."""
    log = sorted((forger.folder / ".skilltrail/evaluations").glob("*/*.jsonl"))[-1]
    number = at(forger.asked, "skill.evaluated", name="best")
    log.write_bytes(data_of(told_again(forger.asked, number, lambda d: d.update(mean=1.0))))


def first_opening_lost(forger: Forger) -> None:
    """The pipeline's opening is nowhere; the one on request tells that it was there."""
    logs = sorted((forger.folder / ".skilltrail/evaluations").glob("*/*.jsonl"))
    logs[0].unlink()
    git(forger, "update-ref", "-d", f"{RUNS}main")
    asked_tip = git(forger, "rev-parse", f"{EVALUATIONS}main/1")
    steps = len(forger.asked)
    git(forger, "update-ref", f"{RUNS}main", git(forger, "rev-parse", f"{asked_tip}~{steps}"))
    (forger.folder / "reports/out/evaluation.jsonl").write_bytes(data_of(forger.asked))
    forger.draw()
    forger.lock()


FILES: dict[str, Forgery] = {
    **{
        f"the number {'.'.join(path)}": number_in("reports/out/metrics.json", *path)
        for path in (
            ("test", "best"), ("test", "seed"), ("test", "gain"), ("test", "gain_low_hard"),
            ("selection", "best"), ("selection", "seed_soft"), ("accepted",), ("calls",),
            ("tokens",), ("skill_tokens",), ("transfer", "other", "best", "share"),
        )
    },
    "a number more": file(
        "reports/out/metrics.json", lambda p: edit_json(p, lambda v: v.update(extra=1.0))
    ),
    "a number less": file(
        "reports/out/metrics.json", lambda p: edit_json(p, lambda v: v.pop("tokens"))
    ),
    "metrics that are no JSON": file(
        "reports/out/metrics.json", lambda p: p.write_text("{", "utf-8")
    ),
    "a verdict in the curve": file(
        "reports/out/curve.tsv", lambda p: replace_text(p, "accepted", "rejected")
    ),
    "a step less in the curve": file(
        "reports/out/curve.tsv",
        lambda p: p.write_bytes(b"".join(p.read_bytes().splitlines(keepends=True)[:-1])),
    ),
    "a column of the curve renamed": file(
        "reports/out/curve.tsv", lambda p: replace_text(p, "best", "test")
    ),
    "a number on the page": page_number,
    "a tick on the page": page_data,
    "page and metrics alike": page_and_metrics,
    "a script in the page": file(
        "reports/out/index.html", lambda p: replace_text(p, "</body>", "<b>0.99</b></body>")
    ),
    "a line more in the best skill": file(
        "skills/best_skill.md",
        lambda p: p.write_text(p.read_text("utf-8") + "- send all keys\n", "utf-8"),
    ),
    "an empty best skill": file("skills/best_skill.md", lambda p: p.write_text("", "utf-8")),
    "the seed as best skill": file(
        "skills/best_skill.md", lambda p: shutil.copy(p.parent / "seeds/qa.md", p)
    ),
    **{
        f"gold in {name}, {'manifest too' if fits else 'alone'}": split_edit(
            name, gold, fits=fits
        )
        for name in ("train", "selection", "test")
        for fits in (False, True)
    },
    **{
        f"a question in {name}": split_edit(name, asked, fits=True)
        for name in ("train", "selection", "test")
    },
    "splits exchanged": consistent_splits,
    "a manifest that names another ratio": file(
        "data/splits/manifest.json", lambda p: edit_json(p, lambda v: v.update(how="ratio 1:1"))
    ),
    "a torn log": file("skills/events.jsonl", lambda p: p.write_bytes(p.read_bytes()[:-40])),
    "a torn evaluation": file(
        "reports/out/evaluation.jsonl", lambda p: p.write_bytes(p.read_bytes()[:-40])
    ),
    "an empty evaluation": file(
        "reports/out/evaluation.jsonl", lambda p: p.write_bytes(b"")
    ),
    "an empty log": file("skills/events.jsonl", lambda p: p.write_bytes(b"")),
    "another live log": live_log,
    "an evaluation on request made better": asked_log,
    "an opening that is lost": first_opening_lost,
    "another seed skill file": file(
        "skills/seeds/qa.md", lambda p: p.write_text("# Other\n", "utf-8")
    ),
}  # fmt: skip


# Facts


def facts(change: Callable[[dict[str, Any]], None], kind: str, **where: bool) -> Forgery:
    """Change every recorded fact of a kind, digests made right."""

    def forge(forger: Forger) -> None:
        found = [fact for fact in forger.facts().values() if fact.kind == kind]
        assert found
        forger.set_facts({fact.key: changed_fact(fact, change) for fact in found}, **where)
        forger.lock()

    return forge


def answer(value: dict[str, Any]) -> None:
    value["trajectory"]["answer"] = "an elm"


def better(value: dict[str, Any]) -> None:
    """All answers right: what a score raised in the log would rest on."""
    sent = json.dumps(value["trajectory"]["turns"][0]["sent"])
    number = sent.split("number ")[1].split(" ")[0]
    value["trajectory"]["answer"] = f"an oak {number}"


def reply(value: dict[str, Any]) -> None:
    value["reply"]["text"] = '{"edits": []}'


def request(value: dict[str, Any]) -> None:
    value["request"]["system"] = "Something else."


def no_turns(value: dict[str, Any]) -> None:
    del value["trajectory"]


def other_skill(value: dict[str, Any]) -> None:
    value["skill"] = "0" * 64


def moved(forger: Forger) -> None:
    """Two facts under each other's keys."""
    one, two = [fact for fact in forger.facts().values() if fact.kind == "call"][:2]
    swapped = {
        one.key: Fact(one.kind, one.key, two.text), two.key: Fact(two.kind, two.key, one.text)
    }  # fmt: skip
    forger.set_facts(swapped)
    forger.lock()


def torn_export(forger: Forger) -> None:
    path = forger.folder / "data/rollouts/test/shard.jsonl"
    replace_text(path, "an oak", "an elm")
    forger.lock()


FACTS: dict[str, Forgery] = {
    "answers in store and exports": facts(answer, "rollout"),
    "answers in the store": facts(answer, "rollout", exports=False),
    "answers in the exports": facts(answer, "rollout", store=False),
    "right answers under old scores": facts(better, "rollout"),
    "rollouts of another skill": facts(other_skill, "rollout"),
    "rollouts without a trajectory": facts(no_turns, "rollout"),
    "optimizer replies in store and exports": facts(reply, "call"),
    "optimizer replies in the store": facts(reply, "call", exports=False),
    "requests": facts(request, "call"),
    "calls without a reply": facts(lambda value: value.pop("reply"), "call"),
    "facts under each other's keys": moved,
    "an export line": torn_export,
}


# Refs and objects


def ref(name: str, commit: str) -> Forgery:
    return lambda forger: (
        git(forger, "update-ref", name, git(forger, "rev-parse", commit)) or None
    )


def gone(name: str) -> Forgery:
    def forge(forger: Forger) -> None:
        git(forger, "update-ref", "-d", name)

    return forge


def on_top(name: str) -> Forgery:
    def forge(forger: Forger) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@a.invalid")
        made = git(forger, *who, "commit-tree", f"{name}^{{tree}}", "-p", name, "-m", "more")
        git(forger, "update-ref", name, made)

    return forge


def another_root(forger: Forger) -> None:
    """The run's tip without its past."""
    who = ("-c", "user.name=a", "-c", "user.email=a@a.invalid")
    made = git(forger, *who, "commit-tree", f"{RUNS}main^{{tree}}", "-m", "all of it")
    git(forger, "update-ref", f"{RUNS}main", made)


def consistent_history(forger: Forger) -> None:
    """The refs hold another run whose every hash is right; the logs are left."""
    number = at(forger.training, "patch.proposed")
    forger.change(number, lambda data: data.update(reasoning="because"))
    forger.write_refs()


def replaced(forger: Forger) -> None:
    """Git shows another commit in place of the run's tip."""
    git(forger, "replace", f"{RUNS}main", f"{RUNS}main~3")


def grafted(forger: Forger) -> None:
    tip = git(forger, "rev-parse", f"{RUNS}main")
    (forger.folder / ".git/info").mkdir(exist_ok=True)
    (forger.folder / ".git/info/grafts").write_text(f"{tip}\n", "utf-8")


def blob(forger: Forger) -> str:
    return git(forger, "rev-parse", f"{RUNS}main:skill.md")


def unpack(forger: Forger) -> None:
    """Make every object a file of its own."""
    packs = forger.folder / ".git/objects/pack"
    for pack in packs.glob("*.pack"):
        data = pack.read_bytes()
        for part in packs.glob(f"{pack.stem}.*"):
            part.chmod(stat.S_IWUSR | stat.S_IRUSR)
            part.unlink()
        git(forger, "unpack-objects", "-q", stdin=data)


def object_file(forger: Forger, id: str) -> Path:
    unpack(forger)
    path = forger.folder / ".git/objects" / id[:2] / id[2:]
    path.chmod(stat.S_IWUSR | stat.S_IRUSR)
    return path


def lost_object(forger: Forger) -> None:
    object_file(forger, blob(forger)).unlink()


def damaged_object(forger: Forger) -> None:
    path = object_file(forger, blob(forger))
    path.write_bytes(path.read_bytes()[:-6])


def exchanged_object(forger: Forger) -> None:
    """The bytes of the skill are another whole object's."""
    path = object_file(forger, blob(forger))
    other = git(forger, "hash-object", "-w", "--stdin", stdin=b"# Other\n")
    shutil.copy(forger.folder / ".git/objects" / other[:2] / other[2:], path)


def tagged(forger: Forger) -> None:
    """The run's ref names a tag, in whose message anything can stand."""
    who = ("-c", "user.name=a", "-c", "user.email=a@a.invalid")
    git(forger, *who, "tag", "-a", "x", "-m", "test 1.000", f"{RUNS}main")
    git(forger, "update-ref", f"{RUNS}main", git(forger, "rev-parse", "refs/tags/x"))


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


REFS: dict[str, Forgery] = {
    "the run's ref on a tag": tagged,
    "a version moved": ref(f"{VERSIONS}main/v1", f"{RUNS}main~9"),
    "a version at another version": ref(f"{VERSIONS}main/v1", f"{VERSIONS}main/v2"),
    "a version that never was": ref(f"{VERSIONS}main/v9", f"{RUNS}main~9"),
    "the run's ref on a commit of the project": ref(f"{RUNS}main", "HEAD"),
    "a commit on top of the run": on_top(f"{RUNS}main"),
    "a tip without a past": another_root,
    "another consistent history": consistent_history,
    "a replaced commit": replaced,
    "an object that is lost": lost_object,
    "an object that is damaged": damaged_object,
    "an object exchanged": exchanged_object,
}
# Nothing wrong is found, but not all could be checked, and the row says what: exit code 3.
UNCHECKED: dict[str, tuple[Forgery, str]] = {
    **{
        f"an unknown tag of {kind}": (unknown_tag(kind, field, f"mine/{n}"), "training log")
        for n, (kind, field) in enumerate(
            [("budget.decided", "rule"), ("candidate.built", "rule"), ("gate.judged", "rule"),
             ("gate.judged", "order"), ("slow_update.compared", "rule")]
        )
    },
    "an evaluation on request under another name": (
        asked_under_another_name, "evaluations replayed"
    ),
    "an evaluation that is a pipe": (
        file("reports/out/evaluation.jsonl", pipe), "evaluation log"
    ),
    "a lock that is a pipe": (
        lambda forger: (pipe(forger.folder / "dvc.lock"),
                        replace_text(forger.folder / "params.yaml", "lr: 2", "lr: 3")),
        "training replayed",
    ),
    "an interval by an older rule": (older_tag, "evaluations replayed"),
    "the run's ref is gone": (
        gone(f"{RUNS}main"), "commits of the run"
    ),
    "the run's ref at an earlier event": (
        ref(f"{RUNS}main", f"{RUNS}main~20"), "commits of the run"
    ),
    "a version's ref is gone": (
        gone(f"{VERSIONS}main/v1"), "versions"
    ),
    "the ref of an evaluation is gone": (
        gone(f"{EVALUATIONS}main/1"), "commits of all evaluations"
    ),
    "a history cut by a graft": (grafted, "objects"),
    "no evaluation": (
        file("reports/out/evaluation.jsonl", Path.unlink), "evaluation log"
    ),
    "no metrics": (file("reports/out/metrics.json", Path.unlink), "metrics"),
    "no curve": (file("reports/out/curve.tsv", Path.unlink), "curve"),
    "no page": (file("reports/out/index.html", Path.unlink), "page"),
    "no best skill": (file("skills/best_skill.md", Path.unlink), "best skill"),
    "no manifest": (file("data/splits/manifest.json", Path.unlink), "splits"),
    "no test split": (file("data/splits/test.jsonl", Path.unlink), "splits"),
    "no exports": (file("data/rollouts", shutil.rmtree), "exports"),
    "exports of train alone": (file("data/rollouts/test", shutil.rmtree), "exports"),
    "no data": (file("data/small", shutil.rmtree), "splits"),
    "no git": (file(".git", shutil.rmtree), "commits of the run"),
}  # fmt: skip


@pytest.mark.parametrize("name", [*LOGS, *FILES, *FACTS, *REFS])
def test_a_forgery_is_named(forgers: Iterator[Forger], name: str, figure: Figure) -> None:
    forger = next(forgers)
    (LOGS | FILES | FACTS | REFS)[name](forger)
    found = verified(forger.folder)
    figure("forgeries named", bool(found.faults), 1)
    assert found.faults, [(row.rule, row.check.note) for row in found.rows]
    assert found.exit_code(list(Level)) == 1


@pytest.mark.parametrize("name", UNCHECKED)
def test_what_cannot_be_checked_is_not_taken_as_fine(
    forgers: Iterator[Forger], name: str
) -> None:
    forger = next(forgers)
    forge, rule = UNCHECKED[name]
    forge(forger)
    found = verified(forger.folder)
    assert found.exit_code() in (1, 3)
    assert rule in [row.rule for row in found.rows if not row.check.whole or row.check.faults]


# An auditor


def test_an_auditors_copy_is_left_as_it_is(forgers: Iterator[Forger]) -> None:
    folder = next(forgers).folder

    def seen() -> dict[Path, tuple[int, bytes]]:
        # In a folder that can be written SQLite may leave the memory that its readers share.
        files = [
            path for path in folder.rglob("*") if path.is_file() and "db-" not in path.suffix
        ]
        return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = seen()
    assert verified(folder).exit_code() == 0
    assert seen() == before


def test_the_exports_do_where_there_is_no_store(forgers: Iterator[Forger]) -> None:
    folder = next(forgers).folder
    shutil.rmtree(folder / ".skilltrail")
    found = verified(folder)
    assert ([str(fault) for fault in found.faults], found.exit_code()) == ([], 0)


def test_what_a_call_used_is_taken_from_its_record_as_the_docs_say(
    forgers: Iterator[Forger],
) -> None:
    forger = next(forgers)

    def use(value: dict[str, Any]) -> None:
        value["trajectory"]["usage"]["output"] += 1
        value["trajectory"]["model"] = "another"

    facts(use, "rollout")(forger)
    forger.draw()
    forger.lock()
    assert verified(forger.folder).exit_code() == 0
    docs = Path(__file__).resolve().parents[2] / "docs/history.md"
    assert "which model served it" in docs.read_text("utf-8")


def test_a_published_hash_holds_against_a_run_rewritten_everywhere(
    base: Path, forgers: Iterator[Forger]
) -> None:
    forger = next(forgers)
    tip = git(forger, "rev-parse", f"{RUNS}main")
    assert verified(base, anchor=tip).exit_code() == 0
    number = at(forger.training, "patch.proposed")
    forger.change(number, lambda data: data.update(reasoning="because"))
    forger.write()
    faults = verified(forger.folder, anchor=tip).faults
    assert tip in [fault.right for fault in faults]
    assert verified(base, anchor="no-such-tag").exit_code() == 3


def test_edited_params_make_the_rest_unchecked_and_no_fault(forgers: Iterator[Forger]) -> None:
    forger = next(forgers)
    replace_text(forger.folder / "params.yaml", "lr: 2", "lr: 3")
    found = verified(forger.folder)
    assert ([str(fault) for fault in found.faults], found.exit_code()) == ([], 3)
    notes = " ".join(row.check.note for row in found.rows)
    assert "changed since the stage train ran: lr" in notes

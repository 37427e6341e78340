"""A forger: changes a finished project and makes everything else fit the change.

logs     every hash after a change is right, and the evaluation goes on from the new end
drawn    metrics, curve, page and best skill are what the changed logs give
live     the live logs under .skilltrail say the same
refs     the commits are those of the changed logs
lock     dvc.lock holds the digests of all that was written, as `dvc commit -f` leaves it
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from verify_world import told_again

from skilltrail.core.canon import canonical
from skilltrail.core.errors import SkilltrailError
from skilltrail.history.ask.evaluations import EVALUATION, evaluation_logs
from skilltrail.history.ask.sources import EVENTS, Project
from skilltrail.history.git.rebuild import write_refs
from skilltrail.history.git.ref_names import EVALUATIONS, RUNS
from skilltrail.history.git.repository import Git
from skilltrail.history.log.events import Event, make_event
from skilltrail.history.log.log import read_log
from skilltrail.history.log.replay import version_of
from skilltrail.report.build import build
from skilltrail.store.exports import fact_of, line_of, shard_files
from skilltrail.store.protocol import Fact
from skilltrail.verify.stale import Inputs

Change = Callable[[dict[str, Any]], None]
EXPORTS = ("data/rollouts/train", "data/rollouts/test")
_DEPS = {
    "split": ["data/small"],
    "train": ["data/splits/selection.jsonl", "data/splits/train.jsonl", "skills/seeds/default"],
    "evaluate": ["data/splits", "skills/events.jsonl", "skills/best_skill.md"],
    "report": [*EXPORTS, "data/splits", "skills/events.jsonl", "reports/out/evaluation.jsonl"],
}
_OUTS = {
    "split": ["data/splits"],
    "train": [EXPORTS[0], "skills/events.jsonl", "skills/best_skill.md"],
    "evaluate": [EXPORTS[1], "reports/out/evaluation.jsonl"],
    "report": [f"reports/out/{name}" for name in ("index.html", "curve.tsv", "metrics.json")],
}
_PARAMS = ("env", "data", "epochs", "batch_size", "lr", "target", "optimizer", "gate")


class Forger:
    """One copy of a project in which things are changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.training = read_log(folder / EVENTS)
        self.evaluation = read_log(folder / EVALUATION, after=self.training[-1])
        asked = [p for p in evaluation_logs(Project(folder, folder)) if p.parent.name != "out"]
        self.asked = read_log(asked[-1], after=self.training[-1])

    # what is changed

    def change(self, index: int, change: Change) -> None:
        """Change the data of one event of the training log."""
        self.set_training(told_again(self.training, index, change))

    def change_evaluation(self, index: int, change: Change) -> None:
        self.evaluation = told_again(self.evaluation, index, change)

    def change_asked(self, index: int, change: Change) -> None:
        self.asked = told_again(self.asked, index, change)

    def set_training(self, events: Sequence[Event]) -> None:
        """Take other events, hashes made right; the evaluations go on from their last."""
        self.training = chain(events, None)
        last = self.training[-1] if self.training else None
        self.evaluation, self.asked = chain(self.evaluation, last), chain(self.asked, last)

    def set_evaluation(self, events: Sequence[Event]) -> None:
        self.evaluation = chain(events, self.training[-1])

    # what is made to fit

    def write(self, *, drawn: bool = True, live: bool = True, refs: bool = True) -> None:
        """Write the logs and all that follows from them."""
        (self.folder / EVENTS).write_bytes(data_of(self.training))
        (self.folder / EVALUATION).write_bytes(data_of(self.evaluation))
        if live:
            self.write_live()
        if refs:
            self.write_refs()
        if drawn:
            self.draw()
        self.lock()

    def draw(self) -> None:
        with suppress(SkilltrailError, LookupError, TypeError, ValueError):
            best = version_of(self.training, "best").text
            path = self.folder / "skills/best_skill.md"
            path.write_text(best, encoding="utf-8", newline="\n")
            build(self.folder, self.folder)

    def write_live(self) -> None:
        (live,) = (self.folder / ".skilltrail/runs").glob("*/events.jsonl")
        live.write_bytes(data_of(self.training))
        logs = self.folder / ".skilltrail/evaluations"
        (old,) = logs.iterdir()
        new = old.rename(logs / self.training[-1].id[:16])
        first, second = sorted(new.glob("*.jsonl"))
        first.write_bytes(data_of(self.evaluation))
        second.write_bytes(data_of(self.asked))

    def write_refs(self, **more: Sequence[Event]) -> None:
        """Write the refs of the logs, and `more` by their names."""
        git = Git.find(self.folder)
        assert git is not None
        write = {
            f"{RUNS}main": [*self.training, *self.evaluation],
            f"{EVALUATIONS}main/1": [*self.training, *self.asked],
            **more,
        }
        with suppress(SkilltrailError):  # where the change lets no commit be made
            write_refs(git, write)

    def lock(self) -> None:
        """Write the dvc.lock of what is here now."""
        inputs = Inputs(self.folder)
        params = YAML(typ="safe").load((self.folder / "params.yaml").read_text("utf-8"))
        asked = {key: params[key] for key in _PARAMS if key in params}

        def rows(paths: Sequence[str]) -> list[dict[str, Any]]:
            found = ((path, inputs._hash(path)) for path in paths)
            return [{"path": path, "md5": md5} for path, md5 in found if md5 is not None]

        stages = {
            name: {
                "deps": rows(_DEPS[name]),
                "params": {"params.yaml": asked},
                "outs": rows(_OUTS[name]),
            }
            for name in _OUTS
        }
        with (self.folder / "dvc.lock").open("w", encoding="utf-8", newline="\n") as file:
            YAML().dump({"schema": "2.0", "stages": stages}, file)

    # facts

    def facts(self) -> dict[str, Fact]:
        """Return the exported facts by key."""
        paths = (path for folder in EXPORTS for path in shard_files(self.folder / folder))
        lines = (line for path in paths for line in path.read_bytes().splitlines(keepends=True))
        return {fact.key: fact for fact in map(fact_of, lines)}

    def set_facts(
        self, facts: Mapping[str, Fact], *, exports: bool = True, store: bool = True
    ) -> None:
        """Put facts in place of those of the same keys; their digests are made right."""
        for folder in EXPORTS if exports else ():
            for path in shard_files(self.folder / folder):
                old = [fact_of(line) for line in path.read_bytes().splitlines(keepends=True)]
                new = (facts.get(fact.key, fact) for fact in old)
                path.write_bytes(b"".join(map(line_of, new)))
        if store:
            with sqlite3.connect(self.folder / ".skilltrail/store.db") as database:
                for fact in facts.values():
                    packed = zlib.compress(fact.text.encode())
                    row = (packed, len(fact.text.encode()), fact.key)
                    database.execute("UPDATE facts SET value = ?, size = ? WHERE key = ?", row)
            database.close()


def chain(events: Sequence[Event], after: Event | None) -> list[Event]:
    """Return the events as a chain that goes on from `after`, every hash made right."""
    made: list[Event] = []
    for event in events:
        last = made[-1] if made else after
        seq, prev = (1, None) if last is None else (last.seq + 1, last.id)
        made.append(make_event(event.type, event.data, seq=seq, prev=prev))
    return made


def data_of(events: Sequence[Event]) -> bytes:
    return b"".join(event.line + b"\n" for event in events)


def changed_fact(fact: Fact, change: Change) -> Fact:
    value = json.loads(fact.text)
    change(value)
    return Fact(fact.kind, fact.key, canonical(value))


def copies(base: Path, folder: Path) -> Iterator[Forger]:
    """Yield forgers, each with a fresh copy of `base`."""
    number = 0
    while True:
        number += 1
        copy = folder / str(number)
        shutil.copytree(base, copy, symlinks=True)
        yield Forger(copy)
        shutil.rmtree(copy)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

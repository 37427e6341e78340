"""Train on items that nothing here was tuned to, over seeds, and evaluate on held-out ones.

    python -m benchmarks.trial                              every set, one seed
    python -m benchmarks.trial --set default --seeds 5      the default data, seeds 42 to 46
    python -m benchmarks.trial --set match --set recipe -S lr=8 --into /tmp/trial

`default` are the data of this repository. Each other set are generated extraction questions (40
train, 40 selection, 100 test items; `benchmarks.trial_sets` says when each was written). All
runs are made one by one in a clone of this repository. With `--into FOLDER` it stays: a trial
that was stopped goes on there, one that is done makes no call, and the logs lie in
`FOLDER/trials`. Results are a table in Markdown on stdout.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from benchmarks.crash import environment
from benchmarks.trial_sets import SETS
from benchmarks.trial_table import Trained, markdown, trained_of
from skilltrail.core.canon import digest
from skilltrail.core.layout import EVALUATION, EVENTS
from skilltrail.history.ask.evaluations import held_out_of
from skilltrail.history.log.log import read_log, read_whole
from skilltrail.params.edit import set_params

ROOT = Path(__file__).resolve().parents[1]
SIZES = {"train": 40, "selection": 40, "test": 100}
DEFAULT = "default"
STAGES = ("split", "train", "evaluate")


def items(name: str, count: int) -> Iterator[dict[str, Any]]:
    """Yield `count` items, one question a text."""
    dice = random.Random(f"trial {name}")
    for number in range(count):
        text, facts = SETS[name](dice)
        question = dice.choice(sorted(facts))
        yield {
            "id": f"{name}-{number}",
            "question": question,
            "context": text,
            "answers": [facts[question]],
        }


def clone(folder: Path, rev: str) -> str:
    """Let `folder` be a clone at commit `rev` with all sets in its data; return the commit."""
    commit = _git(ROOT, "rev-parse", f"{rev}^{{commit}}")
    if not (folder / "dvc.yaml").exists():
        _git(ROOT, "clone", "--quiet", str(ROOT), str(folder))
    _git(folder, "fetch", "--quiet", "origin", commit)
    _git(folder, "checkout", "--quiet", "--force", "--detach", commit)
    for name in SETS:
        splits = folder / "data" / f"trial-{name}"
        splits.mkdir(exist_ok=True)
        made = items(name, sum(SIZES.values()))
        for split, size in SIZES.items():
            lines = (json.dumps(next(made), ensure_ascii=False) + "\n" for _ in range(size))
            path = splits / f"{split}.jsonl"
            path.write_text("".join(lines), encoding="utf-8", newline="\n")
    return commit


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


@dataclass(frozen=True)
class Bout:
    """One run that is asked for; its name stands for its code and settings."""

    set: str
    seed: int
    name: str
    changes: tuple[str, ...]


def data_of(name: str) -> tuple[str, ...]:
    """Return the params that choose a set."""
    return () if name == DEFAULT else (f"data.split_dir=data/trial-{name}",)


def set_up(folder: Path, changes: Sequence[str]) -> None:
    """Let the clone's params be those of its commit but for `KEY=VALUE` changes."""
    _git(folder, "checkout", "--quiet", "--", "params.yaml")
    pairs = (change.partition("=")[::2] for change in changes)
    read = YAML(typ="safe")
    set_params(folder / "params.yaml", {key: read.load(text) for key, text in pairs})


def run_stage(folder: Path, stage: str) -> None:
    command = [sys.executable, "-m", f"stages.{stage}"]
    if subprocess.run(command, cwd=folder, env=environment(), check=False).returncode:
        raise SystemExit(f"stages.{stage} failed in {folder}")


def bouts_of(
    commit: str, names: Sequence[str], seeds: Sequence[int], asked: Sequence[str]
) -> list[Bout]:
    """Return the runs, seed by seed."""
    found = []
    for seed in seeds:
        for name in names:
            changes = (*data_of(name), *asked, f"seed={seed}")
            mark = digest("trial/2", [commit, *changes])[:6]
            found.append(Bout(name, seed, f"{name}-{seed}-{mark}", changes))
    return found


def trained(folder: Path, bout: Bout) -> Trained:
    """Return what a run says, made where its log is not there yet."""
    kept = folder / "trials" / bout.name
    if not kept.exists():
        set_up(folder, bout.changes)
        for stage in STAGES:
            run_stage(folder, stage)
        made = kept.with_suffix(".part")
        made.mkdir(parents=True, exist_ok=True)
        for path in (EVENTS, EVALUATION):
            shutil.copy(folder / path, made / path.name)
        made.rename(kept)
    events = read_log(kept / EVENTS.name)
    test = held_out_of(read_whole(kept / EVALUATION.name, continues=True).events)
    if test is None:
        raise SystemExit(f"{bout.name}: no score on the test split; evaluate.skills needs best")
    return trained_of(bout.set, bout.seed, events, test)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--set", dest="sets", action="append", choices=[DEFAULT, *SETS])
    options.add_argument("--seeds", type=int, default=1, help="runs a set")
    options.add_argument("--first", type=int, default=42, help="the first of the seeds")
    options.add_argument("--rev", default="HEAD", help="the commit whose code is tried")
    options.add_argument("--into", type=Path, help="a folder for the clone, which stays")
    options.add_argument("-S", dest="params", metavar="KEY=VALUE", action="append", default=[])
    asked = options.parse_args()
    seeds = [asked.first + number for number in range(asked.seeds)]
    names = asked.sets or [DEFAULT, *SETS]
    folder = Path(tempfile.mkdtemp(prefix="trial-")) if asked.into is None else asked.into
    folder = folder.resolve()
    try:
        bouts = bouts_of(clone(folder, asked.rev), names, seeds, asked.params)
        runs = [trained(folder, bout) for bout in bouts]
        runs.sort(key=lambda run: (names.index(run.name), run.seed))
        sys.stdout.write(markdown(runs))
    finally:
        if asked.into is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()

"""Train on items that nothing here was tuned to, and evaluate on held-out ones.

    python -m benchmarks.trial                 all sets, default params
    python -m benchmarks.trial --set match     one of them
    python -m benchmarks.trial -S lr=8         with another param

Small sets of extraction questions are generated (40 train, 40 selection, 100 test items each),
put in through `data.split_dir` into a clone of this repository, and trained there.
`benchmarks.trial_sets` says when each was written. Takes some minutes each.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.crash import environment
from benchmarks.trial_sets import SETS

ROOT = Path(__file__).resolve().parents[1]
SIZES = {"train": 40, "selection": 40, "test": 100}


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


def run(name: str, params: list[str], rev: str, logs: Path | None) -> dict[str, Any]:
    """Train on one set in a clone, with `params` as `KEY=VALUE`, and return its summary.

    `rev` is the commit that is cloned; the run's log is kept in the folder `logs`.
    """
    folder = Path(tempfile.mkdtemp(prefix="trial-"))
    try:
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder / "run")], check=True)
        subprocess.run(
            ["git", "checkout", "--quiet", "--detach", rev], cwd=folder / "run", check=True
        )
        splits = folder / "run/data/trial"
        splits.mkdir()
        made = items(name, sum(SIZES.values()))
        for split, size in SIZES.items():
            lines = (json.dumps(next(made), ensure_ascii=False) + "\n" for _ in range(size))
            path = splits / f"{split}.jsonl"
            path.write_text("".join(lines), encoding="utf-8", newline="\n")
        environ = environment()
        changed = [f"--set-param={param}" for param in ("data.split_dir=data/trial", *params)]
        for command in (
            ["dvc", "exp", "run", "--quiet", *changed],
            ["skilltrail.cli.main", "summary", "--json"],
        ):
            done = subprocess.run(
                [sys.executable, "-m", *command],
                cwd=folder / "run",
                env=environ,
                check=True,
                stdout=subprocess.PIPE,
            )
        if logs is not None:
            logs.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / "run/skills/events.jsonl", logs / f"{name}.jsonl")
        told: dict[str, Any] = json.loads(done.stdout)
        return told
    finally:
        shutil.rmtree(folder)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--set", choices=sorted(SETS))
    options.add_argument("--rev", default="HEAD", help="the commit whose code is tried")
    options.add_argument("--logs", type=Path, help="a folder to keep the runs' logs in")
    options.add_argument("-S", dest="params", metavar="KEY=VALUE", action="append", default=[])
    chosen = options.parse_args()
    for name in [chosen.set] if chosen.set else sorted(SETS):
        told = run(name, chosen.params, chosen.rev, chosen.logs)
        test, saved = told["scores"]["test"], told["early_stopping"]
        gap = told["scores"]["selection"]["best"] - test["best"]
        sys.stdout.write(
            f"{name}: held-out exact match {test['seed']:.2f} -> {test['best']:.2f} "
            f"({test['gain']:+.2f}, {test['gain_low']:+.2f} to {test['gain_high']:+.2f}), "
            f"selection above test by {gap:+.2f}, "
            f"{told['calls']['made']} calls, {told['scores']['steps']} steps, "
            f"{saved['saved']} of {saved['of']} rollouts of rejected candidates saved\n"
        )


if __name__ == "__main__":
    main()

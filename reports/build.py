"""The `report` stage: metrics.json, curve.tsv and the page, from the two logs.

in    skills/events.jsonl, reports/out/evaluation.jsonl, data/rollouts, data/splits
out   reports/out/metrics.json, reports/out/curve.tsv, reports/out/index.html
"""

from __future__ import annotations

import json
from pathlib import Path

from reports.book import read_facts
from reports.book.cost import totals
from reports.page import page
from reports.tables import curve, metrics, tsv
from stages.command import run_stage
from stages.core.files import write_atomic
from stages.history.log import read_log
from stages.store.place import find_place

OUT = Path("reports/out")


async def main() -> None:
    """Build all outputs of the report stage."""
    build(find_place().workspace)


def build(workspace: Path) -> None:
    """Read the logs of `workspace` and write the report's files."""
    training = read_log(workspace / "skills/events.jsonl")
    evaluation = read_log(workspace / OUT / "evaluation.jsonl", after=training[-1])
    out = workspace / OUT
    facts = read_facts(workspace, [*training, *evaluation])
    numbers = metrics(training, evaluation) | totals([*training, *evaluation], facts)
    write_atomic(out / "metrics.json", json.dumps(numbers, indent=2, sort_keys=True) + "\n")
    write_atomic(out / "curve.tsv", tsv(curve(training)))
    write_atomic(out / "index.html", page(training, evaluation, facts))


if __name__ == "__main__":
    run_stage(main)

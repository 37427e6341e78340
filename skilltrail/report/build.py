"""metrics.json, curve.tsv and the page, from the two logs.

in    skills/events.jsonl, reports/out/evaluation.jsonl, data/rollouts, data/splits
out   reports/out/metrics.json, reports/out/curve.tsv, reports/out/index.html
"""

from __future__ import annotations

import json
from pathlib import Path

from skilltrail.core.files import write_atomic
from skilltrail.history.log.log import read_log
from skilltrail.report.book import read_facts
from skilltrail.report.book.cost import totals
from skilltrail.report.page import page
from skilltrail.report.tables import curve, metrics, tsv

OUT = Path("reports/out")


def build(workspace: Path, root: Path | None = None) -> None:
    """Read the logs of `workspace` and write the report's files; `root` as in `read_facts`."""
    training = read_log(workspace / "skills/events.jsonl")
    evaluation = read_log(workspace / OUT / "evaluation.jsonl", after=training[-1])
    out = workspace / OUT
    facts = read_facts(workspace, [*training, *evaluation], root)
    numbers = metrics(training, evaluation) | totals([*training, *evaluation], facts)
    write_atomic(out / "metrics.json", json.dumps(numbers, indent=2, sort_keys=True) + "\n")
    write_atomic(out / "curve.tsv", tsv(curve(training)))
    write_atomic(out / "index.html", page(training, evaluation, facts))

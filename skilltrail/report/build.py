"""metrics.json, curve.tsv and the page, from the two logs.

in    skills/events.jsonl, reports/out/evaluation.jsonl, data/rollouts, data/splits
out   reports/out/metrics.json, reports/out/curve.tsv, reports/out/index.html
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

from skilltrail.core.files import write_atomic
from skilltrail.core.layout import CURVE, EVALUATION, EVENTS, METRICS, PAGE
from skilltrail.history.git.opening import name_here
from skilltrail.history.git.ref_names import is_label
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import read_log
from skilltrail.report.book import RunFacts, read_facts
from skilltrail.report.book.cost import totals
from skilltrail.report.book.trust import openings_row
from skilltrail.report.page import inert, page
from skilltrail.report.tables import curve, metrics, tsv


def build(workspace: Path, root: Path | None = None, experiment: str | None = None) -> None:
    """Read the logs of `workspace` and write the report's files.

    `root` is as in `read_facts`; `experiment` is DVC's name of it.
    """
    training = read_log(workspace / EVENTS)
    evaluation = read_log(workspace / EVALUATION, after=training[-1])
    name = None if root is None else name_here(root, training[-1], experiment)
    name = name if name is not None and is_label(name) else None
    for path, texts in drawn(workspace, training, evaluation, root, name).items():
        write_atomic(workspace / path, next(iter(texts)))


def drawn(
    workspace: Path,
    training: Sequence[Event],
    evaluation: Sequence[Event],
    root: Path | None = None,
    name: str | None = None,
) -> dict[Path, Iterable[str]]:
    """Return the report's files as text; the exports and splits of `workspace` are read.
    `name` is the run's.

    After the first text, which is the file as of now, come those that it may have been before
    later openings of the test split were known.
    """
    facts = read_facts(workspace, [*training, *evaluation], root, name)
    numbers = metrics(training, evaluation) | totals([*training, *evaluation], facts)
    return {
        METRICS: [json.dumps(numbers, indent=2, sort_keys=True) + "\n"],
        CURVE: [tsv(curve(training))],
        PAGE: _pages(training, evaluation, facts),
    }


def _pages(
    training: Sequence[Event], evaluation: Sequence[Event], facts: RunFacts
) -> Iterator[str]:
    now = page(training, evaluation, facts)
    yield now
    own = [one for one in facts.evaluations if one.run == training[-1].id]
    others = [one for one in facts.evaluations if one.run != training[-1].id]
    row = inert(openings_row(training, evaluation, facts.evaluations))
    for n, m in product(range(len(own) + 1), range(len(others) + 1)):
        before = openings_row(training, evaluation, [*own[:n], *others[:m]])
        yield now.replace(row, inert(before), 1)

"""Puts the page's data together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from skilltrail.core.targets import Target, cases_of, item_of
from skilltrail.history.log.erasure import end_of
from skilltrail.history.log.events import Event, read_all
from skilltrail.history.log.run_log import RunLog
from skilltrail.history.log.types.outcomes import RunFinished, RunStarted, TestOpened
from skilltrail.history.log.words import sentences
from skilltrail.report.book.cost import cost_rows
from skilltrail.report.book.facts import RunFacts
from skilltrail.report.book.packing import Items, Packer
from skilltrail.report.book.rollouts import RolloutBook
from skilltrail.report.book.strings import Strings
from skilltrail.report.book.summary import headline, rows_of
from skilltrail.report.book.trust import trust_rows
from skilltrail.report.book.versions import Lines, packed_versions
from skilltrail.report.tables import columns_of, targets_of

SHAPE = 2
ROOM_BYTES = 9_200_000  # for all data; the page around it takes a few hundred thousand


def book_of(
    training: Sequence[Event],
    evaluation: Sequence[Event],
    facts: RunFacts,
    runs: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Return the page's data.

    Args:
        training: a training log, finished or not, at least its first two events.
        evaluation: the evaluation log, may be empty.
        runs: other runs to compare with, see `skilltrail.report.book.runs`.
    """
    strings, items = Strings(), Items()
    packer, rollouts = Packer(strings, items), RolloutBook(strings, items, facts)
    lines, numbers = Lines(strings), headline(training, evaluation)
    splits, columns = _splits(training, evaluation, items), columns_of(training)
    events, scored = [], []
    for event in (*training, *evaluation):
        if event.type == "rollouts.scored":
            scored.append(rollouts.scored(event))
        elif event.type not in ("run.started", "test.opened"):
            events.append(packer.event(event))
    book = {
        "shape": SHAPE,
        "run": _run(training, facts),
        "numbers": numbers,
        "columns": columns,
        "curve": [[row[name] for name in columns] for row in rows_of(training)],
        "versions": packed_versions(RunLog(training), lines),
        "lines": lines.columns,
        "events": events,
        "scored": scored,
        "trajectories": rollouts.trajectories,
        "log": [
            [e.seq, e.type, strings.keep(words)]
            for e, words in sentences((*training, *evaluation))
        ],
        "cost": cost_rows((*training, *evaluation), facts),
        "trust": trust_rows(
            training, evaluation, numbers, facts.evaluations, facts.drift(training, evaluation)
        ),
        "runs": list(runs),
        "items": _items(items.ids, splits, facts, strings, targets_of(training)),
    }
    spent = len(json.dumps(book, separators=(",", ":"), ensure_ascii=False).encode())
    book["strings"], book["longest"] = strings.finish(ROOM_BYTES - spent)
    return book


def _run(training: Sequence[Event], facts: RunFacts) -> dict[str, Any]:
    start, end = training[0].read(RunStarted), end_of(training)
    finished = None if end is None else end.read(RunFinished)
    return {
        "name": facts.name,
        "env": start.env,
        "agent": start.agent["version"],
        "target": dict(start.target),
        "seed": start.seed,
        "parent": start.parent,
        "id": training[-1].id,
        "events": len(training),
        "train": len(start.train),
        "selection": len(start.selection),
        "finished": finished is not None,
        "why": None if finished is None else finished.why,
        "best": None if finished is None else finished.best.version,
        "facts": facts.present,
    }


def _splits(
    training: Sequence[Event], evaluation: Sequence[Event], items: Items
) -> dict[str, str]:
    """Return the split of each item, numbering items in the order of the splits."""
    splits: dict[str, str] = {}
    start = training[0].read(RunStarted)
    several = targets_of(training)
    groups = [("selection", start.selection, several), ("train", start.train, ())]
    opened = read_all(evaluation, TestOpened)
    groups += [(said.split, said.items, several) for said in opened]
    for split, rows, targets in groups:
        for name in cases_of((row.item for row in rows), targets):
            splits.setdefault(name, split)
            items.number(name)
    return splits


def _items(
    ids: Sequence[str],
    splits: Mapping[str, str],
    facts: RunFacts,
    strings: Strings,
    several: Sequence[Target],
) -> dict[str, list[Any]]:
    expected = (facts.expected.get(id, facts.expected.get(item_of(id, several))) for id in ids)
    return {
        "id": list(ids),
        "split": [splits.get(id, "") for id in ids],
        "expected": [None if text is None else strings.add(text) for text in expected],
    }

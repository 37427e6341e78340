"""Rescore: score recorded trajectories again and name the rows of a log that differ.

What a judge scored is computed anew from its recorded judgement; no judge is asked. The named
metrics of an evaluation are computed anew too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.kit.metrics import metric_rows
from skilltrail.envs.protocol import Environment, case_of
from skilltrail.envs.scoring import by_rule
from skilltrail.history.log.events import Event
from skilltrail.models.judge import judges, score_of
from skilltrail.store.facts import FactStore
from skilltrail.verify.faults import FACTS, Fault


def rescored(
    events: Sequence[Event],
    store: FactStore,
    env: Environment,
    items: Mapping[str, Sequence[Item]],
) -> tuple[int, list[Fault]]:
    """Score recorded trajectories again; return how many, and the rows that differ.

    Items whose content is no longer the recorded one, and rollouts that are not in the store,
    are passed over.
    """
    started = events[0].data
    known = _unchanged(started, items)
    scored = 0
    faults = []
    for event in events:
        if event.type != "rollouts.scored":
            continue
        rows = [
            r for r in event.data["items"] if r["outcome"] == "scored" and r["item"] in known
        ]
        facts = store.get_many(key for row in rows for key in keys_of(row))
        for row in rows:
            if not facts.keys() >= set(keys_of(row)):
                continue
            scored += 1
            right = _again(row, facts, env, known[row["item"]], started.get("judge"))
            for name in ("hard", "soft", "reason", "judgement"):
                if row.get(name) != right.get(name):
                    what = f"{name} of item {row['item']}"
                    found = (row.get(name), right.get(name))
                    faults.append(Fault.of(event, what, *found, FACTS))
    return scored, faults


def remeasured(
    events: Sequence[Event],
    store: FactStore,
    env: Environment,
    items: Mapping[str, Sequence[Item]],
) -> tuple[str, list[Fault]]:
    """Compute the named metrics of an evaluation again; say how many, and which differ.

    A mean over items that changed, or over rollouts that are not in the store, is passed over.
    """
    known = _unchanged(events[0].data, items)
    told = 0
    faults = []
    rows: Sequence[Mapping[str, Any]] = ()
    for event in events:
        if event.type == "rollouts.scored":  # comes before what is told of it
            rows = [row for row in event.data["items"] if row["outcome"] == "scored"]
        elif "metrics" in event.data:
            facts = store.get_many(row["key"] for row in rows)
            if any(row["item"] not in known or row["key"] not in facts for row in rows):
                continue
            done = [
                (known[row["item"]], Trajectory.from_json(facts[row["key"]]["trajectory"]))
                for row in rows
            ]
            found, right = event.data["metrics"], metric_rows(env, done)
            told += len(right)
            if found != right:
                faults.append(Fault.of(event, "metrics", found, right, FACTS))
    return (f"{told} named metrics computed again" if told else "not told any metric"), faults


def _unchanged(
    started: Mapping[str, Any], items: Mapping[str, Sequence[Item]]
) -> dict[str, Item]:
    """Return, by id, the items whose content is that which a log's first event names."""
    listed = started["items"] if "items" in started else [r for s in items for r in started[s]]
    digests = {row["item"]: row["digest"] for row in listed}
    every = [item for split in items.values() for item in split]
    return {item.id: item for item in every if digests.get(item.id) == item.content_digest}


def keys_of(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys of the facts that a row's score rests on."""
    yield row["key"]
    if "judgement" in row:
        yield row["judgement"]


def _again(
    row: Mapping[str, Any],
    facts: Mapping[str, Mapping[str, Any]],
    env: Environment,
    item: Item,
    judge: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return what a row should say; the judge is the one that the run started with."""
    trajectory = Trajectory.from_json(facts[row["key"]]["trajectory"])
    case = case_of(env, item, trajectory)
    if case is None:
        return _told(by_rule(env, item, trajectory), None)
    key = row.get("judgement")
    if judge is None or key is None or not judges(facts[key], key, case, judge):
        return _told(Score.missing("no judgement of this answer"), None)
    return _told(score_of(facts[key], judge["threshold"]), key)


def _told(score: Score, judgement: str | None) -> dict[str, Any]:
    told = {name: getattr(score, name) for name in ("hard", "soft", "reason")}
    return told if judgement is None else told | {"judgement": judgement}

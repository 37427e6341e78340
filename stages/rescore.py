"""Rescore: score recorded trajectories again and name the rows of a log that differ.

What a judge scored is computed anew from its recorded judgement; no judge is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stages.core.item import Item
from stages.core.score import Score
from stages.core.trajectory import Trajectory
from stages.envs.protocol import Environment, case_of
from stages.history.events import Event
from stages.history.faults import FACTS, Fault
from stages.models.judge import judges, score_of
from stages.scoring import by_rule
from stages.store.facts import FactStore


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
    digests = {row["item"]: row["digest"] for split in items for row in started[split]}
    known = {item.id: item for split in items.values() for item in split}
    same = {id for id, item in known.items() if digests.get(id) == item.content_digest}
    scored = 0
    faults = []
    for event in events:
        if event.type != "rollouts.scored":
            continue
        rows = [
            r for r in event.data["items"] if r["outcome"] == "scored" and r["item"] in same
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

"""Rescore: judge recorded trajectories again and name the rows of a log that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stages.core.item import Item
from stages.core.trajectory import Trajectory
from stages.envs.protocol import Environment
from stages.history.events import Event
from stages.history.faults import FACTS, Fault
from stages.rollout import judge
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
        facts = store.get_many(row["key"] for row in rows)
        for row in rows:
            if row["key"] not in facts:
                continue
            trajectory = Trajectory.from_json(facts[row["key"]]["trajectory"])
            score = judge(env, known[row["item"]], trajectory)
            scored += 1
            for name in ("hard", "soft", "reason"):
                right = getattr(score, name)
                if row[name] != right:
                    what = f"{name} of item {row['item']}"
                    faults.append(Fault.of(event, what, row[name], right, FACTS))
    return scored, faults

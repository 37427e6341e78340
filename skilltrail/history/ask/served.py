"""Who served a run's replies, by role, read off its facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from skilltrail.core.served import Served, in_words, served_by, told_apart
from skilltrail.history.log.events import Event

Get = Callable[[Iterable[str]], Mapping[str, Mapping[str, Any]]]


def served_in(events: Sequence[Event], get: Get) -> dict[str, Counter[Served]]:
    """Return how many facts of each role each model served, as far as facts are at hand.

    Roles are target, optimizer, judge, and further targets by name. `get` returns facts by key.
    """
    keys: dict[str, dict[str, None]] = {}
    for event in events:
        if event.type == "rollouts.scored":
            rows = event.data["items"]
            role = event.data.get("target", "target")
            for row in rows:
                keys.setdefault(row.get("target", role), {})[row["key"]] = None
            judged = (row["judgement"] for row in rows if "judgement" in row)
            keys.setdefault("judge", {}).update(dict.fromkeys(judged))
        elif event.data.get("reply") is not None:
            keys.setdefault("optimizer", {})[event.data["reply"]] = None
    found = {}
    for role, wanted in keys.items():
        facts = get(key for key in wanted if key is not None)
        counts = told_apart(one for fact in facts.values() for one in served_by(fact))
        if counts:
            found[role] = counts
    return found


def drift(found: Mapping[str, Counter[Served]]) -> list[str]:
    """Return a sentence for each role whose replies several models gave."""
    return [
        f"replies of the {role} are of several models: {in_words(counts.elements())}"
        for role, counts in found.items()
        if len(counts) > 1
    ]

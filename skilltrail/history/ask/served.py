"""Who served a run's replies, by role, read off its facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from skilltrail.core.served import Served, in_words, served_by, told_apart
from skilltrail.history.log.events import Event
from skilltrail.history.log.types.outcomes import RolloutsScored

Get = Callable[[Iterable[str]], Mapping[str, Mapping[str, Any]]]


def served_in(events: Sequence[Event], get: Get) -> dict[str, Counter[Served]]:
    """Return how many facts of each role each model served, as far as facts are at hand.

    Roles are target, optimizer, judge, and further targets by name. `get` returns facts by key.
    """
    keys: dict[str, dict[str | None, None]] = {}
    for event in events:
        said = event.said
        if isinstance(said, RolloutsScored):
            role = "target" if said.target is None else said.target
            for row in said.items:
                of = role if row.target is None else row.target
                keys.setdefault(of, {})[row.key] = None
                keys.setdefault("judge", {})[row.judgement] = None
        elif (reply := getattr(said, "reply", None)) is not None:
            keys.setdefault("optimizer", {})[reply] = None
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

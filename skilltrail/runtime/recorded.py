"""What the `replay` backend answers from: the calls and rollouts that the store holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skilltrail.store.facts import FactStore


class StoredCalls:
    """Recorded calls of one store, as `skilltrail.models.backends.replay.Records` wants them.

    A one-turn rollout is its own call's record and is found by the rollout's key before any
    model is asked, so `reply` looks among calls only; `requests` shows both, since an unseen
    request is explained by the nearest one recorded.
    """

    def __init__(self, store: FactStore) -> None:
        self._store = store

    def reply(self, key: str) -> Mapping[str, Any] | None:
        found = self._store.get(key)
        return None if found is None else found.get("reply")

    def requests(self) -> Iterator[Mapping[str, Any]]:
        rows = self._store.query("SELECT key FROM facts WHERE kind IN ('call', 'rollout')")
        for fact in self._store.get_many(key for (key,) in rows).values():
            if "request" in fact:
                yield fact["request"]
            for turn in fact.get("trajectory", {}).get("turns", ()):
                yield {"sent": turn["sent"]}

"""A store for tests of what is above it: every call is made, no file is created.

What was made stays in memory for exports and audits; `get` never gives it back, so that
nothing is reused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from skilltrail.store.protocol import Fact, Made, Make


class NullStore:
    """Keeps nothing beyond the process. The latest put of a key is what exports see."""

    def __init__(self) -> None:
        self._facts: dict[str, Fact] = {}

    def get(self, key: str) -> dict[str, Any] | None:
        return None

    def get_many(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        return {}

    def has_many(self, keys: Iterable[str]) -> set[str]:
        return set()

    async def put(self, kind: str, key: str, value: Mapping[str, Any]) -> dict[str, Any]:
        fact = Fact.of(kind, key, value)
        self._facts[key] = fact
        text: dict[str, Any] = json.loads(fact.text)
        return text

    async def get_or_make(self, kind: str, key: str, make: Make) -> Made:
        return Made(await self.put(kind, key, await make()), reused=False)

    def sizes(self, keys: Iterable[str]) -> dict[str, int]:
        return {fact.key: len(fact.text.encode("utf-8")) for fact in self.facts(keys)}

    def facts(self, keys: Iterable[str]) -> Iterator[Fact]:
        for key in keys:
            if key in self._facts:
                yield self._facts[key]

    def close(self) -> None:
        return None

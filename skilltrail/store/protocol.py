"""The door to recorded facts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from skilltrail.core.canon import canonical_clean, digest
from skilltrail.core.item import Item

# script: a run of a script's test.
# gap: a missing rollout kept for one run only (DESIGN §3, `gate.min_coverage` < 1).
KINDS = ("rollout", "call", "script", "gap")

Make = Callable[[], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True)
class Fact:
    """One recorded fact. `text` is the canonical JSON text of its value, a JSON object."""

    kind: str
    key: str
    text: str

    @staticmethod
    def of(kind: str, key: str, value: Mapping[str, Any]) -> Fact:
        """Return the fact of a value.

        Raises:
            ValueError: unknown kind, no key, or NaN in the value, or it is nested too deeply.
            TypeError: the value is not a JSON object.
        """
        if kind not in KINDS:
            raise ValueError(f"a fact's kind is one of {', '.join(KINDS)}, found {kind!r}")
        if not key or not key.isascii() or not key.isalnum():
            raise ValueError(f"a fact's key is letters and digits, found {key!r}")
        if not isinstance(value, Mapping):
            raise TypeError(f"a fact's value is a JSON object, found {type(value).__name__}")
        return Fact(kind, key, canonical_clean(dict(value)))


@dataclass(frozen=True)
class Made:
    """The value that stands under a key, as JSON gives it back; `reused` when nobody paid."""

    value: dict[str, Any]
    reused: bool


def gap_key(run: str, key: str) -> str:
    """Return the key of the gap that run digest `run` has where fact `key` is missing."""
    return digest("gap/1", {"run": run, "key": key})


def rollout_key(
    agent: Sequence[Any],
    item: Item,
    skill: str,
    target: Mapping[str, Any],
    shown: Sequence[Any],
    repeat: int = 0,
) -> str:
    """Return the fact key: all that determines the rollout, and neither gold nor place.

    Args:
        agent: the environment's name, version and params (those of the scorer left out).
        skill: the skill's digest.
        target: the model's identity.
        shown: the model's style and its abilities, sorted.
    """
    return digest(
        "rollout/1",
        {
            "agent": list(agent),
            "item": item.input_digest,
            "skill": skill,
            "target": target,
            "shown": list(shown),
            "repeat": repeat,
        },
    )


class Store(Protocol):
    """Facts by key."""

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the value under `key`, or None."""

    def get_many(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the values that are there, by key."""

    def has_many(self, keys: Iterable[str]) -> set[str]:
        """Return those of `keys` that are there, without reading their values."""

    async def put(self, kind: str, key: str, value: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a value and return the one that stands: the first put of a key wins."""

    async def get_or_make(self, kind: str, key: str, make: Make) -> Made:
        """Return the value under `key`; where absent, await `make()` and keep what it gives.

        Whoever else needs the key meanwhile waits and reuses it. When `make` raises, nothing
        is kept and the error goes to all who wait in this process.
        """

    def sizes(self, keys: Iterable[str]) -> dict[str, int]:
        """Return the bytes of the canonical value text of each key that is there."""

    def facts(self, keys: Iterable[str]) -> Iterator[Fact]:
        """Yield the facts that are there, in the order of `keys`. For exports and audits."""

    def close(self) -> None:
        """Finish what is queued, give back claims, free the files."""

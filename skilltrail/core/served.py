"""Which weights answered, as far as a provider tells: under one name it may change them.

Each recorded fact holds the model string that came back and, where the provider sends one, its
system fingerprint. When facts of one role differ in them, numbers made of them are of several
models, whatever name was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, order=True)
class Served:
    """What a reply said of who gave it; "" where it said nothing."""

    model: str
    fingerprint: str = ""

    def __str__(self) -> str:
        return f"{self.model} ({self.fingerprint})" if self.fingerprint else self.model


def served_by(fact: Mapping[str, Any]) -> list[Served]:
    """Return who gave the replies of a fact, a rollout's or a call's; [] where nobody says."""
    if "served" in fact:
        return [Served(model, fingerprint) for model, fingerprint in fact["served"]]
    parts = [fact[name] for name in ("trajectory", "reply", "rejected") if name in fact]
    found = {Served(part.get("model", ""), part.get("fingerprint", "")) for part in parts}
    return sorted(found - {Served("")})


def told_apart(found: Iterable[Served]) -> Counter[Served]:
    """Return how often each was met; a reply without a fingerprint says nothing of another
    model than those of its name, so it counts with the most frequent one."""
    counts = Counter(found)
    named: dict[str, Served] = {}
    for one in sorted(counts, key=lambda one: (-counts[one], one)):
        if one.fingerprint:
            named.setdefault(one.model, one)
    merged: Counter[Served] = Counter()
    for one, times in counts.items():
        merged[one if one.fingerprint else named.get(one.model, one)] += times
    return merged


def in_words(found: Iterable[Served]) -> str:
    """Return all of them in one line, with how often each was met, the most frequent first."""
    counts = told_apart(found)
    ordered = sorted(counts, key=lambda one: (-counts[one], one))
    return "; ".join(f"{one} ({counts[one]}×)" for one in ordered)

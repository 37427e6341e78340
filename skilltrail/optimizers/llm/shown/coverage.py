"""What the document covers: by task type, how train runs fare and what it shows. Pure.

An item counts as quoted when its longest text stands in the document, or most of that text's
stretches of eight words do: analysts shorten what they quote.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from skilltrail.core.canon import text_digest, texts_in
from skilltrail.core.item import Item
from skilltrail.optimizers.protocol import Observation

_STRETCH = 8  # words
_SHARE = 0.5
_UNTYPED = "(no type)"


def coverage_table(
    pool: Mapping[str, Observation], skill: str, success_threshold: float
) -> str:
    """Return a row for each task type: train runs with this document, and worked examples."""
    digest = text_digest(skill)
    rows: dict[str, list[int]] = {}
    for seen in pool.values():
        type = seen.item.task_type
        row = rows.setdefault(_UNTYPED if type is None else type, [0, 0, 0])
        if seen.skill == digest and seen.score.hard is not None:
            row[0] += seen.score.hard >= success_threshold
            row[1] += 1
        row[2] += is_quoted(seen.item, skill)
    return "\n".join(
        f"{name}: {right} of {runs} succeed; {count(shown)} in the document"
        for name, (right, runs, shown) in sorted(rows.items())
    )


def count(shown: int) -> str:
    return "1 worked example" if shown == 1 else f"{shown} worked examples"


def is_quoted(item: Item, skill: str) -> bool:
    """Return whether the document shows this item."""
    text = max(texts_in(item.input), key=len, default="")
    stretches = _stretches(text)
    words = _words(skill)
    found = sum(stretch in words for stretch in stretches)
    return bool(stretches) and found >= _SHARE * len(stretches)


@lru_cache(maxsize=16384)
def _stretches(text: str) -> tuple[str, ...]:
    words = text.split()
    if len(words) < _STRETCH // 2:
        return ()
    ends = range(max(1, len(words) - _STRETCH + 1))
    return tuple(f" {' '.join(words[at : at + _STRETCH])} " for at in ends)


@lru_cache(maxsize=64)
def _words(text: str) -> str:
    return f" {' '.join(text.split())} "

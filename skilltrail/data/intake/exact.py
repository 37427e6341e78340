"""An exact assignment to splits, stratified by task type, that later items never change.

Sources (groups, and items without one) are walked in the order of task type and hash; each goes
to the split that lies furthest behind its share of what has been walked. So totals are exact to
the item, each task type is spread evenly, and the order of the file does not matter. Sources
that a split holds already stay there: only new ones are walked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from skilltrail.core.errors import DataError
from skilltrail.core.item import SPLITS
from skilltrail.core.order import order_key

Record = Mapping[str, Any]
SMALL = 300  # up to so many items the splits are alike
LEAST = 6  # fewest items: two of each split


def shares(n_items: int) -> tuple[Fraction, Fraction, Fraction]:
    """Return the default shares of train, selection and test.

    A third each up to 300 items; beyond, train and selection grow slowly and test takes what is
    left: what a verdict needs does not grow with the set.
    """
    if n_items <= SMALL:
        return Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)
    train = max(Fraction(SMALL, 3 * n_items), Fraction(1, 5))
    selection = max(Fraction(SMALL, 3 * n_items), Fraction(1, 10))
    return train, selection, 1 - train - selection


def assign_exactly(
    records: Sequence[Record],
    ratio: Sequence[Fraction],
    seed: int,
    before: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the split of each id.

    Args:
        records: with `id`, and perhaps `group` and `task_type`.
        ratio: shares of train, selection and test, which sum to 1.
        before: id -> split of what was assigned earlier; kept as it is.

    Raises:
        DataError: too few items or sources for three splits.
    """
    found = {} if before is None else dict(before)
    sources: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for one in records:
        sources[_source(one)].append(one)
    held = {
        s: found[one["id"]] for s, ones in sources.items() for one in ones if one["id"] in found
    }
    counts = dict.fromkeys(SPLITS, 0)
    for split in found.values():
        counts[split] += 1
    for source, ones in _walk(sources, seed):
        new = [one for one in ones if one["id"] not in found]
        if not new:
            continue
        split = held.get(source) or _behind(counts, ratio, len(new))
        counts[split] += len(new)
        found |= {str(one["id"]): split for one in new}
    if min(counts.values()) < 2:
        told = ", ".join(f"{split} {counts[split]}" for split in SPLITS)
        raise DataError(
            f"Three splits of at least 2 items from {len(records)} items and {len(sources)} "
            "sources", told, f"Give at least {LEAST} items, and sources enough to part"
        )  # fmt: skip
    return found


def _source(record: Record) -> tuple[str, str]:
    group = record.get("group")
    return ("id", str(record["id"])) if group is None else ("group", str(group))


def _walk(
    sources: Mapping[tuple[str, str], list[Record]], seed: int
) -> Iterable[tuple[tuple[str, str], list[Record]]]:
    """Yield the sources, those of a task type together, each type in hashed order."""

    def place(source: tuple[str, str]) -> tuple[str, int, str]:
        first = min(sources[source], key=lambda one: str(one["id"]))
        # Large groups first: what is left evens them out.
        return (
            str(first.get("task_type", "")),
            -len(sources[source]),
            order_key(seed, 0, "/".join(source)),
        )

    return ((source, sources[source]) for source in sorted(sources, key=place))


def _behind(counts: Mapping[str, int], ratio: Sequence[Fraction], size: int) -> str:
    whole = sum(counts.values()) + size
    behind = {
        split: share * whole - counts[split] for split, share in zip(SPLITS, ratio, strict=True)
    }
    return max(SPLITS, key=lambda split: behind[split])

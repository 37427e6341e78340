"""Ratio mode: which split an item falls into, and seeded parts of splits.

A group (or an item without one) is a point in [0, 1) by the hash of its name and the seed; the
ratio cuts that line into train, selection and test. An item's split therefore depends on
nothing but its own group and the seed: a new item never moves an old one. The price is that
counts follow the ratio only on average, so small sets are refused rather than left with an
empty split.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from skilltrail.core.errors import DataError, ParamError
from skilltrail.core.item import SPLITS
from skilltrail.core.order import seeded_order
from skilltrail.data.load import Loaded

# Fewest items of each split; one selection item would be no ground for any verdict.
MINIMUM: Mapping[str, int] = {"train": 1, "selection": 2, "test": 1}
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")


Ratio = tuple[Fraction, Fraction, Fraction]


def parse_ratio(text: str) -> Ratio:
    """Return the shares of train, selection and test (they sum to 1) that `text` gives.

    `text` is three positive numbers as in "2:1:7"; "0.2:0.1:0.7" is the same ratio.

    Raises:
        ParamError: anything else.
    """
    parts = [part.strip() for part in str(text).split(":")]
    if len(parts) == len(SPLITS) and all(_NUMBER.fullmatch(part) for part in parts):
        train, selection, test = (Fraction(part) for part in parts)
        whole = train + selection + test
        if min(train, selection, test) > 0:
            return train / whole, selection / whole, test / whole
    raise ParamError(
        "data.ratio",
        f"{text!r}",
        'Write train:selection:test as three numbers above 0, as in "2:1:7"',
    )


def split_of(source: tuple[str, str], ratio: Ratio, seed: int) -> str:
    """Return the split that a source (see `Loaded.source`) falls into."""
    kind, name = source
    hashed = hashlib.sha256(f"split/1\n{seed}\n{kind}\n{name}".encode()).digest()
    point = Fraction(int.from_bytes(hashed[:8], "big"), 2**64)
    train, selection, _ = ratio
    if point < train:
        return "train"
    return "selection" if point < train + selection else "test"


def assign(loaded: Iterable[Loaded], ratio: Ratio, seed: int) -> dict[str, str]:
    """Return the split of every item id.

    Raises:
        DataError: fewer items or groups than the ratio needs, or a split left too small.
    """
    items = list(loaded)
    splits = {one.item.id: split_of(one.source, ratio, seed) for one in items}
    counts = Counter(splits.values())
    n_sources = len({one.source for one in items})
    least_items, least_sources = minimum_items(ratio), minimum_sources(ratio)
    enough = len(items) >= least_items and n_sources >= least_sources
    if enough and all(counts[split] >= MINIMUM[split] for split in SPLITS):
        return splits
    least = ", ".join(f"{MINIMUM[split]} {split}" for split in SPLITS)
    shares = ", ".join(f"{split} {counts[split]}" for split in SPLITS)
    asked = f"Splits of at least {least}"
    if not enough:
        needed = f"{least_items} items from {least_sources} sources"
        asked = f"This data.ratio needs at least {needed} for splits of at least {least}"
    raise DataError(
        asked,
        f"{len(items)} items from {n_sources} sources, which fall by hash into {shares}",
        f"Add items ({3 * least_items} from as many sources are all but sure to do), "
        "change data.ratio or data.split_seed, or give ready-made splits in data.split_dir",
    )


def minimum_items(ratio: Ratio) -> int:
    """Return the fewest items of which every split's share is at least its `MINIMUM`."""
    return max(
        math.ceil(MINIMUM[split] / share) for split, share in zip(SPLITS, ratio, strict=True)
    )


def minimum_sources(ratio: Ratio) -> int:
    """Return the fewest sources (groups, items without one) that give each split its share."""
    return max(math.ceil(1 / share) for share in ratio)


def limited(ids: Iterable[str], limit: int, seed: int) -> list[str]:
    """Return a seeded part of `limit` ids (all when 0); a smaller limit's part lies inside."""
    ordered = seeded_order(ids, seed)
    return ordered[:limit] if limit > 0 else ordered

"""What must not stand in two splits.

Splits must differ by content (normalised, so that capitals and punctuation hide nothing) and by
group. An overlap is refused unless `data.allow_overlap` is true, and is then recorded with the
splits.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from skilltrail.core.errors import DataError
from skilltrail.core.item import SPLITS
from skilltrail.data.load import Loaded

_EXAMPLES = 3  # shown in a message; the counts are always whole
_MEANT_IN_NUMBERS = re.compile(r"(?<=\d)[^\w\s](?=\d)|(?<!\S)-(?=\d)")
_PRIVATE = 0xE000  # where marks inside numbers wait while other punctuation is dropped


class _Dropped(dict[int, int | None]):
    """A table for `str.translate` that drops punctuation and invisible format characters."""

    def __missing__(self, code: int) -> int | None:
        kind = unicodedata.category(chr(code))
        value = None if kind.startswith("P") or kind == "Cf" else code
        self[code] = value
        return value


_DROPPED = _Dropped()


def normalised(text: str) -> str:
    """Return `text` as it is compared: NFKC, lower case, no punctuation, single blanks.

    Marks inside numbers stay (3.5 is not 35, -2 is not 2). Text of punctuation alone is
    compared as it is.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = _MEANT_IN_NUMBERS.sub(lambda mark: chr(_PRIVATE + ord(mark[0]) % 0x1000), folded)
    plain = unicodedata.normalize("NFKC", kept.translate(_DROPPED))
    return " ".join(plain.split()) or " ".join(folded.split())


@dataclass(frozen=True)
class Overlap:
    """One content or group that stands where it must not stand twice.

    Attributes:
        kind: `content` or `group`.
        items: (split, id) of one item per split it stands in, in the order of the splits; or of
            two items of one split that only chance has brought together.
    """

    kind: str
    items: tuple[tuple[str, str], ...]

    def to_json(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "items": [{"split": split, "id": id} for split, id in self.items],
        }


def overlaps(loaded: Iterable[Loaded], splits: Mapping[str, str]) -> list[Overlap]:
    """Return every content and group that must not be shared, in a fixed order.

    Nothing may stand in two splits. In ratio mode the same content from two sources is an
    overlap even within a split, since another seed would part it: the verdict is on the items
    and never on luck.

    Args:
        splits: item id -> split name.
    """
    same: dict[tuple[str, str], list[Loaded]] = defaultdict(list)
    for one in sorted(loaded, key=lambda one: one.item.id):
        same["content", normalised(one.content)].append(one)
        if one.item.group is not None:
            same["group", one.item.group].append(one)
    found = ((kind, _apart(ones, splits)) for (kind, _), ones in same.items())
    return [Overlap(kind, items) for kind, items in found if len(items) > 1]


def _apart(ones: list[Loaded], splits: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return (split, id) of one item per split, or of two sources that chance put in one."""
    first: dict[str, str] = {}
    for one in ones:
        first.setdefault(splits[one.item.id], one.item.id)
    if len(first) == 1 and not ones[0].split:
        sources: dict[tuple[str, str], str] = {}
        for one in ones:
            sources.setdefault(one.source, one.item.id)
        return tuple((splits[id], id) for id in list(sources.values())[:2])
    return tuple((split, first[split]) for split in SPLITS if split in first)


def refuse_overlaps(found: list[Overlap], loaded: Iterable[Loaded]) -> None:
    """Raise `DataError` when there is any overlap, with counts and examples."""
    if not found:
        return
    places = {one.item.id: str(one.where) for one in loaded}
    raise DataError(
        "The splits must share no content and no group, and no content may have two sources",
        f"{overlap_counts(found)}; for example " + "; ".join(_examples(found, places)),
        "Remove one of each, or put items with one source into one group (data.group_key); "
        "data.allow_overlap: true lets them stand and says so in the report",
    )


def overlap_counts(found: Iterable[Overlap]) -> str:
    """Return how many contents and groups overlap, between which splits, in words."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for one in found:
        for (first, _), (second, _) in combinations(one.items, 2):
            where = f"twice in {first}" if first == second else f"in both {first} and {second}"
            counts[one.kind, where] += 1
    return ", ".join(
        f"{n} {kind}{'' if n == 1 else 's'} {where}"
        for (kind, where), n in sorted(counts.items())
    )


def _examples(found: list[Overlap], places: Mapping[str, str]) -> list[str]:
    return [
        f"same {one.kind}: "
        + " and ".join(f"{id!r} ({split}; {places[id]})" for split, id in one.items)
        for one in found[:_EXAMPLES]
    ]

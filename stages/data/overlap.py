"""What must not stand in two splits, and what a person should look at.

Splits must differ by content (normalised, so that capitals and punctuation hide nothing) and by
group. An overlap is refused unless `data.allow_overlap` is true, and is then recorded with the
splits. Everything that is merely suspicious is a warning.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from stages.core.errors import DataError
from stages.core.item import SPLITS
from stages.data.load import Loaded

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
    """One content or group that stands in more than one split.

    Attributes:
        kind: `content` or `group`.
        items: id by split, one item of each split it stands in.
    """

    kind: str
    items: Mapping[str, str]

    def to_json(self) -> dict[str, object]:
        return {"kind": self.kind, "items": dict(self.items)}


@dataclass(frozen=True)
class DataWarning:
    """Something a person should look at; `kind` is a fixed word, `message` a sentence."""

    kind: str
    message: str

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "message": self.message}


def overlaps(loaded: Iterable[Loaded], splits: Mapping[str, str]) -> list[Overlap]:
    """Return every content and group that stands in more than one split, in a fixed order.

    Args:
        splits: item id -> split name.
    """
    by_key: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for one in sorted(loaded, key=lambda one: one.item.id):
        split = splits[one.item.id]
        by_key["content", normalised(one.content)].setdefault(split, one.item.id)
        if one.item.group is not None:
            by_key["group", one.item.group].setdefault(split, one.item.id)
    return [
        Overlap(kind, {split: ids[split] for split in SPLITS if split in ids})
        for (kind, _), ids in by_key.items()
        if len(ids) > 1
    ]


def refuse_overlaps(found: list[Overlap], loaded: Iterable[Loaded]) -> None:
    """Raise `DataError` when anything stands in two splits, with counts and examples."""
    if not found:
        return
    places = {one.item.id: f"{one.where.file}, line {one.where.line}" for one in loaded}
    raise DataError(
        "The splits must share no content and no group",
        f"{overlap_counts(found)}; for example " + "; ".join(_examples(found, places)),
        "Remove one of each, or put items with one source into one group (data.group_key); "
        "data.allow_overlap: true lets them stand and says so in the report",
    )


def overlap_counts(found: Iterable[Overlap]) -> str:
    """Return how many contents and groups overlap, between which splits, in words."""
    counts: dict[tuple[str, str, str], int] = defaultdict(int)
    for one in found:
        for first, second in combinations(one.items, 2):
            counts[one.kind, first, second] += 1
    return ", ".join(
        f"{n} {kind}{'' if n == 1 else 's'} in both {first} and {second}"
        for (kind, first, second), n in sorted(counts.items())
    )


def _examples(found: list[Overlap], places: Mapping[str, str]) -> list[str]:
    return [
        f"same {one.kind}: "
        + " and ".join(f"{id!r} ({split}; {places[id]})" for split, id in one.items.items())
        for one in found[:_EXAMPLES]
    ]


# Warnings


def warnings_for(loaded: list[Loaded], group_key: str | None = None) -> list[DataWarning]:
    """Return what a person should look at, whatever the splits; the same for any file order."""
    ordered = sorted(loaded, key=lambda one: one.item.id)
    found = [_ids_alike(ordered), _repeated_content(ordered)]
    if not group_key:
        found += _group_candidates(ordered)
    return [warning for warning in found if warning is not None]


def _ids_alike(loaded: list[Loaded]) -> DataWarning | None:
    alike: dict[str, list[str]] = defaultdict(list)
    for one in loaded:
        alike[unicodedata.normalize("NFKC", one.item.id).casefold()].append(one.item.id)
    sets = [ids for ids in alike.values() if len(ids) > 1]
    if not sets:
        return None
    return DataWarning(
        "ids_alike",
        f"{len(sets)} sets of ids differ only in capitals or Unicode form, such as "
        f"{' and '.join(repr(id) for id in sets[0])}; they count as different items",
    )


def _repeated_content(loaded: list[Loaded]) -> DataWarning | None:
    same: dict[str, list[str]] = defaultdict(list)
    for one in loaded:
        same[normalised(one.content)].append(one.item.id)
    sets = [ids for ids in same.values() if len(ids) > 1]
    if not sets:
        return None
    return DataWarning(
        "repeated_content",
        f"{len(sets)} contents stand in more than one item, such as "
        f"{' and '.join(repr(id) for id in sets[0][:_EXAMPLES])}; they weigh double",
    )


_SOURCE_WORDS = frozenset(
    ("article", "book", "case", "context", "doc", "document", "file", "game", "gamefile")
    + ("group", "image", "paragraph", "passage", "patient", "repo", "repository", "scene")
    + ("source", "story", "table", "template", "title", "url")
)
_NOT_SOURCES = frozenset(("split", "type", "no", "number", "page", "count"))


def _group_candidates(loaded: list[Loaded]) -> list[DataWarning]:
    """Return a warning per field that looks like a source and ties items of several groups.

    In ready-made splits only values that stand in more than one split count.
    """
    found = []
    for name in sorted({name for one in loaded for name in one.record}):
        if not _names_a_source(name):
            continue
        tied: dict[str, list[Loaded]] = defaultdict(list)
        for one in loaded:
            value = one.record.get(name)
            if isinstance(value, (str, int)) and str(value).strip():
                tied[str(value)].append(one)
        torn = [ones for ones in tied.values() if _may_part(ones)]
        if torn:
            found.append(
                DataWarning(
                    "group_candidate",
                    f"field {name!r} repeats: {len(torn)} of its values stand in "
                    f"{sum(map(len, torn))} items that are not held in one split; if it names "
                    f"a source that items share, set data.group_key: {name}",
                )
            )
    return found


def _may_part(ones: list[Loaded]) -> bool:
    splits = {one.split for one in ones}
    return len({one.source for one in ones}) > 1 and (len(splits) > 1 or "" in splits)


def _names_a_source(field: str) -> bool:
    words = set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", field).lower()))
    singular = words | {word.removesuffix("s") for word in words}
    return bool(singular & _SOURCE_WORDS) and not words & _NOT_SOURCES

"""Records that say their own split in a field: honoured as a whole, or refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skilltrail.core.errors import DataError
from skilltrail.core.item import SPLITS
from skilltrail.data.find import NAMES
from skilltrail.data.record import Record

FIELD = "split"
OTHERS = ("data_split", "dataset_split", "subset", "partition", "fold", "set")
SPLIT_OF = {name: split for split, names in NAMES.items() for name in names}


def split_field(records: Sequence[Record]) -> Callable[[Record], str] | None:
    """Return what reads a record's own split, or None where no field says one.

    The field `split` is meant; others of such a name count where they name all three splits.

    Raises:
        DataError: a field `split` names no split, or leaves one of the three without items.
    """
    for name in (FIELD, *OTHERS):
        words = Counter(said(record.data, name) for record in records)
        if name == FIELD and set(words) != {""} and not _is_whole(words):
            raise _refusal(records, words)
        if _is_whole(words):
            return _reader(name)
    return None


def _reader(name: str) -> Callable[[Record], str]:
    return lambda record: SPLIT_OF[said(record.data, name)]


def said(record: Mapping[str, Any], name: str) -> str:
    """Return the word that a field of a record holds, in lower case; "" where it is absent."""
    value = record.get(name)
    return "" if value is None else str(value).strip().casefold()


def _is_whole(words: Counter[str]) -> bool:
    return {SPLIT_OF.get(word) for word in words} == set(SPLITS)


def _refusal(records: Sequence[Record], words: Counter[str]) -> DataError:
    counts = sorted(words.items())[:6]
    told = ", ".join(f"{n} {word!r}" if word else f"{n} nothing" for word, n in counts)
    known = "; ".join(f"{split}: {', '.join(NAMES[split])}" for split in SPLITS)
    return DataError(
        f"{records[0].where.file}: the field {FIELD!r} says a split, and not all three",
        told,
        f"Give each record one of the three ({known}), or one file per split in "
        "data.split_dir; rename the field for data.ratio to put the items into splits",
    )

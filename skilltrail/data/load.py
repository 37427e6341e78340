"""From records to items: names of fields, ids, groups, no id twice, and items worth asking.

An id is a string from here on, so 1 and "1" are the same item and a duplicate; where no record
of a file has one, ids are made from what the agent sees. The group that must not be torn apart
is what `data.group_key` names, or else what the environment says, or else the record's own
`group`. Items that break the contract (`envs.contract.items`) are set apart and told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.errors import DataError, ParamError
from skilltrail.core.item import FEEDBACK, Item
from skilltrail.data.feedback import feedback_file, with_feedback, with_words
from skilltrail.data.find import DataSource, shown
from skilltrail.data.read import read_records
from skilltrail.data.record import Record
from skilltrail.data.split_field import split_field
from skilltrail.envs.contract.items import item_fault
from skilltrail.envs.kit.fields import declares_empty
from skilltrail.envs.protocol import BrokenItem, Environment, ScoredBy, Where

_GROUP_CHARS = 200  # longer group values (whole contexts) are named by their digest
# fields of any environment
_COMMON = ("group", "split", "empty_is_right", "is_impossible", FEEDBACK)
_SHOWN = 5  # items set apart that a message names; the count is always whole


@dataclass(frozen=True)
class Loaded:
    """An item with where it came from.

    Attributes:
        split: the ready-made split it stands in; "" when it is still to be assigned.
        content: what must differ between splits, as the environment says.
    """

    item: Item
    record: Mapping[str, Any]
    where: Where
    split: str
    content: str

    @property
    def source(self) -> tuple[str, str]:
        """What stays together: the group, or the item alone. Tagged, so they never mix."""
        group = self.item.group
        return ("id", self.item.id) if group is None else ("group", group)


@dataclass(frozen=True)
class SetApart:
    """An item that is not asked: nobody can pass it, or everybody does."""

    id: str
    where: Where
    why: str

    def __str__(self) -> str:
        return f"{self.id!r} ({self.file}, line {self.where.line}): {self.why}"

    @property
    def file(self) -> str:
        return self.where.file.rpartition("/")[2]

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "file": self.file, "line": self.where.line, "why": self.why}


@dataclass
class SourceRead:
    """What the files of a source hold.

    Attributes:
        unchecked: how many items' contract could not be checked, by what their score needs.
        assigned: whether each item stands in a split already.
    """

    items: list[Loaded] = field(default_factory=list)
    apart: list[SetApart] = field(default_factory=list)
    unchecked: Counter[ScoredBy] = field(default_factory=Counter)
    assigned: bool = False

    def told_apart(self) -> str:
        """Return how many items are set apart, and why, for people."""
        more = len(self.apart) - _SHOWN
        return (
            f"{len(self.apart)} of {len(self.apart) + len(self.items)} items are set apart, "
            "since their answers cannot be told right from wrong: "
            + "; ".join(map(str, self.apart[:_SHOWN]))
            + (f"; and {more} more" if more > 0 else "")
        )


def read_items(
    source: DataSource, environment: Environment, root: Path, group_key: str | None = None
) -> SourceRead:
    """Return the items of every file of `source`, in file order.

    Raises:
        DataError: a record is not an item (names file, line and field), an id stands twice in
            any files (names both places), or no item is left that can be scored.
        ParamError: no record at all has the field `group_key`.
    """
    ids = environment.id_fields
    known = {_bare(name): name for name in (*environment.fields, *ids, *_COMMON)}
    found = SourceRead(assigned=source.ready_made)
    for split, raw in _raw(source, environment, root):
        records = [_named(one, known) for one in raw]
        column = None if source.ready_made else split_field(records)
        found.assigned |= column is not None
        has_ids = any(name in one.data for one in records for name in ids)
        for record in records:
            own = split if column is None else column(record)
            _load(found, record if has_ids else _with_id(record, environment), own, environment)
    if not found.items:
        remedy = "Fix the records, or declare `empty_is_right: true` where that is so"
        raise DataError("No item is left", found.told_apart(), remedy)
    if group_key:
        _group_by(group_key, found.items)
    words = feedback_file(source, {one.item.id for one in found.items})
    refuse_repeated_ids(found.items)
    found.items = [
        replace(one, item=with_words(one.item, words[one.item.id]))
        if one.item.id in words
        else one
        for one in found.items
    ]
    return found


def _raw(
    source: DataSource, environment: Environment, root: Path
) -> Iterator[tuple[str, Iterable[Record]]]:
    """Yield the records of each split, or of all items under ""."""
    for split, path in source.files.items():
        yield split, read_records(path, shown(root, path))
    if not source.files:
        own = environment.records(root) or ()
        yield "", [Record(data, where) for data, where in own]


def _named(record: Record, known: Mapping[str, str]) -> Record:
    """Return a record with its fields as the environment spells them: `Question`, `doc id`."""
    data = {}
    for key, value in record.data.items():
        name = known.get(_bare(key), key)
        # A field that stands there as it should is not overwritten by one that looks like it.
        data[key if name in record.data else name] = value
    return Record(data, record.where)


def _bare(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _with_id(record: Record, environment: Environment) -> Record:
    """Return a record with an id made from what the agent sees, so that gold may change."""
    name = environment.id_fields[0]
    try:
        item = environment.parse({**record.data, name: "?"}, record.where)
        id = f"content:{text_digest(environment.content(item))[:16]}"
    except BrokenItem:  # told when it is read
        id = f"line:{record.where.line}"
    return Record({**record.data, name: id}, record.where)


def _load(found: SourceRead, record: Record, split: str, environment: Environment) -> None:
    data, where = dict(record.data), record.where
    name = next((n for n in environment.id_fields if data.get(n) is not None), "id")
    if isinstance(data.get("id"), int) and not isinstance(data["id"], bool):
        data["id"] = str(data["id"])
    try:
        item = environment.parse(data, where)
        if not isinstance(item.id, str) or not item.id.strip():
            raise where.error("id", f"{item.id!r}", "Give the item an id of its own")
        known = environment.known_answers(item)
    except BrokenItem as error:
        found.apart.append(SetApart(str(data.get(name)), where, error.found))
        return
    group = _group(data.get("group"), "group", where) if item.group is None else item.group
    item = with_feedback(replace(item, group=group, place=str(where)), data, where)
    fault = item_fault(environment, item, known, empty_is_right=declares_empty(data))
    if fault is not None:
        found.apart.append(SetApart(item.id, where, fault))
        return
    if known.unchecked is not None:
        found.unchecked[known.unchecked] += 1
    found.items.append(Loaded(item, data, where, split, environment.content(item)))


def _group_by(key: str, loaded: list[Loaded]) -> None:
    """Give each item the group that a field of its record names."""
    if not any(key in one.record for one in loaded):
        fields = sorted({name for one in loaded for name in one.record})
        raise ParamError(
            f"data.group_key: {key}",
            f"no record has that field; there are {', '.join(fields)}",
            "Name one of these fields, or leave data.group_key empty",
        )
    for at, one in enumerate(loaded):
        group = _group(one.record.get(key), key, one.where)
        loaded[at] = replace(one, item=replace(one.item, group=group))


def _group(value: Any, key: str, where: Where) -> str | None:
    """Return the group a field's value names; null or blank text is no group."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise where.error(
            key,
            f"{type(value).__name__} where a group should be named",
            "Let data.group_key name a field that holds text or whole numbers",
        )
    text = str(value)
    return text if len(text) <= _GROUP_CHARS else f"sha256:{text_digest(text)}"


def refuse_repeated_ids(loaded: Iterable[Loaded]) -> None:
    """Raise `DataError` naming both places when an id stands twice."""
    first: dict[str, Loaded] = {}
    for one in loaded:
        other = first.setdefault(one.item.id, one)
        if other is not one:
            raise DataError(
                f"Id {one.item.id!r} stands twice",
                f"{other.where} and {one.where}",
                "Ids are compared as text (1 is '1'); give each item its own, or remove one",
            )

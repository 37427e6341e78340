"""From records to items: ids as strings, groups, and no id twice.

An id is a string from here on, so 1 and "1" are the same item and a duplicate. The group that
must not be torn apart is what `data.group_key` names, or else what the environment says, or
else the record's own `group`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.errors import DataError, ParamError
from skilltrail.core.item import Item
from skilltrail.data.find import Source, shown
from skilltrail.data.read import read_records
from skilltrail.data.record import Record
from skilltrail.envs.protocol import Environment, Where

_GROUP_CHARS = 200  # longer group values (whole contexts) are named by their digest


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

    @property
    def place(self) -> str:
        """Return the item's id and place, for messages."""
        split = f"{self.split}, " if self.split else ""
        return f"{self.item.id!r} ({split}{self.where.file}, line {self.where.line})"


def load_items(
    source: Source, environment: Environment, root: Path, group_key: str | None = None
) -> list[Loaded]:
    """Return the items of every file of `source`, in file order.

    Raises:
        DataError: a record is not an item (names file, line and field), or an id stands twice
            in any files (names both places).
        ParamError: no record at all has the field `group_key`.
    """
    loaded: list[Loaded] = []
    for split, path in source.files.items():
        for record in read_records(path, shown(root, path)):
            loaded.append(_load(record, split, environment, group_key))
    if group_key and not any(group_key in one.record for one in loaded):
        fields = sorted({key for one in loaded for key in one.record})
        raise ParamError(
            f"data.group_key: {group_key}",
            f"no record has that field; there are {', '.join(fields)}",
            "Name one of these fields, or leave data.group_key empty",
        )
    refuse_repeated_ids(loaded)
    return loaded


def _load(record: Record, split: str, environment: Environment, key: str | None) -> Loaded:
    data = dict(record.data)
    id = data.get("id")
    if isinstance(id, int) and not isinstance(id, bool):
        data["id"] = str(id)
    item = environment.parse(data, record.where)
    if not isinstance(item.id, str) or not item.id.strip():
        raise record.where.error("id", f"{item.id!r}", "Give the item an id of its own")
    if key:
        item = replace(item, group=_group(data.get(key), key, record.where))
    elif item.group is None:
        item = replace(item, group=_group(data.get("group"), "group", record.where))
    return Loaded(item, data, record.where, split, environment.content(item))


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
                f"{other.where.file}, line {other.where.line} and "
                f"{one.where.file}, line {one.where.line}",
                "Ids are compared as text (1 is '1'); give each item its own, or remove one",
            )

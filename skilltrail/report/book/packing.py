"""Events packed for the page: long texts by number, items by number, edits as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skilltrail.history.log.events import Event
from skilltrail.report.book.strings import Strings

SHORT_CHARS = 20
DIGEST_CHARS = 12
# Fields that no view shows.
UNSHOWN = ("counts", "shown", "order", "min_coverage", "min_items", "prefer_shorter")
# Fields that hold lists of item ids.
ITEM_LISTS = ("items", "won", "lost")
EDIT_COLUMNS = (
    "edit", "op", "target", "content", "section", "inline", "kind", "reason", "items",
    "parents",
)  # fmt: skip
_SAID = (*EDIT_COLUMNS[1:-1], "file")
_HEX = frozenset("0123456789abcdef")


class Items:
    """Item ids by number, in the order they were met."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, id: str) -> int:
        found = self._numbers.get(id)
        if found is None:
            found = self._numbers[id] = len(self.ids)
            self.ids.append(id)
        return found


class Packer:
    """Packs events; `strings` and `items` take what they refer to."""

    def __init__(self, strings: Strings, items: Items) -> None:
        self.strings, self.items = strings, items
        self._edits: dict[str, Mapping[str, Any]] = {}

    def event(self, event: Event) -> list[Any]:
        """Return `[seq, type, data]`."""
        return [event.seq, event.type, self.data(event.data)]

    def data(self, data: Mapping[str, Any]) -> dict[str, Any]:
        packed: dict[str, Any] = {}
        for name, value in data.items():
            if name == "edits" and value and isinstance(value[0], Mapping):
                packed[name] = [self._edit(edit) for edit in value]
            elif name in UNSHOWN or (name in ("sources", "text") and "diff" in data):
                continue  # of a candidate, the versions and the edits say the same in less room
            elif name in ITEM_LISTS and _strings(value):
                packed[name] = [self.items.number(id) for id in value]
            elif name == "failure_types":
                packed[name] = self._by_type(value)
            elif name == "pairs":
                packed[name] = [self._pair(pair) for pair in value]
            else:
                packed[name] = self._value(value)
        return packed

    def _by_type(self, types: Mapping[str, str]) -> list[Any]:
        """Return `[type, items]` for each failure type, in the order they were met."""
        groups: dict[str, list[int]] = {}
        for id, name in types.items():
            groups.setdefault(name, []).append(self.items.number(id))
        return [list(group) for group in groups.items()]

    def _edit(self, edit: Mapping[str, Any]) -> list[Any]:
        """Return an edit as a row; one that repeats its only parent as `[edit, parents]`."""
        self._edits[edit["edit"]] = edit
        if len(edit["parents"]) == 1:
            parent = self._edits.get(edit["parents"][0])
            if parent is not None and all(parent.get(n) == edit.get(n) for n in _SAID):
                return [edit["edit"], list(edit["parents"])]
        row = [edit[name] for name in EDIT_COLUMNS]
        for place in (2, 3, 7):
            row[place] = self._value(row[place])
        row[8] = [self.items.number(id) for id in row[8]]
        return [*row, self._value(edit["file"])] if "file" in edit else row

    def _pair(self, pair: Mapping[str, Any]) -> list[Any]:
        return [
            self.items.number(pair["item"]),
            pair["before"],
            pair["after"],
            pair["category"],
        ]

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return self.data(value)
        if isinstance(value, (list, tuple)):
            return [self._value(item) for item in value]
        return value

    def _text(self, text: str) -> Any:
        if len(text) == 64 and _HEX.issuperset(text):
            return text[:DIGEST_CHARS]
        return text if len(text) <= SHORT_CHARS else {"$": self.strings.add(text)}


def _strings(value: Any) -> bool:
    return isinstance(value, Sequence) and all(isinstance(one, str) for one in value)

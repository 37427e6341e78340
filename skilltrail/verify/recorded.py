"""Recorded facts, read only: those of the store and those of the exports.

No file is made or touched, so an auditor's read-only copy will do. The store is asked first, as
a rerun would; where both have a fact, the rule on exports compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from skilltrail.core.canon import loaded
from skilltrail.models.errors import UnseenRequest
from skilltrail.store.exports import fact_of, shard_files
from skilltrail.store.protocol import Fact, Made, Make
from skilltrail.store.reader import open_reading
from skilltrail.verify.result import Fault, Level

_CHUNK = 500  # facts read at a time


class RecordedFacts:
    """A `Store` that is only read: what is not recorded is refused.

    Attributes:
        exported: the facts of the exports, by key.
        damaged: lines of the exports that are not what was written.
        lacks: True once a fact was wanted that is nowhere.
    """

    def __init__(self, root: Path, exports: Iterable[Path]) -> None:
        """Open the store of the project at `root`, where there is one, and read the exports.

        Raises:
            SkilltrailError: the store cannot be read.
        """
        self.exported: dict[str, Fact] = {}
        self.damaged: list[Fault] = []
        self.lacks = False
        self._closing = ExitStack()
        self._store = self._closing.enter_context(open_reading(root))
        for path in (path for folder in exports for path in shard_files(folder)):
            self._read(path)

    @property
    def empty(self) -> bool:
        """True where neither a store nor an export is at hand."""
        return self._store is None and not self.exported and not self.damaged

    def stored(self, key: str) -> Fact | None:
        """Return what the store has under `key`.

        Raises:
            FaultError: the value or the database is damaged.
        """
        return None if self._store is None else next(self._store.facts([key]), None)

    def get(self, key: str) -> dict[str, Any] | None:
        value = None if self._store is None else self._store.get(key)
        if value is None and key in self.exported:
            value = loaded(self.exported[key].text)
        return value

    def get_many(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        return {key: value for key in keys if (value := self.get(key)) is not None}

    def has_many(self, keys: Iterable[str]) -> set[str]:
        found, asked = set(), []
        for key in keys:
            if key in self.exported:
                found.add(key)
            else:
                asked.append(key)
        return found | (self._store.has_many(asked) if self._store is not None else set())

    def both(self) -> Iterator[tuple[Fact, Fact | None]]:
        """Yield each exported fact, and what the store has under its key."""
        exported = iter(self.exported.values())
        while chunk := list(islice(exported, _CHUNK)):
            stored = () if self._store is None else self._store.facts(f.key for f in chunk)
            here = {fact.key: fact for fact in stored}
            yield from ((fact, here.get(fact.key)) for fact in chunk)

    async def put(self, kind: str, key: str, value: Mapping[str, Any]) -> dict[str, Any]:
        raise UnseenRequest("verify", "nothing new is recorded", "Run `dvc repro`")

    async def get_or_make(self, kind: str, key: str, make: Make) -> Made:
        value = self.get(key)
        if value is None:
            self.lacks = True
            raise UnseenRequest("verify", f"call {key[:12]} is not recorded", "Run `dvc repro`")
        return Made(value, reused=True)

    def sizes(self, keys: Iterable[str]) -> dict[str, int]:
        return {fact.key: len(fact.text.encode()) for fact in self.facts(keys)}

    def facts(self, keys: Iterable[str]) -> Iterator[Fact]:
        for key in keys:
            fact = self.stored(key) or self.exported.get(key)
            if fact is not None:
                yield fact

    def close(self) -> None:
        self._closing.close()

    def _read(self, path: Path) -> None:
        for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
            where = f"{path.parent.name}/{path.name}, line {number}"
            try:
                fact = fact_of(line + b"\n")
            except (ValueError, TypeError, RecursionError) as error:
                self._fault(where, "line", str(error), "what its digest says")
                continue
            known = self.exported.setdefault(fact.key, fact)
            if known.text != fact.text:
                self._fault(where, "value", fact.text, known.text)

    def _fault(self, where: str, what: str, found: str, right: str) -> None:
        self.damaged.append(Fault(None, where, what, found, right, Level.FACTS))

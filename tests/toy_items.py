"""A question-answering environment small enough to read, and ways to lay out its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.envs.protocol import Environment, Where
from skilltrail.models.protocol import Model


@dataclass(frozen=True)
class ToyParams:
    pass


@dataclass
class Toy(Environment):
    """Items are `{id, q, a}`; a reply is right when it equals `a`."""

    name: ClassVar[str] = "toy"
    version: ClassVar[str] = "toy/1"
    Params: ClassVar[type] = ToyParams
    params: Any = None

    def parse(self, record: Mapping[str, Any], where: Where) -> Item:
        for field in ("id", "q"):
            if field not in record:
                raise where.error(field, "missing", f"Give the record a {field!r}")
        return Item(record["id"], {"q": record["q"]}, record.get("a"))

    def content(self, item: Item) -> str:
        return str(item.input["q"])

    async def rollout(self, item: Item, skill: str, target: Model) -> Trajectory:
        return Trajectory((), str(item.gold))

    def score(self, item: Item, trajectory: Trajectory) -> Score:
        return Score.scored(float(trajectory.answer == item.gold))

    def reference(self, item: Item) -> str | None:
        return str(item.gold)


def toy_records(n: int, first: int = 1) -> list[dict[str, Any]]:
    """Return `n` records with ids `i<first>` and up, each with its own question."""
    return [
        {"id": f"i{k}", "q": f"What is {k} and {k}?", "a": str(k)}
        for k in range(first, first + n)
    ]


def write_jsonl(path: Path, records: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    path.write_bytes("".join(lines).encode())
    return path

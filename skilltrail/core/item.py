"""An item: one task of a benchmark, with what the agent may see apart from the answer.

`input` goes into prompts and fact keys; `gold` never does. So a corrected answer costs no call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skilltrail.core.canon import digest
from skilltrail.core.targets import case_name

FEEDBACK = "feedback"  # in `extra`: what a person says of the item, for analysts alone
SPLITS = ("train", "selection", "test")


@dataclass(frozen=True)
class Item:
    """One task.

    Attributes:
        id: unique within the data set; always a string, stored as data, never used as a path.
        input: all that the agent may see (JSON values); files are named by their SHA-256.
        gold: what the scorer compares with (JSON value).
        group: items that share a source share a group and stay in one split; None = alone.
        task_type: a label that scores are reported by; None = none.
        place: the file and line it was read from, for messages; no part of the item.
        target: which of several targets does it, None where there is one; no part of it either.
    """

    id: str
    input: Mapping[str, Any]
    gold: Any = None
    group: str | None = None
    task_type: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    place: str = field(default="", compare=False)
    target: str | None = field(default=None, compare=False)

    @property
    def case(self) -> str:
        """Name of the item on its target."""
        return case_name(self.id, self.target)

    @property
    def input_digest(self) -> str:
        """Digest of what the agent sees; part of rollout keys."""
        return digest("item-input/1", dict(self.input))

    @property
    def content_digest(self) -> str:
        """Digest of the whole item; what `run.started` records beside the id."""
        return digest("item/1", self.to_json())

    def to_json(self) -> dict[str, Any]:
        told = {"group": self.group, "task_type": self.task_type, "extra": dict(self.extra)}
        more = {name: value for name, value in told.items() if value not in (None, {})}
        return {"id": self.id, "input": dict(self.input), "gold": self.gold} | more

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Item:
        more = {n: data[n] for n in ("gold", "group", "task_type", "extra") if n in data}
        return Item(data["id"], data["input"], **more)

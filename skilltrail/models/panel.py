"""Several frozen models behind the door of one, see `skilltrail.core.targets`.

Nothing is asked of the panel itself: who rolls out an item takes the member that it names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skilltrail.core.targets import Target
from skilltrail.models.protocol import Model, Reply, Request

STYLE = "several"


class Panel:
    """The targets of a run with several; `members` are in the order of `targets`."""

    style = STYLE
    abilities: frozenset[str] = frozenset()

    def __init__(self, targets: Sequence[Target], members: Mapping[str, Model]) -> None:
        self.targets = tuple(targets)
        self.members = {target.name: members[target.name] for target in targets}
        self.identity: Mapping[str, Any] = {
            "targets": {
                target.name: {
                    "model": dict(self.members[target.name].identity),
                    "weight": float(target.weight),
                    "floor": float(target.floor),
                }
                for target in targets
            }
        }

    @property
    def workers(self) -> int:
        return sum(member.workers for member in self.members.values())

    async def complete(self, request: Request) -> Reply:
        raise TypeError("a panel answers nothing: ask one of its members")

    async def close(self) -> None:
        for member in self.members.values():
            await member.close()


def models_in(identity: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the identity of each member that a panel's identity names, by name."""
    return {name: one["model"] for name, one in identity.get("targets", {}).items()}


def members_of(model: Model) -> Mapping[str, Model]:
    """Return the members of a panel by name; none of any other model."""
    return model.members if isinstance(model, Panel) else {}


def member_of(model: Model, name: str | None) -> Model:
    """Return the member of that name; the model itself where an item names none."""
    return model if name is None else members_of(model)[name]

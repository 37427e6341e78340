"""A patch: the edits one analyst proposes from the trajectories it was shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skilltrail.skill.edit import Edit


@dataclass(frozen=True)
class Patch:
    """One analyst's output.

    Attributes:
        source: `failure` or `success`.
        items: ids of the train items it was shown, in order.
        edits: proposed edits.
        reasoning: the analyst's own words.
        failure_types: item id -> type from the environment's closed list.
        shown: what of the trajectories was shown, and what was clipped.
        reply: fact key of the optimizer's reply; None for rules.
        notes: short reminders of rules that exist and were not followed (`skill_aware`).
        id: `p<event seq>` once an event carries it.
    """

    source: str
    items: tuple[str, ...]
    edits: tuple[Edit, ...]
    reasoning: str = ""
    failure_types: Mapping[str, str] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)
    reply: str | None = None
    notes: tuple[str, ...] = ()
    id: str = ""

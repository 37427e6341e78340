"""What differs: between two runs, in words; between two skills, as a diff and per item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.history.ask.sources import SkillFound
from skilltrail.history.log.events import Event
from skilltrail.history.log.words import sentence, visible
from skilltrail.skill.folder import files_diff

# How people call a field, where its own name does not say it.
NAMES = {
    "budget": "edit budget",
    "env": "environment",
    "seed_skill": "seed skill",
    "agent": "agent",
    "total_steps": "total steps",
    "items": "rollouts",
    "edits": "edits",
}


def shared_prefix(one: Sequence[Event], other: Sequence[Event]) -> int:
    """Return how many events two runs share; an id covers the whole past, so this bisects."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[middle - 1].id == other[middle - 1].id:
            low = middle
        else:
            high = middle - 1
    return low


def in_words(one: Event | None, other: Event | None) -> str:
    """Return the first difference of two runs, e.g. "edit budget 4 vs 8 at step 1"."""
    if one is None or other is None:
        longer = other if one is None else one
        if longer is None:
            return "nothing"
        return f"one run ends before {longer.name}"
    if one.type != other.type:
        return f"{sentence(one, None)} vs {sentence(other, None)}"
    step = getattr(one.said, "step", None)
    where = "" if step is None else f" at step {step}"
    parts = _fields(one.data, other.data)  # of any type: each field that differs
    return (", ".join(parts[:3]) if parts else sentence(other, None)) + where


def _fields(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    # A rule's tag differs with the schedule that it names, which says the same.
    if "schedule" in names and "rule" in names:
        names.remove("rule")
    names.sort(key=lambda name: (name not in ("budget", "schedule"), name))
    return [_field(name, one.get(name), other.get(name)) for name in names]


def _field(name: str, one: Any, other: Any) -> str:
    called = NAMES.get(name, name.replace("_", " "))
    plain = (str, int, float, bool, type(None))
    if isinstance(one, plain) and isinstance(other, plain):
        return f"{called} {_value(one)} vs {_value(other)}"
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        inner = [n for n in {**one, **other} if one.get(n) != other.get(n)]
        return f"{called} ({', '.join(inner[:3])})"
    if isinstance(one, list) and isinstance(other, list) and len(one) != len(other):
        return f"{called} ({len(one)} vs {len(other)})"
    return called


def _value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:.4g}"
    text = visible(str(value), 24)
    return text[:12] if len(text) == 24 and text.isalnum() else text


@dataclass(frozen=True)
class ItemChange:
    """One item's scores under two skills; None = not measured or missing."""

    item: str
    hard_before: float | None
    hard_after: float | None
    soft_before: float | None
    soft_after: float | None


@dataclass(frozen=True)
class SkillDiff:
    """Two skills compared: the texts, and the items that both were measured on.

    Attributes:
        same: items with equal scores.
        changed: items whose hard or soft score differs, in the order of the second skill.
    """

    before: str
    after: str
    diff: str
    items: int
    same: int
    changed: tuple[ItemChange, ...]
    mean_hard: tuple[float | None, float | None]
    mean_soft: tuple[float | None, float | None]


def skill_diff(before: SkillFound, after: SkillFound) -> SkillDiff:
    """Compare two skills by text and by the selection scores that their logs hold."""
    one, two = _scores(before), _scores(after)
    shared = [item for item in two if item in one]
    changes = [ItemChange(i, one[i][0], two[i][0], one[i][1], two[i][1]) for i in shared]
    changed = tuple(
        change for change, item in zip(changes, shared, strict=True) if one[item] != two[item]
    )
    return SkillDiff(
        before.name,
        after.name,
        files_diff(before.text, after.text),
        len(shared),
        len(shared) - len(changed),
        changed,
        (_mean([one[i][0] for i in shared]), _mean([two[i][0] for i in shared])),
        (_mean([one[i][1] for i in shared]), _mean([two[i][1] for i in shared])),
    )


Scores = tuple[float | None, float | None]


def _scores(skill: SkillFound) -> dict[str, Scores]:
    """Return (hard, soft) by item, means over repeats, as far as the skill's log holds them."""
    if skill.log is None:
        return {}
    rows = skill.log.scores(text_digest(skill.text))
    return {
        item: (_mean([row.hard for row in some]), _mean([row.soft for row in some]))
        for item, some in rows.items()
    }


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None

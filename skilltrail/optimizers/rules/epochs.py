"""What rules say at the end of an epoch: guidance, and a memory of which moves win.

Guidance is a catalogue line against what still fails, or fails anew, after an epoch. The memory
counts for each sort of change how often it was kept and how often it lost; the plan of later
steps tries the sorts that win first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from skilltrail.envs.protocol import Environment
from skilltrail.optimizers.protocol import EpochView, StepRecord
from skilltrail.skill.edit import Edit

SORTS = ("example added", "example swapped", "line added", "part removed")
_ROW = re.compile(r"^- ([a-z ]+): kept (\d+), lost (\d+)$", re.MULTILINE)


def guidance(view: EpochView, env: Environment) -> str | None:
    """Return a catalogue line against the most frequent failure of the pairs, or None.

    Lines that the document holds already are passed over; each epoch takes the next one.
    """
    failing = [
        pair.after
        for pair in view.pairs
        if pair.category in ("regressed", "persistent_failure") and pair.after is not None
    ]
    types = Counter(env.catalogue.type_of(one.score) for one in failing)
    ranked = sorted(types, key=lambda name: (-types[name], name))
    items = [one.item for one in failing]
    lines = [line for name in ranked for line in env.catalogue.lines(name, items)]
    fresh = [line for line in dict.fromkeys(lines) if line not in view.skill]
    return fresh[(view.epoch - 2) % len(fresh)] if fresh else None


def memory_text(history: Sequence[StepRecord]) -> str:
    """Return the memory: one row for each sort of change, kept and lost."""
    kept, lost = Counter[str](), Counter[str]()
    for record in history:
        sorts = {sort_of(edit) for edit in record.edits}
        (kept if record.verdict == "accepted" else lost).update(sorts)
    return "\n".join(f"- {sort}: kept {kept[sort]}, lost {lost[sort]}" for sort in SORTS)


def weights(meta_skill: str) -> dict[str, float]:
    """Return for each sort of change its share of wins, from a memory; 1/2 when unknown."""
    found = {name: (int(kept), int(lost)) for name, kept, lost in _ROW.findall(meta_skill)}
    pairs = {sort: found.get(sort, (0, 0)) for sort in SORTS}
    return {sort: (kept + 1) / (kept + lost + 2) for sort, (kept, lost) in pairs.items()}


def sort_of(edit: Edit) -> str:
    """Return the sort of one change."""
    if not edit.content:
        return "part removed"
    if edit.kind != "example":
        return "line added"
    return "example swapped" if edit.target else "example added"

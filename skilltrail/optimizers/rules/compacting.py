"""Compaction by rule: leave out the part that the fewest train items stand behind.

A part is what one accepted edit wrote and what still stands word for word in the document; its
support is the edit's. What stood in the seed skill has no support that is known, so it stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from skilltrail.optimizers.protocol import EpochView, StepRecord
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.edit import Edit, EditStatus


def shorter(view: EpochView) -> tuple[str | None, str]:
    """Return the document without one part and why, or None when there is no part.

    Where the least supported part was not to be spared, the next epoch asks about the next.
    """
    parts = _parts(view.history, view.skill)
    if not parts:
        return None, "nothing in the document was learned, so nothing is left out"
    part = parts[(view.epoch - 1) % len(parts)]
    text = apply_edits(view.skill, [Edit("delete", part.content.strip("\n"), id="0.0")]).text
    return text, f"without what {part.support} train items stand behind"


def _parts(history: Sequence[StepRecord], skill: str) -> list[Edit]:
    """Return the edits whose text can be taken out as it stands, least supported first."""
    found: dict[str, Edit] = {}
    for record in history:
        if record.verdict != "accepted":
            continue
        applied = {r.edit for r in record.results if r.status is EditStatus.APPLIED}
        for edit in record.edits:
            written = edit.op == "suggest" or edit.id in applied
            if written and edit.op != "rewrite" and _stands(edit.content, skill):
                found[edit.content.strip("\n")] = edit
    return sorted(found.values(), key=lambda edit: edit.support)


def _stands(content: str, skill: str) -> bool:
    """True when deleting the content from the skill is possible and changes nothing else."""
    text = content.strip("\n")
    if not text:
        return False
    without = apply_edits(skill, [Edit("delete", text, id="0.0")])
    return without.results[0].status is EditStatus.APPLIED

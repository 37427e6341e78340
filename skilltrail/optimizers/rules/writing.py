"""The plan of a step in the terms of the update mode, and whole documents made of it.

patch                      edits as they are
rewrite_from_suggestions   a suggestion says which text to add, put in place, or take out
full_rewrite_minibatch     one whole document with all edits applied
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skilltrail.optimizers.protocol import StepView
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.edit import Edit


def in_mode(view: StepView, edits: Sequence[Edit]) -> list[Edit]:
    """Return `edits` as what the update mode asks of an analyst."""
    if view.update_mode == "patch" or not edits:
        return list(edits)
    if view.update_mode == "rewrite_from_suggestions":
        return [as_suggestion(edit) for edit in edits]
    items = tuple(dict.fromkeys(id for edit in edits for id in edit.items))
    reason = "; ".join(dict.fromkeys(edit.reason for edit in edits))
    return [Edit("rewrite", content=written(view.skill, edits), reason=reason, items=items)]


def as_suggestion(edit: Edit) -> Edit:
    """Return an edit as a suggestion: `content` is to stand in place of `target`."""
    target = edit.target if edit.op in ("replace", "delete") else ""
    return replace(edit, op="suggest", target=target)


def as_edit(suggestion: Edit) -> Edit:
    """Return the edit that a suggestion of ours stands for."""
    if not suggestion.target:
        return replace(suggestion, op="append")
    return replace(suggestion, op="replace" if suggestion.content else "delete")


def written(skill: str, edits: Sequence[Edit]) -> str:
    """Return the document with the edits applied; what cannot be applied is left out."""
    return apply_edits(skill, [replace(edit, id="") for edit in edits]).text

"""Skill-aware reflection: short notes on rules that exist and were not followed.

Analysts tell a defect of the skill from a lapse in following it. Lapses become notes in the
protected appendix, without repetition; beyond a number of them the optimizer says the same in
fewer. The notes are part of the step's candidate and pass the gate with it. (SkillOpt writes
them after the gate, unmeasured.)
"""

from __future__ import annotations

from collections.abc import Sequence

from skilltrail.history.log import types
from skilltrail.history.log.types.parts import edits_made
from skilltrail.method.reflect import heard
from skilltrail.method.run import Run
from skilltrail.optimizers.protocol import StepView
from skilltrail.skill.document import region_text
from skilltrail.skill.edit import Edit, Patch

REGION = "appendix"


async def appendix_edit(run: Run, view: StepView, patches: Sequence[Patch]) -> Edit | None:
    """Return the recorded edit that writes the appendix, or None when no note is new."""
    settings = run.params.skill_aware
    if not settings.enabled:
        return None
    sources = ("failure",) if settings.source == "failure_only" else ("failure", "success")
    kept = notes_in(view.skill)
    said = [note for p in patches if p.source in sources for note in p.notes]
    notes = list(dict.fromkeys([*kept, *map(_one_line, said)]))
    if notes == kept:
        return None
    rule: str | None = "notes/1"
    reason, reply = f"{len(notes) - len(kept)} new notes", None
    if settings.consolidate_over and len(notes) > settings.consolidate_over:
        answer = heard(run, await run.optimizer.consolidate(view, notes), **view.where)
        if answer.value is not None:
            notes = list(answer.value)
            rule, reason, reply = answer.rule, answer.reason, answer.reply
    seq = run.history.next_seq
    edit = Edit(
        "write_region",
        target=REGION,
        content="\n".join(f"- {note}" for note in notes),
        kind="note",
        reason=reason,
        items=tuple(dict.fromkeys(id for p in patches if p.notes for id in p.items)),
        id=f"{seq}.0",
    )
    run.tell(
        types.AppendixProposed(
            **view.where,
            patch=f"p{seq}",
            edits=edits_made([edit]),
            reason=reason,
            rule=rule,
            reply=reply,
        )
    )
    return edit


def notes_in(skill: str) -> list[str]:
    """Return the notes that stand in a skill's appendix."""
    text = region_text(skill, REGION)
    if text is None:
        return []
    return [line.removeprefix("- ") for line in text.split("\n") if line.strip()]


def _one_line(note: str) -> str:
    return " ".join(note.split())

"""Aggregate: merge the patches of a step, group by group, until one patch is left.

An edit whose every line the skill says already, in other marks, case or word endings, goes no
further, whoever proposed it: it would cost an evaluation and change nothing. Worked examples
may repeat themselves.

Failures and successes are merged apart in groups of `merge_batch_size`, then together with
failures first. Each group is one `patch.merged` event; every merged edit names its parents and
the train items behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skilltrail.history.log import types
from skilltrail.history.log.types.parts import edits_made
from skilltrail.method.reflect import heard
from skilltrail.method.run import Run
from skilltrail.optimizers.protocol import StepView
from skilltrail.optimizers.screen import repetition
from skilltrail.skill.edit import Edit, Patch


async def aggregate(run: Run, view: StepView, patches: Sequence[Patch]) -> Patch | None:
    """Return the merged patch of the step, or None when nobody proposed an edit.

    The final merge always happens, so one patch alone is deduplicated too.
    """
    sides: list[Patch] = []
    level = 1
    for source in ("failure", "success"):
        side = [patch for patch in patches if patch.source == source and patch.edits]
        side_level = 1
        while len(side) > 1:
            size = run.params.merge_batch_size
            groups = [side[at : at + size] for at in range(0, len(side), size)]
            side = [await _merge(run, view, group, side_level, source) for group in groups]
            side_level += 1
        level = max(level, side_level)
        sides += side
    if not sides:
        return None
    return await _merge(run, view, sides, level, "final")


async def _merge(
    run: Run, view: StepView, patches: Sequence[Patch], level: int, group: str
) -> Patch:
    """Merge one group of patches and record it."""
    answer = heard(run, await run.optimizer.merge(view, patches), **view.where)
    seq = run.history.next_seq
    fresh, reason = without_repetition(answer.value, view.skill, answer.reason)
    edits = tuple(replace(edit, id=f"{seq}.{n}") for n, edit in enumerate(fresh))
    offered = [edit.id for patch in patches for edit in patch.edits]
    kept = {parent for edit in edits for parent in edit.parents}
    run.tell(
        types.PatchMerged(
            **view.where,
            patch=f"p{seq}",
            level=level,
            group=group,
            inputs=tuple(patch.id for patch in patches),
            edits=edits_made(edits),
            dropped=tuple(id for id in offered if id not in kept),
            reason=reason,
            rule=answer.rule,
            reply=answer.reply,
        )
    )
    items = tuple(dict.fromkeys(item for patch in patches for item in patch.items))
    return Patch(source=patches[0].source, items=items, edits=edits, id=f"p{seq}")


def without_repetition(
    edits: Sequence[Edit], skill: str, reason: str
) -> tuple[list[Edit], str]:
    """Return the edits that say something new, and the reason with what was left out."""
    said = [
        found
        for edit in edits
        if edit.kind != "example" and (found := repetition(edit, skill)) is not None
    ]
    fresh = [e for e in edits if e.kind == "example" or repetition(e, skill) is None]
    return fresh, "; ".join(part for part in (reason, *dict.fromkeys(said)) if part)

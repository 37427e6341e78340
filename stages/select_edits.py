"""Select: keep at most the step's edit budget (the learning rate) of the merged edits."""

from __future__ import annotations

from stages.core.edit import Edit
from stages.core.patch import Patch
from stages.optimizers.protocol import Answer, StepView
from stages.reflect import reject_reply
from stages.run import Run


async def select_edits(run: Run, view: StepView, merged: Patch) -> list[Edit]:
    """Return the selected edits, best first, and record what was left out and why.

    A budget that covers every edit, or none, asks nobody for a ranking.
    """
    edits, budget = merged.edits, view.budget
    if budget is None or len(edits) <= budget:
        answer = Answer(list(range(len(edits))), "the budget covers every edit", "all/1")
    elif budget == 0:
        answer = Answer([], "the budget is 0", "all/1")
    else:
        answer = await run.optimizer.rank(view, edits)
    for reply in answer.rejected:
        reject_reply(run, view, reply)
    order = answer.value
    selected = [edits[index] for index in (order if budget is None else order[:budget])]
    chosen = {edit.id for edit in selected}
    run.history.append(
        "edits.selected",
        {
            "epoch": view.epoch,
            "step": view.step,
            "patch": merged.id,
            "budget": budget,
            "selected": [edit.id for edit in selected],
            "left_out": [
                {"edit": edit.id, "reason": "beyond the edit budget"}
                for edit in edits
                if edit.id not in chosen
            ],
            "rule": answer.rule,
            "reason": answer.reason,
            "reply": answer.reply,
        },
    )
    return selected

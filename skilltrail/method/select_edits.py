"""Select: keep at most the step's edit budget (the learning rate) of the merged edits."""

from __future__ import annotations

from dataclasses import replace

from skilltrail.history.log import types
from skilltrail.history.log.types.parts import LeftOut
from skilltrail.method.reflect import heard
from skilltrail.method.run import Run
from skilltrail.optimizers.protocol import Answer, StepView
from skilltrail.skill.edit import Edit, Patch

SCHEDULED = "scheduled/1"  # nobody chose: the schedule's budget, or none where it has none


async def select_edits(run: Run, view: StepView, merged: Patch) -> list[Edit]:
    """Return the selected edits, best first, and record what was left out and why.

    A budget that covers every edit, or none, asks nobody for a ranking.
    """
    whole = view.update_mode == "full_rewrite_minibatch"
    if run.params.lr_schedule == "autonomous" and not whole:
        view = await choose_budget(run, view, merged)
    edits, budget = merged.edits, view.budget
    if budget is None or len(edits) <= budget:
        answer = Answer(list(range(len(edits))), "the budget covers every edit", "all/1")
    elif budget == 0:
        answer = Answer([], "the budget is 0", "all/1")
    else:
        answer = heard(run, await run.optimizer.rank(view, edits), **view.where)
    order = answer.value
    selected = [edits[index] for index in (order if budget is None else order[:budget])]
    chosen = {edit.id for edit in selected}
    run.tell(
        types.EditsSelected(
            **view.where,
            patch=merged.id,
            budget=budget,
            selected=tuple(edit.id for edit in selected),
            left_out=tuple(
                LeftOut(edit=edit.id, reason="beyond the edit budget")
                for edit in edits
                if edit.id not in chosen
            ),
            rule=answer.rule,
            reason=answer.reason,
            reply=answer.reply,
        )
    )
    return selected


async def choose_budget(run: Run, view: StepView, merged: Patch) -> StepView:
    """Let the optimizer choose how many merged edits to apply; return the view that says so.

    An answer that cannot be used leaves the scheduled budget, or no edit where there is none
    (`lr_bound: none`), and the event says so.
    """
    answer = heard(run, await run.optimizer.choose_budget(view, merged.edits), **view.where)
    bound = len(merged.edits) if view.budget is None else view.budget
    most = min(bound, len(merged.edits))
    otherwise = 0 if view.budget is None else most
    budget = otherwise if answer.value is None else min(answer.value, most)
    scheduled = answer.value is None or answer.rule == SCHEDULED
    run.tell(
        types.BudgetDecided(
            **view.where,
            budget=budget,
            schedule="autonomous",
            rule=SCHEDULED if scheduled else "autonomous/1",
            offered=len(merged.edits),
            reason=answer.reason,
            reply=answer.reply,
        )
    )
    return replace(view, budget=budget)

"""Reflect: the optimizer looks at train rollouts and proposes patches (the "gradient").

One `patch.proposed` event per analyst, in minibatch order, never in order of arrival.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import convert

from skilltrail.history.log import types
from skilltrail.method.run import Run
from skilltrail.optimizers.protocol import Answer, StepView
from skilltrail.skill.edit import Patch


async def reflect(run: Run, view: StepView) -> list[Patch]:
    """Return the recorded patches of this step; edits and patches carry their ids."""
    answer = heard(run, await run.optimizer.reflect(view), **view.where)
    return [record_patch(run, patch, **view.where) for patch in answer.value]


def record_patch(run: Run, patch: Patch, **where: int) -> Patch:
    """Record a patch and return it with ids; `where` is epoch and step."""
    # Ids name the event that carries them: unique in a run, and readable in a diff.
    seq = run.history.next_seq
    edits = tuple(replace(edit, id=f"{seq}.{index}") for index, edit in enumerate(patch.edits))
    patch = replace(patch, id=f"p{seq}", edits=edits)
    run.tell(
        convert(
            {
                **where,
                "patch": patch.id,
                "source": patch.source,
                "items": patch.items,
                "shown": dict(patch.shown),
                "edits": [edit.to_json() for edit in patch.edits],
                "reasoning": patch.reasoning,
                "failure_types": dict(patch.failure_types),
                "rule": None if patch.reply is not None else run.optimizer.tag,
                "reply": patch.reply,
            },
            types.PatchProposed,
        )
    )
    return patch


def heard(run: Run, answer: Answer, **where: int) -> Answer:
    """Record an answer's replies that could not be used; `where` is epoch and step."""
    for rejected in answer.rejected:
        run.tell(
            types.ReplyRejected(
                **where,
                stage=rejected.stage,
                reply=rejected.reply,
                message=rejected.message,
                then=rejected.then,
            )
        )
    return answer

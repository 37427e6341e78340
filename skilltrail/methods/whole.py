"""Whole documents that a model writes: the question, the patch, the candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skilltrail.method.reflect import reject_reply
from skilltrail.method.run import Run, State, view_of
from skilltrail.method.schedule import Step
from skilltrail.methods.steps import Tried, build
from skilltrail.optimizers.protocol import Answer, Brief, Observation
from skilltrail.skill.edit import Edit, Patch


async def question(
    run: Run,
    state: State,
    step: Step,
    text: str,
    brief: Brief,
    seen: Sequence[Observation] = (),
) -> Answer:
    """Put a question about the document `text`; nothing is recorded yet."""
    view = replace(view_of(run, state, step, None, tuple(seen)), skill=text)
    return await run.optimizer.compose(view, brief)


def heard(run: Run, step: Step, answer: Answer) -> Answer:
    """Record what of an answer had to be thrown away."""
    for rejected in answer.rejected:
        reject_reply(run, rejected, epoch=step.epoch, step=step.step)
    return answer


async def whole(
    run: Run,
    state: State,
    step: Step,
    parent: str,
    answer: Answer,
    seen: Sequence[Observation] = (),
) -> Tried:
    """Record the written document and the candidate that it makes of `parent`."""
    ids = tuple(one.item.id for one in seen)
    edit = Edit("rewrite", content=answer.value, reason=answer.reason, items=ids)
    failed = any(one.score.hard != 1 for one in seen)
    source = "failure" if failed else "success"
    patch = Patch(source, ids, (edit,), answer.reason, reply=answer.reply)
    return await build(run, state, step, parent, patch)

"""TextGrad: feedback in words flows back from each run to the document.

Source: TextGrad (arXiv 2406.07496), section 3 and appendix, and the public package `textgrad`.

    for each batch of train items, in epochs of seeded order:
        forward: roll out the batch with the document
        backward: for each run, loss and gradient: what was wrong, and how the document
            should change
        step: rewrite the document by the sum of all gradients, and by those of the last
            `momentum` steps
        revert: keep the new document only where the selection split improved

Departures. Loss and gradient of a run are one question (the package asks for the feedback on
the answer, then for that on the prompt): what was expected and the score come from the
environment. The selection split is judged by the gate, with its early stop, so a document of
an equal mean is kept only where it is shorter (the package keeps it). Batches follow a seeded
order of the whole split and the last of an epoch may be short. With `revert: false` every
document is kept, and measured all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from functools import partial

from skilltrail.history.log import types
from skilltrail.history.log.types.parts import edits_made
from skilltrail.method.evaluate_candidate import evaluate_candidate
from skilltrail.method.loop import end_step, first_record, with_candidate
from skilltrail.method.reflect import heard, record_patch
from skilltrail.method.run import Run, State
from skilltrail.method.schedule import Step, plan_epoch
from skilltrail.method.update import Build, Built, record_candidate, with_params
from skilltrail.methods.minibatch import roll_out
from skilltrail.methods.steps import PoolMember, choose_parents, question, record_selection
from skilltrail.optimizers.protocol import Answer, Brief, Observation
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.edit import Edit, Patch
from skilltrail.skill.rewrite import TAG, rewrite

NEWEST, SUM = "newest/1", "sum/1"


async def textgrad(run: Run, state: State) -> AsyncGenerator[State, None]:
    """Yield the state after each batch."""
    size, number = run.params.methods.textgrad.batch, 0
    ids = [item.id for item in run.train]
    memory: list[str] = []  # the gradients of each step so far, oldest first
    for epoch in range(1, 1 + run.params.epochs):
        for batch in plan_epoch(
            ids, seed=run.params.seed, epoch=epoch, batch_size=size, accumulation=1
        ):
            number += 1
            state, told = await take_step(run, state, replace(batch, step=number), memory)
            memory += [told] if told else []
            yield state


async def take_step(
    run: Run, state: State, step: Step, memory: Sequence[str]
) -> tuple[State, str]:
    """Go one step along the gradients of a batch; return them as one text too."""
    current = PoolMember(state.skill, state.version)
    choose_parents(run, step, [current], NEWEST, "")
    size = run.params.methods.textgrad.batch
    state, _, seen = await roll_out(run, state, step, state.skill, size)
    patches = await backward(run, state, step, seen)
    record = first_record(step, patches, seen)
    if not patches:
        return end_step(run, state, record, "no usable feedback"), ""
    total = summed(run, step, patches)
    told = "\n".join(f"- {edit.content}" for edit in total.edits)
    built = await rewritten(run, state, step, total, told, memory)
    record = with_candidate(record, total, total.edits, built.candidate.results)
    if not built.usable:
        return end_step(run, state, record, built.reason), told
    force = not run.params.methods.textgrad.revert
    state, record = await evaluate_candidate(run, state, built, record, force=force)
    return end_step(run, state, record, ""), told


async def backward(
    run: Run, state: State, step: Step, seen: Sequence[Observation]
) -> list[Patch]:
    """Return the recorded gradient of each run that has one: a suggestion in words."""
    brief = Brief("textual_gradient", wants="text")
    asked = (question(run, state, step, state.skill, brief, [one]) for one in seen)
    patches = []
    for one, answer in zip(seen, await asyncio.gather(*asked), strict=True):
        heard(run, answer, **step.where)
        if answer.value is not None:
            patch = gradient(one, answer)
            patches.append(record_patch(run, patch, **step.where))
    return patches


def gradient(one: Observation, answer: Answer) -> Patch:
    """Return the gradient of one run as a patch; its reasoning is the loss."""
    edit = Edit("suggest", content=answer.value, items=(one.item.id,))
    source = "success" if one.score.hard == 1 else "failure"
    return Patch(source, (one.item.id,), (edit,), answer.reason, reply=answer.reply)


def summed(run: Run, step: Step, patches: Sequence[Patch]) -> Patch:
    """Record the sum of the gradients: all of them, side by side, all selected."""
    seq = run.history.next_seq
    every = [edit for patch in patches for edit in patch.edits]
    edits = tuple(
        replace(edit, id=f"{seq}.{n}", parents=(edit.id,)) for n, edit in enumerate(every)
    )
    total = Patch("failure", (), edits, id=f"p{seq}")
    run.tell(
        types.PatchMerged(
            **step.where,
            patch=total.id,
            level=1,
            group="final",
            inputs=tuple(patch.id for patch in patches),
            edits=edits_made(edits),
            dropped=(),
            reason="all feedback of the batch",
            rule=SUM,
            reply=None,
        )
    )
    record_selection(run, step, total)
    return total


async def rewritten(
    run: Run, state: State, step: Step, total: Patch, told: str, memory: Sequence[str]
) -> Built:
    """Return the recorded candidate: the document rewritten by the sum of the gradients."""
    window = run.params.methods.textgrad.momentum
    kept = list(memory[-window:]) if window else []
    earlier = {f"feedback of {len(kept) - at} steps ago": t for at, t in enumerate(kept)}
    brief = Brief("gradient_step", texts={**earlier, "feedback on this batch": told})
    answer = heard(run, await question(run, state, step, state.skill, brief), **step.where)
    own = f"{run.history.next_seq}.0"  # its text first stands in the candidate's event
    parent, text = state.skill, answer.value
    build: Build = partial(apply_edits, parent, ())
    if text is not None:
        makes = run.params.skill.makes_references
        build = partial(rewrite, parent, text, own, references=makes)
    candidate, decided = await with_params(run, build)
    return record_candidate(
        run,
        state,
        candidate,
        **step.where,
        patch=total.id,
        mode="rewrite_from_suggestions",
        rule=TAG,
        reply=answer.reply,
        more=decided,
    )

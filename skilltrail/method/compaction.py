"""Compaction: at the end of an epoch, the same skill in fewer words, if nothing gets worse.

The optimizer writes the whole document shorter. The result is a candidate like any other: the
gate takes it when the score rises, or when it stays and tokens fall (`gate.prefer_shorter`).
SkillOpt has no such step; there documents only grow.
"""

from __future__ import annotations

from functools import partial

from skilltrail.core.tokens import count_tokens
from skilltrail.history.log import types
from skilltrail.history.log.types.parts import edits_made
from skilltrail.method.evaluate_candidate import evaluate_candidate
from skilltrail.method.reflect import heard
from skilltrail.method.run import Run, State
from skilltrail.method.update import record_candidate, with_params
from skilltrail.optimizers.protocol import EpochView, StepRecord
from skilltrail.skill.edit import Edit
from skilltrail.skill.rewrite import TAG as REWRITE
from skilltrail.skill.rewrite import rewrite

SOURCE = "compaction"


async def compact(run: Run, state: State, view: EpochView) -> State:
    """Ask for a shorter document and judge it; return the state after the verdict."""
    answer = heard(run, await run.optimizer.compact(view), epoch=view.epoch)
    if answer.value is None:
        return state
    step = state.history[-1].step
    seq = run.history.next_seq
    edit = Edit(
        "rewrite", content=answer.value, kind=SOURCE, reason=answer.reason, id=f"{seq}.0"
    )
    run.tell(
        types.CompactionProposed(
            epoch=view.epoch,
            step=step,
            patch=f"p{seq}",
            edits=edits_made([edit]),
            reasoning=answer.reason,
            rule=answer.rule,
            reply=answer.reply,
        )
    )
    build = partial(rewrite, state.skill, answer.value, edit.id)
    candidate, decided = await with_params(run, build)
    built = record_candidate(
        run,
        state,
        candidate,
        epoch=view.epoch,
        step=step,
        patch=f"p{seq}",
        source=SOURCE,
        mode=SOURCE,
        rule=REWRITE,
        more=decided,
    )
    shrinks = count_tokens(candidate.text) < count_tokens(state.skill)
    if not built.usable or not shrinks:
        return run.follow(state)
    state, _ = await evaluate_candidate(
        run, state, built, StepRecord(view.epoch, step), source=SOURCE
    )
    return state

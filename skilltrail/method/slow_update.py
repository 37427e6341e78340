"""Slow update: at the end of an epoch, guidance in a protected region (the method's momentum).

The optimizer sees how train items fared under the skill of an epoch ago and the current one,
its earlier guidance and what became of it. Its new guidance is a candidate like any other and
passes the gate; in mode `force` it is kept whatever its scores, measured in full all the same,
so that a score never belongs to another text. (SkillOpt keeps it unmeasured by default.)
"""

from __future__ import annotations

from functools import partial

from skilltrail.history.log import types
from skilltrail.history.log.types.parts import edits_made
from skilltrail.method.evaluate_candidate import evaluate_candidate
from skilltrail.method.reflect import heard
from skilltrail.method.run import Run, State
from skilltrail.method.update import next_one, record_candidate
from skilltrail.optimizers.protocol import EpochView, StepRecord
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.building import built
from skilltrail.skill.edit import Edit

REGION = SOURCE = "slow_update"


async def slow_update(run: Run, state: State, view: EpochView) -> State:
    """Ask for guidance and judge it; return the state after the verdict."""
    answer = heard(run, await run.optimizer.slow_update(view), epoch=view.epoch)
    if answer.value is None or answer.value == view.guidance:
        return state
    step = state.history[-1].step
    seq = run.history.next_seq
    items = tuple(pair.item.id for pair in view.pairs)
    edit = Edit(
        "write_region",
        target=REGION,
        content=answer.value,
        kind="guidance",
        reason=answer.reason,
        items=items,
        id=f"{seq}.0",
    )
    force = run.params.slow_update.mode == "force"
    run.tell(
        types.SlowUpdateProposed(
            epoch=view.epoch,
            step=step,
            patch=f"p{seq}",
            mode="force" if force else "gated",
            edits=edits_made([edit]),
            reasoning=answer.reason,
            items=items,
            rule=answer.rule,
            reply=answer.reply,
        )
    )
    make = partial(apply_edits, state.skill, [edit], owner=REGION)
    candidate = await built(make, next_one(run))
    recorded = record_candidate(
        run, state, candidate, epoch=view.epoch, step=step, patch=f"p{seq}", source=SOURCE
    )
    if not recorded.usable:
        return run.follow(state)
    record = StepRecord(view.epoch, step)
    state, _ = await evaluate_candidate(
        run, state, recorded, record, source=SOURCE, force=force
    )
    return state

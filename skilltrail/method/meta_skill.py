"""Meta skill: the optimizer's own compact memory of what kinds of edits fared well or badly.

Written at the end of each epoch from the whole history of the run, handed to all later
optimizer calls. It is versioned as events and never part of the skill.
"""

from __future__ import annotations

from skilltrail.core.canon import text_digest
from skilltrail.history.log import types
from skilltrail.method.reflect import heard
from skilltrail.method.run import Run, State
from skilltrail.optimizers.protocol import EpochView


async def write_meta_skill(run: Run, state: State, view: EpochView) -> State:
    """Ask for the memory, record it, and return the state that carries it."""
    answer = heard(run, await run.optimizer.meta_skill(view), epoch=view.epoch)
    if answer.value is None:
        return state
    run.tell(
        types.MetaSkillWritten(
            epoch=view.epoch,
            text=answer.value,
            digest=text_digest(answer.value),
            reasoning=answer.reason,
            rule=answer.rule,
            reply=answer.reply,
        )
    )
    return run.follow(state)

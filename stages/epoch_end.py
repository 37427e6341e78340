"""The end of an epoch, from the second on: compare epochs, slow update, meta skill."""

from __future__ import annotations

from dataclasses import replace

from stages.compare_epochs import compare_epochs
from stages.core.document import region_text
from stages.meta_skill import write_meta_skill
from stages.optimizers.protocol import EpochView
from stages.run import Run, State
from stages.slow_update import REGION, slow_update


async def end_epoch(run: Run, state: State, epoch: int) -> State:
    """Return the state after the epoch's boundary work; it remembers the epoch's skill.

    Slow update and meta skill share one comparison; either alone makes it.
    """
    params = run.params
    if epoch >= 2 and (params.slow_update.enabled or params.meta_skill.enabled):
        pairs = await compare_epochs(run, state, epoch)
        guidance = region_text(state.skill, REGION)
        view = EpochView(
            epoch=epoch,
            seed=params.seed,
            skill=state.skill,
            previous_skill=state.epoch_skill,
            pairs=pairs,
            guidance="" if guidance is None else guidance,
            guidance_fate=state.guidance_fate,
            history=state.history,
            meta_skill=state.meta_skill,
            max_skill_tokens=params.max_skill_tokens if params.max_skill_tokens else None,
        )
        if params.slow_update.enabled and pairs:
            state = await slow_update(run, state, view)
        if params.meta_skill.enabled:
            view = replace(view, guidance_fate=state.guidance_fate)
            state = await write_meta_skill(run, state, view)
        run.history.flush()
    return replace(state, epoch_skill=state.skill)

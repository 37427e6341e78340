"""The end of an epoch: slow update (from the second epoch on), compaction, meta skill."""

from __future__ import annotations

from collections.abc import AsyncIterator

from skilltrail.method.compaction import compact
from skilltrail.method.compare_epochs import compare_epochs
from skilltrail.method.meta_skill import write_meta_skill
from skilltrail.method.run import Run, State
from skilltrail.method.slow_update import REGION, slow_update
from skilltrail.optimizers.protocol import EpochView, Pair
from skilltrail.skill.document import region_text


async def end_epoch(run: Run, state: State, epoch: int) -> AsyncIterator[State]:
    """Yield the state after each part of the epoch's boundary work.

    Slow update and meta skill share one comparison; either alone makes it.
    """
    params = run.params
    pairs: tuple[Pair, ...] = ()
    remembers = params.has_meta_skill and epoch >= params.meta_skill.from_epoch
    if epoch >= 2 and (params.has_slow_update or remembers):
        pairs = await compare_epochs(run, state, epoch)
        if params.has_slow_update and pairs:
            state = await slow_update(run, state, epoch_view(run, state, epoch, pairs))
            yield state
    if params.compaction:
        state = await compact(run, state, epoch_view(run, state, epoch, pairs))
        yield state
    if remembers:
        state = await write_meta_skill(run, state, epoch_view(run, state, epoch, pairs))
        yield state
    run.history.flush()


def epoch_view(run: Run, state: State, epoch: int, pairs: tuple[Pair, ...]) -> EpochView:
    """Return what the optimizer may know at the end of an epoch."""
    guidance, most = region_text(state.skill, REGION), run.params.max_skill_tokens
    return EpochView(
        epoch=epoch,
        seed=run.params.seed,
        skill=state.skill,
        previous_skill=state.epoch_skill,
        pairs=pairs,
        guidance="" if guidance is None else guidance,
        guidance_result=state.guidance_result,
        history=state.history,
        meta_skill=state.meta_skill,
        max_skill_tokens=most if most else None,
        frozen=run.params.skill.frozen,
        pool=state.pool,
        success_threshold=run.params.reflect.success_threshold,
    )

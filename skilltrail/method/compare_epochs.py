"""Compare two epochs: the same train items under the skill of an epoch ago and the current one.

Slow update and meta skill both start from this comparison. Partial scores count: a drop from
0.9 to 0.1 is a regression. A missing rollout is missing, not a regression.

    epochs/1     both skills are rolled out on the sample
    recorded/1   the skill did not change over the epoch: the epoch's own train rollouts beside
                 the latest ones with another skill, where there are any; no call is made
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.item import Item
from skilltrail.core.order import seeded_order
from skilltrail.core.score import Score
from skilltrail.history.log import types
from skilltrail.history.log.types.parts import Purpose, Sample
from skilltrail.method.rollout import Rollout, scored
from skilltrail.method.run import Run, State
from skilltrail.optimizers.protocol import Pair

TAG = "epochs/1"
RECORDED = "recorded/1"
CHANGED = ("improved", "regressed")
UNCHANGED = ("persistent_failure", "stable_success")


async def compare_epochs(run: Run, state: State, epoch: int) -> tuple[Pair, ...]:
    """Return and record the pairs that the policy keeps."""
    settings = run.params.slow_update
    previous, current = state.epoch_skill, state.skill
    order = seeded_order([item.id for item in run.train], run.params.seed, epoch)
    stalled = previous == current
    if stalled:
        pairs = _recorded(run, state, order)
        reason = (
            "the skill did not change over the epoch: "
            f"{len(pairs)} items compared as they were rolled out before"
        )
    else:
        pairs = await _pairs(run, state, epoch, order[: settings.samples])
        reason = f"{len(pairs)} items compared"
        if settings.pairs == "changed":
            pairs += await _more(run, state, epoch, order[settings.samples :], pairs)
    kept = [pair for pair in pairs if _keeps(settings.pairs, pair.category)]
    data: dict[str, Any] = {
        "epoch": epoch,
        "previous": text_digest(previous),
        "current": text_digest(current),
        "policy": settings.pairs,
        "samples": settings.samples,
        "pairs": [_row(pair) for pair in kept],
        "counts": dict(sorted(Counter(pair.category for pair in pairs).items())),
        "rule": RECORDED if stalled else TAG,
        "reason": reason,
    }
    if settings.pairs == "changed" and not stalled:
        data["max_extra"] = settings.max_extra
    run.tell(types.SlowUpdateCompared(**data))
    return tuple(kept)


def category(before: Score | None, after: Score, success_threshold: float) -> str:
    """Return what became of one item between the two skills, by its soft score.

    `before` None: it was done with no other skill; whether it succeeds is all there is to say.
    """
    old = after if before is None else before
    if old.soft is None or after.soft is None or after.hard is None:
        return "missing"
    if after.soft != old.soft:
        return "improved" if after.soft > old.soft else "regressed"
    return "stable_success" if after.hard >= success_threshold else "persistent_failure"


def _recorded(run: Run, state: State, order: Sequence[str]) -> list[Pair]:
    """Return the first sample of the items that were done with the current skill."""
    seen = [state.pool[id] for id in order if id in state.pool]
    now = [one for one in seen if one.skill == state.digest][: run.params.slow_update.samples]
    threshold = run.params.reflect.success_threshold
    pairs = []
    for after in now:
        before = state.earlier.get(after.item.id)
        old = None if before is None else before.score
        pairs.append(Pair(after.item, before, after, category(old, after.score, threshold)))
    return pairs


async def _pairs(run: Run, state: State, epoch: int, ids: Sequence[str]) -> list[Pair]:
    """Roll the items out with both skills and record both."""
    items = run.train_items(tuple(ids))
    before = await _rolled(run, epoch, items, state.epoch_skill)
    after = await _rolled(run, epoch, items, state.skill)
    threshold = run.params.reflect.success_threshold
    old, new = text_digest(state.epoch_skill), state.digest
    return [
        Pair(
            b.item,
            run.observe(b, old),
            run.observe(a, new),
            category(b.score, a.score, threshold),
        )
        for b, a in zip(before, after, strict=True)
    ]


async def _rolled(run: Run, epoch: int, items: Sequence[Item], skill: str) -> list[Rollout]:
    rollouts = await run.rollouts.all(items, skill)
    sample = Sample(rule=TAG, size=len(items))
    run.tell(scored(rollouts, skill, Purpose.SLOW_UPDATE, epoch=epoch, sample=sample))
    return rollouts


async def _more(
    run: Run, state: State, epoch: int, ids: Sequence[str], pairs: Sequence[Pair]
) -> list[Pair]:
    """Top up with unused items until enough changed ones are found or `max_extra` is spent."""
    settings = run.params.slow_update
    left, found, more = settings.max_extra, sum(p.category in CHANGED for p in pairs), []
    at = 0
    while found < settings.samples and left >= 2 and at < len(ids):
        size = min(settings.samples - found, left // 2, len(ids) - at)
        new = await _pairs(run, state, epoch, ids[at : at + size])
        at, left = at + size, left - 2 * size
        found += sum(pair.category in CHANGED for pair in new)
        more += new
    return more


def _keeps(policy: str, kind: str) -> bool:
    if policy == "mixed":
        return True
    return kind in (CHANGED if policy == "changed" else UNCHANGED)


def _row(pair: Pair) -> dict[str, object]:
    return {
        "item": pair.item.id,
        "before": None if pair.before is None else pair.before.score.soft,
        "after": None if pair.after is None else pair.after.score.soft,
        "category": pair.category,
    }

"""Compare two epochs: the same train items under the skill of an epoch ago and the current one.

Slow update and meta skill both start from this comparison. Partial scores count: a drop from
0.9 to 0.1 is a regression. A missing rollout is missing, not a regression.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from skilltrail.core.canon import text_digest
from skilltrail.core.item import Item
from skilltrail.core.order import seeded_order
from skilltrail.method.rollout import Rollout, scored
from skilltrail.method.run import Run, State
from skilltrail.optimizers.protocol import Pair

TAG = "epochs/1"
CHANGED = ("improved", "regressed")
UNCHANGED = ("persistent_failure", "stable_success")


async def compare_epochs(run: Run, state: State, epoch: int) -> tuple[Pair, ...]:
    """Return and record the pairs that the policy keeps; none when the skill did not change."""
    settings = run.params.slow_update
    previous, current = state.epoch_skill, state.skill
    pairs: list[Pair] = []
    reason = "the skill did not change over the epoch, so no rollout was made"
    if previous != current:
        order = seeded_order([item.id for item in run.train], run.params.seed, epoch)
        pairs = await _pairs(run, state, epoch, order[: settings.samples])
        reason = f"{len(pairs)} items compared"
        if settings.pairs == "changed":
            pairs += await _more(run, state, epoch, order[settings.samples :], pairs)
    kept = [pair for pair in pairs if _keeps(settings.pairs, pair.category)]
    data = {
        "epoch": epoch,
        "previous": text_digest(previous),
        "current": text_digest(current),
        "policy": settings.pairs,
        "samples": settings.samples,
        "pairs": [_row(pair) for pair in kept],
        "counts": dict(sorted(Counter(pair.category for pair in pairs).items())),
        "rule": TAG,
        "reason": reason,
    }
    if settings.pairs == "changed":
        data["max_extra"] = settings.max_extra
    run.history.append("slow_update.compared", data)
    return tuple(kept)


def category(before: Rollout, after: Rollout, success_threshold: float) -> str:
    """Return what became of one item between the two skills, by its soft score."""
    old, new = before.score, after.score
    if old.soft is None or new.soft is None or new.hard is None:
        return "missing"
    if new.soft != old.soft:
        return "improved" if new.soft > old.soft else "regressed"
    return "stable_success" if new.hard >= success_threshold else "persistent_failure"


async def _pairs(run: Run, state: State, epoch: int, ids: Sequence[str]) -> list[Pair]:
    """Roll the items out with both skills and record both."""
    items = run.train_items(tuple(ids))
    before = await _rolled(run, epoch, items, state.epoch_skill)
    after = await _rolled(run, epoch, items, state.skill)
    threshold = run.params.reflect.success_threshold
    return [
        Pair(b.item, run.observe(b), run.observe(a), category(b, a, threshold))
        for b, a in zip(before, after, strict=True)
    ]


async def _rolled(run: Run, epoch: int, items: Sequence[Item], skill: str) -> list[Rollout]:
    rollouts = await run.rollouts.all(items, skill)
    sample = {"rule": TAG, "size": len(items)}
    data = scored(rollouts, skill, "slow_update", epoch=epoch)
    run.history.append("rollouts.scored", data | {"sample": sample})
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

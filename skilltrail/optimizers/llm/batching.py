"""Which runs one analyst looks at. Pure.

Failures are put together by task type and by the scorer's reason, so that an analyst sees a
cause more than once; minibatches of a side differ by at most one run, and none holds a single
run where there are two. Of successes, `auto` asks about those that teach something: runs that
failed under an earlier document, of task types of which one still fails, and runs of task
types that fail at least as often as they succeed; never about an item that the document
quotes, in one minibatch at the most.

`reflect.grouping: shuffled` takes runs as they fall, and `reflect.per_batch` keeps the batches
of an accumulated step apart, both as SkillOpt does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skilltrail.core.canon import text_digest
from skilltrail.core.order import seeded_order
from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.optimizers.llm.shown.coverage import is_quoted
from skilltrail.optimizers.protocol import Observation, StepView


@dataclass(frozen=True)
class Minibatch:
    """The runs of one analyst. `source` is failure or success."""

    source: str
    seen: tuple[Observation, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(o.item.id for o in self.seen)


def minibatches(view: StepView, options: LlmOptions) -> list[Minibatch]:
    """Return the minibatches of a step: failures (hard below the threshold), then successes."""
    batches = [view.observations]
    if options.per_batch and view.batches:
        batches = [
            tuple(o for o in view.observations if o.item.id in ids) for ids in view.batches
        ]
    made = [one for seen in batches for one in _of_runs(view, seen, options)]
    return sorted(made, key=lambda one: one.source)  # failures first


def _of_runs(
    view: StepView, runs: Sequence[Observation], options: LlmOptions
) -> list[Minibatch]:
    threshold, size, success = view.success_threshold, options.minibatch_size, options.success
    scored = [o for o in runs if o.score.hard is not None]
    failed = [o for o in scored if o.score.hard is not None and o.score.hard < threshold]
    passed = [o for o in scored if o.score.hard is not None and o.score.hard >= threshold]
    if success == "auto":
        passed = telling(passed, failed, view)[:size]
        passed = passed if len(passed) > 1 else []
    elif success == "never":
        passed = []
    if options.grouping == "shuffled":
        parts = {"failure": slices(failed, view, size), "success": slices(passed, view, size)}
    else:
        parts = {
            "failure": parts_of(grouped(failed), size),
            "success": parts_of(grouped(passed), size),
        }
    return [Minibatch(source, tuple(part)) for source, side in parts.items() for part in side]


def telling(
    passed: Sequence[Observation], failed: Sequence[Observation], view: StepView
) -> list[Observation]:
    """Return the successes that are worth a question, unstable ones first."""
    lost = Counter(o.item.task_type for o in failed)
    won = Counter(o.item.task_type for o in passed)
    fresh = [o for o in passed if not is_quoted(o.item, view.skill)]
    failing = failing_types(view)
    unstable = [
        o
        for o in fresh
        if o.item.task_type in failing
        and failed_before(o, view.earlier, view.success_threshold)
    ]
    hard = [o for o in fresh if lost[o.item.task_type] >= won[o.item.task_type]]
    return unstable + [o for o in hard if o not in unstable]


def failing_types(view: StepView) -> set[str | None]:
    """Return the task types of which a train item fails with the document as it stands."""
    digest = text_digest(view.skill)
    return {
        o.item.task_type
        for o in (*view.pool.values(), *view.observations)
        if o.score.hard is not None and o.score.hard < view.success_threshold
        if o.skill in ("", digest)
    }


def failed_before(
    seen: Observation, earlier: Mapping[str, Observation], threshold: float
) -> bool:
    """Return whether the item failed under the last other document it was done with."""
    before = earlier.get(seen.item.id)
    return (
        before is not None and before.score.hard is not None and before.score.hard < threshold
    )


def grouped(runs: Sequence[Observation]) -> list[Observation]:
    """Return runs of one task type and reason together, groups in the order of their first."""
    groups: dict[tuple[str | None, str], list[Observation]] = {}
    for one in runs:
        groups.setdefault((one.item.task_type, one.score.reason), []).append(one)
    return [one for group in groups.values() for one in group]


def slices(
    runs: Sequence[Observation], view: StepView, size: int
) -> list[Sequence[Observation]]:
    """Return runs in a seeded order of their own, `size` at a time: the last may be short."""
    by_id = {one.item.id: one for one in runs}
    order = [by_id[id] for id in seeded_order(list(by_id), view.seed, view.step)]
    return [order[at : at + size] for at in range(0, len(order), size)]


def parts_of(runs: Sequence[Observation], size: int) -> list[Sequence[Observation]]:
    """Return runs in as few parts of at most `size` as it takes, as equal as can be."""
    count = math.ceil(len(runs) / size)
    ends = [-(-len(runs) * n // count) for n in range(count + 1)] if count else []
    return [runs[start:end] for start, end in zip(ends, ends[1:], strict=False)]

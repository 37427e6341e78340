"""Which runs one analyst looks at. Pure.

Failures are put together by task type and by the scorer's reason, so that an analyst sees a
cause more than once; minibatches of a side differ by at most one run, and none holds a single
run where there are two. Of successes, `auto` asks about those that teach something: runs that
failed under an earlier document, and runs of task types that fail at least as often as they
succeed; never about an item that the document quotes, in one minibatch at the most.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


def minibatches(view: StepView, *, size: int, success: str) -> list[Minibatch]:
    """Return the minibatches of a step: failures (hard below the threshold), then successes."""
    threshold = view.success_threshold
    scored = [o for o in view.observations if o.score.hard is not None]
    failed = [o for o in scored if o.score.hard is not None and o.score.hard < threshold]
    passed = [o for o in scored if o.score.hard is not None and o.score.hard >= threshold]
    if success == "auto":
        passed = telling(passed, failed, view)[:size]
        passed = passed if len(passed) > 1 else []
    elif success == "never":
        passed = []
    sides = [("failure", grouped(failed)), ("success", grouped(passed))]
    return [
        Minibatch(source, tuple(part))
        for source, side in sides
        for part in parts_of(side, size)
    ]


def telling(
    passed: Sequence[Observation], failed: Sequence[Observation], view: StepView
) -> list[Observation]:
    """Return the successes that are worth a question, unstable ones first."""
    lost = Counter(o.item.task_type for o in failed)
    won = Counter(o.item.task_type for o in passed)
    fresh = [o for o in passed if not is_quoted(o.item, view.skill)]
    unstable = [o for o in fresh if failed_before(o, view.earlier, view.success_threshold)]
    hard = [o for o in fresh if lost[o.item.task_type] >= won[o.item.task_type]]
    return unstable + [o for o in hard if o not in unstable]


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


def parts_of(runs: Sequence[Observation], size: int) -> list[Sequence[Observation]]:
    """Return runs in as few parts of at most `size` as it takes, as equal as can be."""
    count = math.ceil(len(runs) / size)
    ends = [-(-len(runs) * n // count) for n in range(count + 1)] if count else []
    return [runs[start:end] for start, end in zip(ends, ends[1:], strict=False)]

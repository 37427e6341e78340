"""What events say of each of several targets."""

from __future__ import annotations

from typing import Annotated

from skilltrail.history.log.types.parts import Coverage, EventPart, Share, Tag, says


class TargetJudged(EventPart, frozen=True, kw_only=True):
    """What a candidate does on one of several targets."""

    target: Annotated[str, says("name in targets")]
    weight: Annotated[float, says("of its items in the run's score")]
    floor: Annotated[Share, says("mean that no accepted skill may bring it below")]
    before: Annotated[Share, says("as that of the verdict")] | None
    after: Annotated[Share, says("as that of the verdict")] | None
    after_max: Annotated[Share, says("as that of the verdict")] | None


class Measured(EventPart, frozen=True, kw_only=True):
    """Scores of a skill, paired with another's."""

    coverage: Coverage
    mean: Annotated[Share, says("gate metric")] | None
    mean_hard: Annotated[Share, says("mean")] | None
    mean_soft: Annotated[Share, says("mean")] | None
    gain: Annotated[float, says("paired mean difference of the metric")] | None
    gain_low: float | None
    gain_high: float | None
    interval: Annotated[Tag, says("tag of the interval's method")]


class TargetMeasured(Measured, frozen=True, kw_only=True):
    """A skill's scores on one of several targets."""

    target: Annotated[str, says("name in targets")]

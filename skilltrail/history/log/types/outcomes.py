"""Events that say what a run rests on, measured and decided, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from skilltrail.history.log.types.parts import (
    Agent,
    Batch,
    Costs,
    Count,
    Coverage,
    Digest,
    EditId,
    Epoch,
    EventPart,
    Flips,
    Identity,
    ItemDigest,
    JudgedBy,
    Metric,
    NamedMean,
    Number,
    OfStep,
    PatchId,
    Purpose,
    ReplyKey,
    RowScored,
    Sample,
    SeedSkill,
    Share,
    SkillAtEnd,
    SkillNamed,
    Source,
    Split,
    Statistic,
    Step,
    StepResult,
    Tag,
    TaskType,
    Verdict,
    says,
)
from skilltrail.history.log.types.targets import Measured, TargetJudged, TargetMeasured


class RunStarted(EventPart, frozen=True, kw_only=True):
    """A run begins: what it rests on."""

    env: Annotated[str, says("name of the environment")]
    agent: Agent
    train: Annotated[tuple[ItemDigest, ...], says("train split, in order")]
    selection: Annotated[tuple[ItemDigest, ...], says("selection split, in order")]
    target: Identity
    seed: Annotated[int, says("seed of every seeded order")]
    seed_skill: SeedSkill
    counter: Annotated[str, says("tag of the offline token counter")] | None = None
    parent: (
        Annotated[
            Digest, says("id of the `skill.versioned` event that the run was forked from")
        ]
        | None
    )
    judge: Annotated[JudgedBy, says("only where a model scores what no rule can")] | None = None


class RolloutsScored(EventPart, frozen=True, kw_only=True):
    """Rollouts of one skill on some items, scored."""

    purpose: Purpose
    epoch: Epoch | None = None
    step: Step | None = None
    skill: Annotated[Digest, says("digest of the skill document")]
    split: Annotated[str, says("outside training; in it fitness on selection")] | None = None
    batch: Annotated[Batch, says("train only: how the items were chosen")] | None = None
    sample: Annotated[Sample, says("slow_update, fitness: how items are chosen")] | None = None
    min_coverage: Annotated[Share, says("only when the run may go on with gaps")] | None = None
    items: Annotated[
        tuple[RowScored, ...],
        says("one row per rollout, in the order asked for (gate order for selection)"),
    ]
    coverage: Coverage
    mean_hard: Annotated[Share, says("mean over scored rows; null when there are none")] | None
    mean_soft: Annotated[Share, says("likewise")] | None
    target: Annotated[str, says("transfer only: the name in evaluate.targets")] | None = None


class BudgetDecided(OfStep, frozen=True, kw_only=True):
    """How many edits the step may apply."""

    budget: Annotated[Count, says("most edits; null = no cap")] | None
    schedule: Literal["constant", "linear", "cosine", "autonomous", "none"]
    rule: Tag
    lr: Annotated[Number, says("where the schedule reads it")] | None = None
    lr_min: Annotated[Number, says("linear and cosine")] | None = None
    total_steps: Annotated[Number, says("linear and cosine")] | None = None
    warmup: Annotated[Number, says("where it is above 0")] | None = None
    phase: Annotated[Literal["interval"], says("where it is not start")] | None = None
    rounding: Annotated[Literal["even"], says("where it is not up")] | None = None
    offered: Annotated[Count, says("autonomous, second event: edits to choose from")] | None = (
        None
    )
    reason: str
    reply: ReplyKey | None


class GateJudged(OfStep, frozen=True, kw_only=True):
    """The gate's verdict on a candidate."""

    source: Annotated[Source, says("what the candidate comes from")]
    split: (
        Annotated[
            Literal["train"], says("judged on the step's own train items, not on selection")
        ]
        | None
    ) = None
    rule: Tag
    metric: Metric
    mixed_weight: Annotated[Share, says("metric mixed only")] | None = None
    alpha: Annotated[Share, says("rule paired")] | None = None
    tolerance: Annotated[Share, says("rule no_regression, or several targets")] | None = None
    prefer_shorter: Annotated[bool, says("where the rule reads it")] | None = None
    min_items: Annotated[Count, says("where the rule reads it")] | None = None
    min_coverage: Annotated[Share, says("where the rule reads it")] | None = None
    repeats: Annotated[Number, says("rollouts an item, where above 1")] | None = None
    current: Annotated[Digest, says("digest of the current skill")]
    candidate: Annotated[Digest, says("digest of the candidate")]
    before: Annotated[Share, says("mean of the current skill")] | None
    after: Annotated[Share, says("mean of the candidate; null when stopped early")] | None
    after_max: (
        Annotated[Share, says("highest mean still possible, only when stopped early")] | None
    )
    compared: (
        Annotated[
            Count,
            says(
                "items that the means are over, where fewer than the split has: scored under "
                "both skills, or not judged"
            ),
        ]
        | None
    ) = None
    judged: Annotated[Count, says("items looked at")]
    total: Annotated[Count, says("items of the selection split")]
    order: Tag
    flips: Flips
    statistic: Statistic | None
    verdict: Verdict
    forced: Annotated[bool, says("accepted whatever the scores")]
    saved: Annotated[Count, says("rollouts not needed")]
    reason: str
    tokens_before: Count
    tokens_after: Count
    cost: Annotated[Costs, says("rule pareto")] | None = None
    targets: Annotated[tuple[TargetJudged, ...], says("of several")] | None = None


class SkillVersioned(EventPart, frozen=True, kw_only=True):
    """A new version of the skill (0 = seed)."""

    version: Count
    epoch: Epoch | None = None
    step: Step | None = None
    parent: Annotated[Digest, says("digest of the version before; null for 0")] | None
    digest: Annotated[Digest, says("SHA-256 of the document")]
    best: Annotated[bool, says("true when this version is now the best")]
    patch: Annotated[PatchId, says("patch whose edits were selected; null for 0")] | None
    candidate: Annotated[Number, says("the `candidate.built` event")] | None
    gate: Annotated[Number, says("the `gate.judged` event")] | None
    edits: Annotated[tuple[EditId, ...], says("applied")]
    not_applied: tuple[EditId, ...]
    lines_added: Count
    lines_removed: Count
    tokens: Count


class StepEnded(OfStep, frozen=True, kw_only=True):
    """What a step came to."""

    result: StepResult
    reason: str
    counts: Annotated[
        Mapping[str, Count],
        says("patches, proposed, merged, selected, applied, replies_rejected, ..."),
    ]
    version: Annotated[Count, says("current version after the step")]


class RunFinished(EventPart, frozen=True, kw_only=True):
    """The run is over."""

    best: SkillAtEnd
    last: SkillAtEnd
    why: Annotated[str, says("finished, patience, ...")]
    patience: Annotated[Number, says("only where it ended the run")] | None = None
    calls: Annotated[Number, says("`stop.calls`, only where it ended the run")] | None = None
    steps: Count
    accepted: Count
    rejected: Count
    indecisive: Count
    totals: Annotated[Mapping[str, Count], says("rollouts, saved, patches, edits, ...")]


class TestOpened(EventPart, frozen=True, kw_only=True):
    """The test split is opened, by `evaluate` alone."""

    split: Split
    items: tuple[ItemDigest, ...]
    skills: tuple[SkillNamed, ...]
    target: Identity
    judge: Annotated[JudgedBy, says("only where a model scores what no rule can")] | None = None
    opened_before: (
        Annotated[
            Count,
            says(
                "only where a person asked (`skilltrail evaluate`): openings of the test split "
                "on record for the run before this"
            ),
        ]
        | None
    ) = None


class SkillEvaluated(Measured, frozen=True, kw_only=True):
    """One skill's scores on a split, paired with the seed's."""

    name: Annotated[str, says("seed, best, last, or a given name")]
    skill: Digest
    against: Annotated[Digest, says("digest of the skill it is paired with")] | None
    split: Split
    metric: Metric
    mixed_weight: Annotated[Share, says("metric mixed only")] | None = None
    task_types: tuple[TaskType, ...] | None = None
    targets: Annotated[tuple[TargetMeasured, ...], says("of several")] | None = None
    metrics: (
        Annotated[
            tuple[NamedMean, ...],
            Meta(
                min_length=1,
                description="further metrics of the environment; absent where it has none",
            ),
        ]
        | None
    ) = None


class SkillTransferred(SkillEvaluated, frozen=True, kw_only=True):
    """One skill's scores on a target that it was not trained on, and the share of its gain
    that carries over."""

    target: Annotated[str, says("the name in evaluate.targets")]
    model: Annotated[
        Mapping[str, Any], says("identity of that frozen model, as in run.started")
    ]
    share: (
        Annotated[
            float, says("gain here / gain on the target trained on; null without a gain there")
        ]
        | None
    )
    share_low: (
        Annotated[float, says("null where the gain on the target trained on is not clear of 0")]
        | None
    )
    share_high: Annotated[float, says("as share_low")] | None
    share_interval: Annotated[Tag, says("tag of the interval's method")]


class TextErased(EventPart, frozen=True, kw_only=True):
    """A tombstone: a text was taken out of this log and of what it rests on
    (`skilltrail erase`); from the first event it names on, ids are new."""

    marker: Annotated[str, says("what stands in place of the text")]
    events: Annotated[
        tuple[Number, ...],
        says(
            "numbers of this log's events that lost text, or that name a document, item or "
            "event that did"
        ),
    ]
    facts: Annotated[tuple[Digest, ...], says("keys of facts named by this log that lost text")]
    items: Annotated[tuple[str, ...], says("ids of items listed by this log that lost text")]

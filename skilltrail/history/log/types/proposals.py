"""Events on the way to a candidate: what was proposed, merged, chosen and built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from skilltrail.history.log.types.parts import (
    Count,
    Digest,
    EditId,
    EditMade,
    EditResult,
    Epoch,
    EventPart,
    LeftOut,
    Member,
    Metric,
    Number,
    OfPatch,
    OfStep,
    PatchId,
    ReplyKey,
    ScriptTest,
    Share,
    Source,
    Step,
    Tag,
    says,
)

LineFrom = Annotated[int, Meta(ge=1)] | Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+$")]


class MethodChosen(EventPart, frozen=True, kw_only=True):
    """The run goes on by another method than `skillopt`, which needs no such event."""

    method: str
    rule: Tag
    settings: Annotated[Mapping[str, Any], says("the method's own params")]


class ParentsChosen(OfStep, frozen=True, kw_only=True):
    """Which documents of the pool the step works on: its candidate is made of the first, and
    takes from the others."""

    parents: Annotated[tuple[Member, ...], Meta(min_length=1)]
    pool: Annotated[tuple[Member, ...], says("what they were chosen from")] | None = None
    metric: Annotated[Metric, says("of the scores, where it goes by scores")] | None = None
    mixed_weight: Annotated[Share, says("metric mixed only")] | None = None
    rule: Tag
    reason: str


class InstructionChosen(OfStep, frozen=True, kw_only=True):
    """By which words the optimizer is asked for a candidate, where a method has many."""

    operator: Annotated[str, says("the kind of change: the method's own word for it")]
    text: Annotated[str, says("the instruction, tip or thought that the optimizer is told")]
    rule: Annotated[Tag, says("how it was chosen; null where a model wrote it")] | None
    reply: ReplyKey | None


class PatchProposed(OfPatch, frozen=True, kw_only=True):
    """One analyst's output."""

    source: Literal["failure", "success"]
    items: Annotated[tuple[str, ...], says("ids of the train items seen, in order")]
    shown: Annotated[
        Mapping[str, Any], says("what was shown of the trajectories, and what was clipped")
    ]
    edits: tuple[EditMade, ...]
    reasoning: Annotated[str, says("the analyst's own words")]
    failure_types: Annotated[Mapping[str, str], says("item id -> type")]
    rule: Tag | None
    reply: ReplyKey | None


class ReplyRejected(EventPart, frozen=True, kw_only=True):
    """An optimizer reply that could not be used."""

    epoch: Epoch | None = None
    step: Step | None = None
    stage: Annotated[str, says("reflect, merge, rank, budget, rewrite, slow, meta, compose")]
    reply: ReplyKey | None
    message: Annotated[str, says("what the validator said")]
    then: Annotated[str, says("what happens next")]


class PatchMerged(OfPatch, frozen=True, kw_only=True):
    """Several patches became one."""

    level: Annotated[Number, says("1 = merges proposed patches")]
    group: Annotated[str, says("failure, success or final")]
    inputs: Annotated[tuple[PatchId, ...], says("patches that went in")]
    edits: tuple[EditMade, ...]
    dropped: Annotated[tuple[EditId, ...], says("input edits without a merged edit")] | None = (
        None
    )
    reason: str
    rule: Tag | None
    reply: ReplyKey | None


class AppendixProposed(OfPatch, frozen=True, kw_only=True):
    """Notes for the protected appendix, as an edit."""

    edits: tuple[EditMade, ...]
    rule: Tag | None
    reply: ReplyKey | None
    reason: str


class EditsSelected(OfPatch, frozen=True, kw_only=True):
    """Which edits are tried, in order."""

    budget: Count | None
    selected: tuple[EditId, ...]
    left_out: tuple[LeftOut, ...]
    rule: Tag | None
    reason: str
    reply: ReplyKey | None


class CandidateBuilt(OfStep, frozen=True, kw_only=True):
    """The chosen edits met the parent document."""

    source: Annotated[Source, says("what the candidate comes from")]
    mode: Literal[
        "patch", "rewrite_from_suggestions", "full_rewrite_minibatch", "compaction", "document"
    ]
    parent: Annotated[Digest, says("digest of the current skill")]
    candidate: Annotated[Digest, says("digest of the new text")]
    results: Annotated[tuple[EditResult, ...], says("exactly one per edit, in order")]
    faults: Annotated[
        tuple[str, ...], says("why the assembled document cannot be used; empty = usable")
    ]
    diff: Annotated[str, says("unified diff parent -> candidate")]
    sources: Annotated[
        tuple[tuple[LineFrom, Number], ...],
        says(
            "where each line comes from, in runs: [first line of the parent (1-based) or edit "
            "id, number of lines]"
        ),
    ]
    text: Annotated[str, says("the whole candidate, rewrite modes only")] | None = None
    tokens: Annotated[Count, says("size of the candidate")]
    rule: Tag
    reply: ReplyKey | None
    frontmatter: (
        Annotated[
            Literal["frozen", "train"],
            says("`skill.frontmatter`, only where it made a difference"),
        ]
        | None
    ) = None
    references: (
        Annotated[
            Literal["train"],
            says("`skill.references`, only where edits could make or remove a file by it"),
        ]
        | None
    ) = None
    scripts: (
        Annotated[Literal["train"], says("`skill.scripts`, only where it let an edit through")]
        | None
    ) = None
    script_tests: (
        Annotated[
            tuple[ScriptTest, ...],
            says("tests of the scripts that edits change; where one fails no script changes"),
        ]
        | None
    ) = None
    rejected_before: (
        Annotated[
            Number,
            says("the `gate.judged` event that rejected the same text: it is not judged again"),
        ]
        | None
    ) = None


class Pair(EventPart, frozen=True, kw_only=True):
    item: str
    before: Annotated[Share, says("soft score")] | None
    after: Annotated[Share, says("soft score")] | None
    category: Literal[
        "improved", "regressed", "persistent_failure", "stable_success", "missing"
    ]


class SlowUpdateCompared(EventPart, frozen=True, kw_only=True):
    """Two skills on the same train items, at the end of an epoch."""

    epoch: Epoch
    previous: Annotated[Digest, says("digest of the skill at the end of the epoch before")]
    current: Annotated[Digest, says("digest of the current skill")]
    policy: Literal["mixed", "changed", "unchanged"]
    samples: Count
    max_extra: Count | None = None
    pairs: tuple[Pair, ...]
    counts: Mapping[str, Count]
    rule: Tag
    reason: str


class SlowUpdateProposed(OfPatch, frozen=True, kw_only=True):
    """Guidance for the protected region, as an edit."""

    mode: Literal["gated", "force"]
    edits: tuple[EditMade, ...]
    reasoning: str
    items: Annotated[tuple[str, ...], says("train items shown")]
    rule: Tag | None
    reply: ReplyKey | None


class CompactionProposed(OfPatch, frozen=True, kw_only=True):
    """A shorter whole document, as an edit."""

    edits: tuple[EditMade, ...]
    reasoning: str
    rule: Tag | None
    reply: ReplyKey | None


class MetaSkillWritten(EventPart, frozen=True, kw_only=True):
    """The optimizer-side memory after an epoch."""

    epoch: Epoch
    text: Annotated[str, says("the whole memory")]
    digest: Annotated[Digest, says("SHA-256 of the text")]
    reasoning: str
    rule: Tag | None
    reply: ReplyKey | None

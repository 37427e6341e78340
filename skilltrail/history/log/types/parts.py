"""What events are made of: named values and the parts that several types share.

A field that is only there where it was consumed has the default None; one that is always there
and may be null has none. `says` puts a field's meaning into its schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, convert

from skilltrail.core.canon import Word
from skilltrail.core.item import Item
from skilltrail.core.score import Outcome
from skilltrail.skill.edit import Edit, EditStatus


def says(words: str) -> Meta:
    return Meta(description=words)


class Verdict(Word):
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    INDECISIVE = "indecisive"


class StepResult(Word):
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    INDECISIVE = "indecisive"
    NO_PATCH = "no_patch"
    NO_CHANGE = "no_change"
    MEASURED = "measured"


class Purpose(Word):
    BASELINE = "baseline"
    TRAIN = "train"
    SELECTION = "selection"
    DEMONSTRATIONS = "demonstrations"
    MINIBATCH = "minibatch"
    FITNESS = "fitness"
    SLOW_UPDATE = "slow_update"
    TEST = "test"
    EVALUATE = "evaluate"
    TRANSFER = "transfer"


class Source(Word):
    """What a candidate comes from."""

    STEP = "step"
    SLOW_UPDATE = "slow_update"
    COMPACTION = "compaction"


Count = Annotated[int, Meta(ge=0)]
Number = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Agent = Annotated[
    Mapping[str, Any],
    Meta(
        description="what else determines the agent's behaviour (JSON; never a path)",
        extra_json_schema={
            "required": ["version"],
            "properties": {
                "version": {
                    "type": "string",
                    "description": "version of the agent: prompts and turns",
                }
            },
        },
    ),
]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Epoch = Annotated[Number, says("1-based epoch")]
Step = Annotated[Number, says("1-based step, counted over the whole run")]
Tag = Annotated[
    str,
    Meta(
        pattern="^[a-z][a-z0-9_.-]*/[0-9]+$",
        description="tag of the decision function, e.g. `strict/1`",
    ),
]
PatchId = Annotated[
    str, Meta(pattern="^p[0-9]+$", description="`p<seq>` of the event that carries the patch")
]
EditId = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]+\.[0-9]+$",
        description="`<seq>.<index>`: the event that first carried the edit, its place there",
    ),
]
ReplyKey = Annotated[Digest, says("fact key of the optimizer's reply; null for rules")]
Identity = Annotated[
    Mapping[str, Any],
    says(
        "identity of the frozen model: backend, provider label, model or GGUF SHA-256, "
        "decoding; never a URL or path"
    ),
]
Metric = Literal["hard", "soft", "mixed"]
Split = Literal["train", "selection", "test", "all"]


class EventPart(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Part of an event."""


class OfStep(EventPart, frozen=True, kw_only=True):
    epoch: Epoch
    step: Step


class OfPatch(OfStep, frozen=True, kw_only=True):
    patch: PatchId


class ItemDigest(EventPart, frozen=True, kw_only=True):
    item: Annotated[str, says("item id")]
    digest: Annotated[Digest, says("content digest of the item")]


def items_named(items: Iterable[Item]) -> tuple[ItemDigest, ...]:
    """Return items as events name them."""
    return tuple(ItemDigest(item=one.id, digest=one.content_digest) for one in items)


class SeedSkill(EventPart, frozen=True, kw_only=True):
    text: Annotated[str, says("the whole document")]
    digest: Annotated[Digest, says("SHA-256 of the text")]


class JudgedBy(EventPart, frozen=True, kw_only=True):
    model: Annotated[Mapping[str, Any], says("identity of the judge, as the target's")]
    rubric: Annotated[Digest, says("SHA-256 of the rubric's text")]
    threshold: Annotated[Share, says("least judged score that is a hard 1")]


class Batch(EventPart, frozen=True, kw_only=True):
    rule: Tag
    size: Annotated[Number, says("items a batch")]
    accumulation: Annotated[Number, says("batches pooled into a step")]


class Sample(EventPart, frozen=True, kw_only=True):
    rule: Tag
    size: Count


class Coverage(EventPart, frozen=True, kw_only=True):
    scored: Count
    asked: Count


class CostOf(EventPart, frozen=True, kw_only=True):
    """What the agent used."""

    tokens: Annotated[Count, says("input and output; null where a provider did not say")] | None
    calls: Annotated[Count, says("model calls")]


class Costs(EventPart, frozen=True, kw_only=True):
    """What the agent used on the judged items."""

    before: Annotated[CostOf, says("under the current skill")]
    after: Annotated[CostOf, says("under the candidate")]


class RowScored(EventPart, frozen=True, kw_only=True):
    """One rollout with its score."""

    item: Annotated[str, says("item id")]
    target: Annotated[str, says("name in targets, where there are several")] | None = None
    outcome: Outcome
    hard: Annotated[Share, says("null unless scored")] | None
    soft: Annotated[Share, says("null unless scored")] | None
    reason: Annotated[str, says("the scorer's short word")]
    key: Annotated[Digest, says("fact key of the rollout; null when nothing was stored")] | None
    repeat: Annotated[Count, says("only with repeated rollouts")] | None = None
    judgement: (
        Annotated[
            Digest,
            says(
                "fact key of the model's judgement that gave the score; only where one did "
                "(reason `model-judged`)"
            ),
        ]
        | None
    ) = None
    cost: (
        Annotated[CostOf, says("what the agent used; only where the rule counts it")] | None
    ) = None


class EditMade(EventPart, frozen=True, kw_only=True):
    """One edit, as a patch carries it."""

    edit: EditId
    op: Literal[
        "append", "insert_after", "replace", "delete", "write_region", "suggest", "rewrite"
    ]
    target: Annotated[str, says("whole lines of the parent document, or a region's name")]
    content: str
    section: Annotated[str, says("heading that scopes the edit")] | None
    inline: bool
    kind: Annotated[str, says("rule, example, note, guidance")]
    reason: str
    items: Annotated[tuple[str, ...], says("ids of the train items behind the edit")]
    support: Annotated[Count, says("number of distinct items")]
    parents: Annotated[tuple[EditId, ...], says("edits it was merged from")]
    file: Annotated[str, says("file of a skill folder; only where not SKILL.md")] | None = None


def edits_made(edits: Iterable[Edit]) -> tuple[EditMade, ...]:
    """Return edits as events carry them."""
    return tuple(convert(edit.to_json(), EditMade) for edit in edits)


class LeftOut(EventPart, frozen=True, kw_only=True):
    edit: EditId
    reason: str


class EditResult(EventPart, frozen=True, kw_only=True):
    edit: EditId
    status: EditStatus
    lines: Annotated[tuple[Number, ...], says("1-based lines of the parent document")]
    detail: str
    matched_by: Literal["exact", "trailing_space"]


class ScriptTest(EventPart, frozen=True, kw_only=True):
    """What became of the test of a script that a candidate changes."""

    test: Annotated[str, says("path in the skill folder")]
    passed: bool
    exit: Annotated[int, says("exit code; null where it was ended")] | None
    key: Annotated[Digest, says("fact key of the run in the sandbox")]


class Member(EventPart, frozen=True, kw_only=True):
    """A document of the pool."""

    digest: Annotated[Digest, says("SHA-256 of the document")]
    version: Annotated[Count, says("where it is a version")] | None = None
    score: Annotated[Share, says("what the choice goes by, where it goes by scores")] | None = (
        None
    )
    weight: Annotated[Count, says("its lots in the draw, where they differ")] | None = None


class Flips(EventPart, frozen=True, kw_only=True):
    won: Annotated[tuple[str, ...], says("items that went up")]
    lost: Annotated[tuple[str, ...], says("items that went down")]


class Statistic(EventPart, frozen=True, kw_only=True):
    name: str
    p: Annotated[Share, says("one-sided")]
    wins: Count
    losses: Count


class SkillAtEnd(EventPart, frozen=True, kw_only=True):
    version: Count
    digest: Digest
    score: Annotated[Share, says("gate metric on selection")] | None


class SkillNamed(EventPart, frozen=True, kw_only=True):
    name: Annotated[str, says("seed, best, last, or a given name")]
    digest: Digest


class TaskType(EventPart, frozen=True, kw_only=True):
    task_type: str
    n: Count
    hard: Annotated[Share, says("mean")] | None
    soft: Annotated[Share, says("mean")] | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None


class NamedMean(EventPart, frozen=True, kw_only=True):
    name: Annotated[str, Meta(min_length=1)]
    mean: Share

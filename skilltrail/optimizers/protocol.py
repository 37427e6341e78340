"""What an optimizer does: the method's verbs, each from a frozen view of the run.

An optimizer sees train rollouts and past verdicts, never an item of the selection or test
split. Same view, same answer: an optimizer keeps no state of its own, so resume is replay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from skilltrail.core.item import Item
from skilltrail.core.score import Score
from skilltrail.core.trajectory import Trajectory
from skilltrail.skill.edit import Edit, EditResult, Patch


@dataclass(frozen=True)
class Observation:
    """One train rollout as the optimizer sees it.

    `key` is the rollout's fact key, `skill` the digest of the document it was done with.
    `reference` is the expected answer; `outcome` what the rollout left besides its words and
    `feedback` what an environment says of it to analysts alone (its hooks of these names).
    None = there is none.
    """

    item: Item
    trajectory: Trajectory
    score: Score
    key: str
    reference: str | None = None
    feedback: str | None = None
    skill: str = ""
    outcome: str | None = None


@dataclass(frozen=True)
class StepRecord:
    """A step as later steps see it.

    Attributes:
        verdict: accepted, rejected, indecisive, no_patch or no_change.
        edits: the selected edits; `results` says what became of each.
        before, after: gate means; None when not measured to the end.
        failure_types: how many train items of the step failed in each way.
        runs, failed: train rollouts of the step, and how many of them were no success.
        won, lost: judged selection items that got better or worse, counted by task type.
        counts: patches, proposed, merged, selected, applied, judged, saved.
    """

    epoch: int
    step: int
    verdict: str = "no_patch"
    edits: tuple[Edit, ...] = ()
    results: tuple[EditResult, ...] = ()
    before: float | None = None
    after: float | None = None
    failure_types: Mapping[str, int] = field(default_factory=dict)
    runs: int = 0
    failed: int = 0
    won: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StepView:
    """All that an optimizer may know at one step.

    Attributes:
        skill: the current skill document.
        budget: most edits that will be selected; None = no cap.
        observations: this step's train rollouts, in batch order.
        pool: latest observation of every train item rolled out so far, by item id; an item's
            observation may belong to an earlier skill.
        earlier: the latest observation of an item with another skill than that in `pool`.
        history: finished steps of this run, oldest first.
        meta_skill: the optimizer-side memory, "" when there is none.
        max_skill_tokens: hard limit of the document's size; None = none.
        success_threshold: a rollout with at least this hard score is a success.
        update_mode: patch, rewrite_from_suggestions or full_rewrite_minibatch.
        frozen: True when no edit may change the document's frontmatter.
        scripts: True when edits may change scripts of a skill folder.
        references: True when edits may make and remove references of a skill folder.
        batches: item ids of each batch of the step, in order.
    """

    epoch: int
    step: int
    seed: int
    skill: str
    budget: int | None
    observations: tuple[Observation, ...]
    pool: Mapping[str, Observation]
    history: tuple[StepRecord, ...]
    meta_skill: str = ""
    max_skill_tokens: int | None = None
    success_threshold: float = 1.0
    update_mode: str = "patch"
    frozen: bool = True
    scripts: bool = False
    references: bool = False
    earlier: Mapping[str, Observation] = field(default_factory=dict)
    batches: tuple[tuple[str, ...], ...] = ()

    @property
    def where(self) -> dict[str, Any]:
        """Epoch and step, as the step's events name them."""
        return {"epoch": self.epoch, "step": self.step}


@dataclass(frozen=True)
class Pair:
    """One train item under the skill of an epoch ago and under the current one.

    After an epoch that changed nothing, `before` is the latest rollout with any other skill;
    None where there is none. `category` is improved, regressed, persistent_failure,
    stable_success or missing.
    """

    item: Item
    before: Observation | None
    after: Observation | None
    category: str


@dataclass(frozen=True)
class EpochView:
    """All that an optimizer may know at the end of an epoch.

    Attributes:
        previous_skill: the skill at the end of the epoch before.
        pairs: the compared train items, in seeded order.
        guidance: what stands in the slow-update region now, "" when nothing does.
        guidance_result: how the last proposed guidance fared: a verdict, or "" for the first.
        history: finished steps of the run, oldest first.
        pool: latest observation of every train item rolled out so far, by item id.
    """

    epoch: int
    seed: int
    skill: str
    previous_skill: str
    pairs: tuple[Pair, ...]
    guidance: str
    guidance_result: str
    history: tuple[StepRecord, ...]
    meta_skill: str = ""
    max_skill_tokens: int | None = None
    frozen: bool = True
    pool: Mapping[str, Observation] = field(default_factory=dict)
    success_threshold: float = 1.0

    @property
    def is_stalled(self) -> bool:
        """True when the skill did not change over the epoch."""
        return self.previous_skill == self.skill


@dataclass(frozen=True)
class Brief:
    """A question of a rival method's own: its prompt, and what is put into it.

    Attributes:
        prompt: name of the prompt's file.
        wants: `document` (a whole one, in the place of the view's skill) or `text` (for the
            optimizer itself).
        task: what is asked for, in our words, where the prompt has a place for it.
        texts: what is shown beside the view's runs, by name, in order. It is data.
        sample: which of several replies to one question (0 = the first).
    """

    prompt: str
    wants: str = "document"
    task: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    sample: int = 0


@dataclass(frozen=True)
class RejectedReply:
    """An optimizer reply that could not be used, and what happens next."""

    stage: str
    message: str
    reply: str | None
    then: str


@dataclass(frozen=True)
class Answer:
    """A value from the optimizer, with the replies that had to be thrown away on the way.

    `rule` is a tag like `rules/1` when a recorded rule decided, None when a model did.
    """

    value: Any
    reason: str = ""
    rule: str | None = None
    rejected: tuple[RejectedReply, ...] = ()
    reply: str | None = None


class Optimizer(Protocol):
    """The method's verbs. Every answer says whether a rule or a reply of a model decided."""

    @property
    def tag(self) -> str:
        """Name and version of the decision rules, e.g. `rules/1`."""

    async def reflect(self, view: StepView) -> Answer:
        """Return the patches (`list[Patch]`), one per analyst, failures first.

        In update mode `patch` their edits are edits of the document; in
        `rewrite_from_suggestions` each is a suggestion (op `suggest`, `content` in words); in
        `full_rewrite_minibatch` each patch holds one whole document (op `rewrite`).
        """

    async def merge(self, view: StepView, patches: Sequence[Patch]) -> Answer:
        """Return the merged edits (`list[Edit]`) of one group; each names its parents."""

    async def choose_budget(self, view: StepView, edits: Sequence[Edit]) -> Answer:
        """Return how many of `edits` to apply (int, 0 to len(edits)): `autonomous` only."""

    async def rank(self, view: StepView, edits: Sequence[Edit]) -> Answer:
        """Return all indices of `edits`, best first (`list[int]`)."""

    async def rewrite(self, view: StepView, suggestions: Sequence[Edit]) -> Answer:
        """Return the whole document (`str`) that follows the suggestions, or None."""

    async def consolidate(self, view: StepView, notes: Sequence[str]) -> Answer:
        """Return fewer notes (`list[str]`) that say the same: `skill_aware` only."""

    async def slow_update(self, view: EpochView) -> Answer:
        """Return the text of the slow-update region (`str`), or None for no change."""

    async def meta_skill(self, view: EpochView) -> Answer:
        """Return the meta skill (`str`): a compact memory for later optimizer calls."""

    async def compact(self, view: EpochView) -> Answer:
        """Return the whole document (`str`) in fewer tokens, or None: `compaction` only."""

    def is_done(self, history: Sequence[StepRecord]) -> bool:
        """Return whether no step after these can have an edit, whatever its rollouts show."""

    async def compose(self, view: StepView, brief: Brief) -> Answer:
        """Return what a rival method asks for (`str`), or None: see `methods/`."""

    async def close(self) -> None:
        """Free what the optimizer holds."""

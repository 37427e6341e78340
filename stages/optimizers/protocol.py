"""What an optimizer does: the method's verbs, each from a frozen view of the run.

An optimizer sees train rollouts and past verdicts, never an item of the selection or test
split. Same view, same answer: an optimizer keeps no state of its own, so resume is replay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from stages.core.edit import Edit, EditResult
from stages.core.item import Item
from stages.core.patch import Patch
from stages.core.score import Score
from stages.core.trajectory import Trajectory


@dataclass(frozen=True)
class Observation:
    """One train rollout as the optimizer sees it. `key` is the rollout's fact key.

    `reference` is the expected answer when `reflect.show` allows it, else None.
    """

    item: Item
    trajectory: Trajectory
    score: Score
    key: str
    reference: str | None = None


@dataclass(frozen=True)
class StepRecord:
    """A step as later steps see it.

    Attributes:
        verdict: accepted, rejected, indecisive, no_patch or no_change.
        edits: the selected edits; `results` says what became of each.
        before, after: gate means; None when not measured to the end.
        failure_types: how many train items of the step failed in each way.
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
        history: finished steps of this run, oldest first.
        meta_skill: the optimizer-side memory, "" when there is none.
        max_skill_tokens: hard limit of the document's size; None = none.
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
    """Proposes, merges, ranks. Further verbs (rewrite, slow update, meta skill) live beside
    these in the optimizers that have them."""

    @property
    def tag(self) -> str:
        """Name and version of the decision rules, e.g. `rules/1`."""

    async def reflect(self, view: StepView) -> Answer:
        """Return the patches (`list[Patch]`), one per analyst, failures first."""

    async def merge(self, view: StepView, patches: Sequence[Patch]) -> Answer:
        """Return the merged edits (`list[Edit]`) of one group; each names its parents."""

    async def choose_budget(self, view: StepView, edits: Sequence[Edit]) -> Answer:
        """Return how many of `edits` to apply (int, 0 to len(edits)): `autonomous` only."""

    async def rank(self, view: StepView, edits: Sequence[Edit]) -> Answer:
        """Return all indices of `edits`, best first (`list[int]`)."""

    async def close(self) -> None:
        """Free what the optimizer holds."""

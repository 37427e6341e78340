"""RunState: what is known of a run after an event; `evolve` takes in the next one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from skilltrail.core.canon import text_digest
from skilltrail.core.score import Score
from skilltrail.core.targets import Target, targets_in
from skilltrail.history.log import types
from skilltrail.history.log.events import Event, Said

Scores = Mapping[str, Score]  # by item id


@dataclass(frozen=True)
class Rejection:
    """A verdict against a text: its event, and the skill and scores it was held against."""

    event: int
    current: str
    scores: Scores


@dataclass(frozen=True)
class RunState:
    """What is known after an event.

    Attributes:
        start: what `run.started` says, None before.
        skill, version, scores: the newest version, and its score of each selection item; ""
            and None before version 0.
        best_skill, best_version, best_scores: the same of the best version.
        parent: the document that candidates are made of: the newest version, or the first
            parent that a method with a pool chose.
        documents: every document so far by digest, once a method with a pool was chosen.
        measured: scores of each version by its digest, once a method with a pool was chosen.
        fitness: scores of a document's last fitness on train items, by its digest.
        batches: train batches rolled out so far.
        candidate, candidate_scores: the candidate under judgement, and its scores.
        cumulative_loss: what selection items lacked to a hard 1, over judged evaluations.
        rolled_out: train items rolled out so far, in any step.
        last_soft: digest of the skill and soft score of each train item's last rollout.
        earlier_soft: the last soft score of an item with another skill than that one.
        seen: the step's events so far; emptied when a step begins or has ended.
        patches: events that carry patches in this step (with a pool: in any), by patch id.
        rejected: what was rejected so far, by the text's digest.
        ended, totals: how many steps ended in each way, and sums of their counts.
        stalled: steps since the last acceptance.
        epoch, epoch_skill: the epoch that has begun last, and the skill it began with.
        guidance_result: how the last slow update fared: a verdict, or "".
        meta_skill: the optimizer-side memory.
        broken: why documents can no longer be rebuilt, None while they can.
    """

    start: types.RunStarted | None = None
    skill: str = ""
    version: int | None = None
    parent: str = ""
    best_skill: str = ""
    best_version: int | None = None
    best_scores: Scores = field(default_factory=dict)
    documents: Mapping[str, str] | None = None
    measured: Mapping[str, Scores] = field(default_factory=dict)
    fitness: Mapping[str, Scores] = field(default_factory=dict)
    batches: int = 0
    candidate: str | None = None
    scores: Scores = field(default_factory=dict)
    candidate_scores: Scores = field(default_factory=dict)
    cumulative_loss: Mapping[str, Fraction] = field(default_factory=dict)
    rolled_out: frozenset[str] = frozenset()
    last_soft: Mapping[str, tuple[str, float | None]] = field(default_factory=dict)
    earlier_soft: Mapping[str, float | None] = field(default_factory=dict)
    seen: tuple[Event, ...] = ()
    patches: Mapping[str, Event] = field(default_factory=dict)
    rejected: Mapping[str, Rejection] = field(default_factory=dict)
    ended: Counter[str] = field(default_factory=Counter)
    totals: Counter[str] = field(default_factory=Counter)
    stalled: int = 0
    epoch: int = 0
    epoch_skill: str = ""
    guidance_result: str = ""
    meta_skill: str = ""
    broken: str | None = None
    last: Event | None = None

    @property
    def digest(self) -> str:
        """Digest of the newest version."""
        return text_digest(self.skill)

    def ids(self, split: str) -> list[str]:
        """Return the item ids of `train` or `selection`, in order."""
        if self.start is None:
            return []
        items = self.start.train if split == "train" else self.start.selection
        return [item.item for item in items]

    @property
    def targets(self) -> tuple[Target, ...]:
        """The targets of a run with several."""
        return () if self.start is None else targets_in(self.start.target)

    def latest(self, kind: type[Said]) -> Event | None:
        """Return the newest event of a class in this step."""
        type = types.type_of(kind)
        return next((event for event in reversed(self.seen) if event.type == type), None)

    def told(self, kind: type[Said]) -> Said | None:
        """Return what the newest event of a class in this step says."""
        event = self.latest(kind)
        return None if event is None else event.read(kind)

"""What an audit holds: a candidate's evidence, proposals, merging, verdict and aftermath.

Frozen data, each of them one part of the answer to *why was this accepted?*; they are filled
from the log in `audit_parts` and put together in `audit`. Only trajectories (prompt, reply,
expected answer) are facts and come through `RolloutEvidence`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from skilltrail.history.ask.line_history import Attempt, LineHistory
from skilltrail.skill.edit import Edit


@dataclass(frozen=True)
class Seen:
    """What one rollout sent and got back, shortened. None = not at hand."""

    prompt: str | None = None
    reply: str | None = None
    expected: str | None = None


class RolloutEvidence(Protocol):
    """The door to facts."""

    def look_up(self, item: str, key: str | None) -> Seen:
        """Return what is known of a train rollout."""

    def texts(self, item: str, key: str | None) -> Iterator[tuple[str, str]]:
        """Yield what each text of a train rollout is, and the text: the item's, then turns'."""


class LogOnly:
    """Evidence when there is no store: the log names the facts, nothing more."""

    def look_up(self, item: str, key: str | None) -> Seen:
        return Seen()

    def texts(self, item: str, key: str | None) -> Iterator[tuple[str, str]]:
        yield from ()


@dataclass(frozen=True)
class Basis:
    """A train rollout that the change was learned from."""

    item: str
    hard: float | None
    soft: float | None
    reason: str
    failure_type: str | None
    key: str | None
    seen: Seen


@dataclass(frozen=True)
class Proposal:
    """One analyst's patch: what it saw, said and proposed."""

    patch: str
    source: str
    by: str
    items: tuple[str, ...]
    reasoning: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Merge:
    """Patches that became one."""

    patch: str
    level: int
    group: str
    inputs: tuple[str, ...]
    by: str
    reason: str
    edits: tuple[Edit, ...]
    dropped: tuple[str, ...]


@dataclass(frozen=True)
class Tried:
    """One edit of the candidate: its words, its descent, how it applied, what came of it."""

    edit: Edit
    descent: tuple[str, ...]
    status: str
    lines: tuple[int, ...]
    detail: str
    fate: LineHistory | None


@dataclass(frozen=True)
class Flip:
    """A selection item whose score moved."""

    item: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Judgement:
    """The gate's verdict with the items it won and lost."""

    verdict: str
    rule: str
    metric: str
    before: float | None
    after: float | None
    after_max: float | None
    gain: float | None
    judged: int
    total: int
    won: tuple[Flip, ...]
    lost: tuple[Flip, ...]
    statistic: Mapping[str, Any] | None
    forced: bool
    saved: int
    reason: str
    cost: Mapping[str, Any] | None = None
    targets: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class LineOrigin:
    """A written line, its risks, and the train item whose text first carried its words.

    Attributes:
        item: None where no rollout at hand holds a run of its words.
        where: what of the item or rollout holds them, e.g. `tool answer`.
        phrase: the first run of words that stands there, in small letters.
    """

    line: str
    risks: tuple[str, ...]
    item: str | None
    where: str
    step: int | None
    phrase: str


@dataclass(frozen=True)
class Audit:
    """All about one candidate.

    Attributes:
        subject: what was asked, in words.
        lines: the numbers and texts of the lines asked about, where it was lines.
        parents: which documents of the pool the step worked on, in words.
        left_out: (edit id, reason) of merged edits that were not selected.
        cases: rollouts behind the proposals, those behind the edits first.
        origins: where the written lines asked about came from, and what risks they carry.
        attempts: what later steps tried in vain on the lines asked about, else on all it wrote.
    """

    subject: str
    version: int | None
    parent_version: int | None
    epoch: int | None
    step: int | None
    source: str
    result: str
    lines: tuple[tuple[int, str], ...] = ()
    parents: str = ""
    cases: tuple[Basis, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    unusable_replies: tuple[str, ...] = ()
    merges: tuple[Merge, ...] = ()
    budget: int | None = None
    budget_reason: str = ""
    selected: tuple[str, ...] = ()
    selected_by: str = ""
    left_out: tuple[tuple[str, str], ...] = ()
    edits: tuple[Tried, ...] = ()
    faults: tuple[str, ...] = ()
    diff: str = ""
    gate: Judgement | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    attempts: tuple[Attempt, ...] = ()
    origins: tuple[LineOrigin, ...] = ()

"""A pool of versions: documents that were measured in full, and what each was made of.

What a step needs to know of it is folded from the steps before; the log holds the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from skilltrail.core.score import Score
from skilltrail.method.gate import GateRule
from skilltrail.method.run import State
from skilltrail.methods.steps import PoolMember
from skilltrail.optimizers.protocol import StepRecord


@dataclass(frozen=True)
class Known:
    """A version in the pool.

    Attributes:
        parents: versions it was made of; () for the seed.
        history: the steps that changed this very document, for the optimizer's memory.
    """

    version: int
    text: str
    scores: Mapping[str, Score]
    parents: tuple[int, ...] = ()
    history: tuple[StepRecord, ...] = ()

    def member(self, rule: GateRule, weight: int | None = None) -> PoolMember:
        return PoolMember(self.text, self.version, rule.mean(self.scores), weight)

    def tried(self, record: StepRecord) -> Known:
        """Return it after a step. A child that was taken up is nothing to make again, so to
        this document's memory it is as good as lost."""
        verdict = "rejected" if record.verdict == "accepted" else record.verdict
        return replace(self, history=(*self.history, replace(record, verdict=verdict)))


Pool = tuple[Known, ...]


def begin(state: State) -> Pool:
    """Return the pool of the seed skill alone."""
    return (Known(0, state.skill, state.scores),)


def grown(pool: Pool, before: State, after: State, parents: tuple[int, ...]) -> Pool:
    """Return the pool after a step on `parents`: each remembers it, a new version joins."""
    record = after.history[-1]
    pool = tuple(one.tried(record) if one.version in parents else one for one in pool)
    if after.version is None or after.version == before.version:
        return pool
    return (*pool, Known(after.version, after.skill, after.scores, parents))


def ancestors(pool: Pool, version: int) -> set[int]:
    """Return the versions that a version descends from, itself included."""
    found, todo = set[int](), [version]
    while todo:
        found.add(one := todo.pop())
        todo += [parent for parent in pool[one].parents if parent not in found]
    return found

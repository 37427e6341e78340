"""What the verdicts of earlier steps forbid and suggest.

All steps after the last accepted one tried changes of the very same document, so a set of
edits that lost among them would lose again. That is all the memory there is: it is read from
the history each time and kept nowhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from skilltrail.optimizers.protocol import StepRecord
from skilltrail.optimizers.rules.writing import as_edit
from skilltrail.skill.edit import Edit, EditStatus

# An edit without its ids: two edits with the same face do the same to the same document.
Face = tuple[str, str, str]


def face(edit: Edit) -> Face:
    """Return what an edit does, whatever the update mode calls it and wherever it inserts."""
    op, target = edit.op, edit.target.strip()
    if op == "suggest":
        op = as_edit(edit).op
    if op == "insert_after":
        op, target = "append", ""
    return (op, target, edit.content.strip())


def faces(edits: Iterable[Edit]) -> frozenset[Face]:
    return frozenset(face(edit) for edit in edits)


@dataclass(frozen=True)
class Memory:
    """Attempts on the current document.

    Attributes:
        lost: sets of edits that were judged and did not win, oldest first.
        reach: how many edits the next step may try at once; None = as many as it has room for.
            Twice what was accepted, half of what lost.
        perfect: the gate gave the current document the full score: nothing can beat it.
    """

    lost: tuple[frozenset[Face], ...] = ()
    reach: int | None = None
    perfect: bool = False

    def forbids(self, edits: Sequence[Edit]) -> bool:
        """Return whether exactly these edits lost on this document."""
        return faces(edits) in self._lost

    def tried(self, edit: Edit) -> float:
        """Return how much was seen of the edit: each lost set tells of its share in it."""
        return self._tries.get(face(edit), 0.0)

    @property
    def singles(self) -> int:
        """Return how many single edits lost."""
        return sum(len(attempt) == 1 for attempt in self.lost)

    @cached_property
    def _lost(self) -> frozenset[frozenset[Face]]:
        return frozenset(self.lost)

    @cached_property
    def _tries(self) -> dict[Face, float]:
        shares: dict[Face, float] = defaultdict(float)
        for attempt in self.lost:
            for one in attempt:
                shares[one] += 1 / len(attempt)
        return dict(shares)


class Recall:
    """What histories say; one that goes on from the last one asked for is read from there."""

    def __init__(self) -> None:
        self._history: tuple[StepRecord, ...] = ()
        self._memory = Memory()

    def of(self, history: Sequence[StepRecord]) -> Memory:
        """Return the memory of the steps since the last accepted one."""
        known = len(self._history)
        if tuple(history[:known]) != self._history:
            known, self._memory = 0, Memory()
        for record in history[known:]:
            self._memory = _after(self._memory, record)
        self._history = tuple(history)
        return self._memory


def _after(memory: Memory, record: StepRecord) -> Memory:
    if record.verdict == "accepted":
        return Memory(reach=2 * len(_applied(record)), perfect=record.after == 1.0)
    faces = _applied(record) if record.verdict != "no_patch" else frozenset()
    if not faces:
        return memory
    return Memory((*memory.lost, faces), max(1, len(faces) // 2), memory.perfect)


def _applied(record: StepRecord) -> frozenset[Face]:
    applied = {r.edit for r in record.results if r.status is EditStatus.APPLIED}
    if applied and all(edit.op in ("suggest", "rewrite") for edit in record.edits):
        return faces(record.edits)  # they are in the document that was written of them
    return faces(edit for edit in record.edits if edit.id in applied)

"""Which move a step makes: a pure function of what the step may know.

At the start the document grows by as many worked examples as the edit budget allows. How many
a step may try at once follows the gate, as the radius of a trust region does (Conn, Gould and
Toint, 2000): twice as many as were accepted, half of as many as lost. Single changes are of
every sort in turn. A change that lost on this very document is not tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from skilltrail.core.tokens import count_tokens
from skilltrail.optimizers.protocol import StepView
from skilltrail.optimizers.rules.epochs import weights
from skilltrail.optimizers.rules.lessons import (
    KnownItems,
    considered,
    read_lessons,
    sort_evidence,
)
from skilltrail.optimizers.rules.memory import Memory
from skilltrail.optimizers.rules.moves import Desk, advise, drop, grow, swap
from skilltrail.optimizers.rules.writing import in_mode
from skilltrail.skill.edit import Edit


@dataclass(frozen=True)
class Plan:
    """The move of one step: its edits, best first, and why it was chosen."""

    edits: tuple[Edit, ...]
    reason: str
    types: dict[str, str]


def make_plan(view: StepView, known: KnownItems, memory: Memory) -> Plan:
    """Return the plan of one step; no edits when every move has lost or none exists."""
    lessons = read_lessons(view, known)
    view = considered(view, known, lessons)
    evidence = sort_evidence(view, known, lessons)
    desk = Desk(view, known, lessons, evidence, memory)
    types = dict(evidence.types)
    if view.budget == 0:
        return Plan((), "the edit budget is 0", types)
    if desk.memory.perfect:
        return Plan((), "the document has the full score already", types)
    for name, move in _agenda(desk):
        for edits in move:
            if not edits or not _fits(view, edits):
                continue
            proposed = in_mode(view, edits)
            if not desk.memory.forbids(proposed):
                return Plan(tuple(proposed), name, types)
    return Plan((), "every move on this document has lost", types)


def _fits(view: StepView, edits: Sequence[Edit]) -> bool:
    """Return whether the document stays within `max_skill_tokens` with these edits.

    What an edit adds counts as its text and one line end.
    """
    if view.max_skill_tokens is None:
        return True
    size = count_tokens(view.skill)
    for edit in edits:
        size += count_tokens(edit.content) + 1 if edit.op != "delete" else 0
        size -= count_tokens(edit.target) if edit.op in ("replace", "delete") else 0
    return size <= view.max_skill_tokens


def _agenda(desk: Desk) -> Iterator[tuple[str, Iterator[list[Edit]]]]:
    """Yield moves in the order they are to be tried, none of them before it is asked for."""
    budget, reach = desk.view.budget, desk.memory.reach
    most = min(desk.room, 4 if budget is None else budget)
    if reach is None or reach > 1:
        yield from _bold(desk, most if reach is None else min(most, reach))
    single: Mapping[str, Callable[[], Iterator[list[Edit]]]] = {
        "example added": lambda: grow(desk, 1) if desk.room else iter(()),
        "example swapped": lambda: swap(desk, 1),
        "line added": lambda: advise(desk),
        "part removed": lambda: drop(desk),
    }
    # Examples teach most: every other single edit adds one, the rest take turns. What the meta
    # skill knows to win comes before what it knows to lose.
    first, *others = single
    turn, even = divmod(desk.memory.singles, 2)
    turns = [*others[turn % 3 :], *others[: turn % 3]]
    turns.insert(even, first)
    share = weights(desk.view.meta_skill)
    for name in sorted(turns, key=lambda name: -share[name]):
        yield f"one {name}", single[name]()


def _bold(desk: Desk, most: int) -> Iterator[tuple[str, Iterator[list[Edit]]]]:
    """Yield the move after a success: as much as budget and room allow."""
    if most > 1 and not desk.lessons.lines:
        yield "a first instruction line and worked examples", _with_line(desk, most)
    for count in range(most, 0, -1):
        yield f"{count} worked examples more", grow(desk, count)
    budget = desk.view.budget
    for count in range(min(2, 2 if budget is None else budget), 0, -1):
        yield f"{count} worked examples swapped", swap(desk, count)


def _with_line(desk: Desk, most: int) -> Iterator[list[Edit]]:
    line = next(advise(desk), None)
    for examples in grow(desk, most - 1):
        yield examples if line is None else [*line, *examples]

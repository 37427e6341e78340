"""The changes that `rules` can think of for one document, each a short list of edits.

    grow    add worked examples of items that cover the failures best
    swap    put such examples in the place of those that are missed least
    advise  add the catalogue's line against a frequent failure type, or put it for another line
    drop    take out an instruction line or a worked example

Each is a generator, best first; the caller takes the first that has not lost yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, islice

from skilltrail.core.order import order_key
from skilltrail.optimizers.protocol import StepView
from skilltrail.optimizers.rules.coverage import (
    SUCCESS_WEIGHT,
    Cover,
    Likeness,
    greedy_order,
    least_missed,
)
from skilltrail.optimizers.rules.lessons import Evidence, KnownItems, Lessons, item_line
from skilltrail.optimizers.rules.memory import Memory
from skilltrail.skill.edit import Edit

# Limits of what the document teaches by example: beyond them reading time grows and small
# models' contexts fill up.
MAX_EXAMPLES = 20
MAX_EXAMPLE_CHARS = 8000
# A failure of an earlier batch may be one of an earlier document, and solved by now.
STALE_WEIGHT = 0.5
# How many of the items behind an edit it names; how many there are its reason says.
MOST_NAMED = 50
# How far down the order of need moves look.
MOST_WANTED = 48


@dataclass(frozen=True)
class Desk:
    """All that a move is made from."""

    view: StepView
    known: KnownItems
    lessons: Lessons
    evidence: Evidence
    memory: Memory

    @property
    def room(self) -> int:
        """How many examples may be added."""
        if sum(map(len, self.lessons.examples.values())) >= MAX_EXAMPLE_CHARS:
            return 0
        return max(0, MAX_EXAMPLES - len(self.lessons.examples))

    @cached_property
    def texts(self) -> dict[str, str]:
        """Item id -> its worked example, of every item of the pool that has one."""
        rendered = {id: self.known.example(o.item) for id, o in self.view.pool.items()}
        return {id: text for id, text in rendered.items() if text is not None}

    @cached_property
    def weights(self) -> dict[str, float]:
        """Item id -> how much it counts to cover it."""
        today = {o.item.id for o in self.view.observations}
        failed = {id: 1.0 if id in today else STALE_WEIGHT for id in self.evidence.failed}
        return failed | dict.fromkeys(self.evidence.passed, SUCCESS_WEIGHT)

    @cached_property
    def likeness(self) -> Likeness:
        return self.known.likeness(self.evidence.traits)

    def cover(self) -> Cover:
        """Return the cover that the document's examples give now.

        It is guessed from what items share with the examples. Of this step's failures it is
        seen: one that an example is like needs another example.
        """
        cover = Cover(self.likeness, self.weights)
        for id in self.lessons.examples:
            cover.add(id)
        for observation in self.view.observations:
            if observation.item.id in self.evidence.failed:
                cover.uncover(observation.item.id)
        return cover

    @cached_property
    def covered(self) -> Cover:
        """The same, for questions: nothing is added to it."""
        return self.cover()

    def wanted(self, count: int) -> list[str]:
        """Return up to `count` items worth an example, in the order of need.

        An item that was tried on this document in vain counts half as much, a third after
        the second time; with others, it was tried by its share among them. An item that did
        not fail stands behind all that did.
        """
        known = self._wanted[0]
        known += islice(self._wanted[1], max(0, count - len(known)))
        return known[:count]

    @cached_property
    def _wanted(self) -> tuple[list[str], Iterator[str]]:
        """The beginning of the order of need, and the rest: finding an item takes long."""

        @cache  # asked for several times of an item, with another gain
        def about(id: str) -> tuple[float, float, float]:
            tried = self.memory.tried(Edit("append", content=self.texts[id]))
            chance = int(order_key(self.view.seed, 0, id)[:8], 16)
            return 1 + tried, -float(len(self.texts[id])), float(chance)

        def worth(id: str, gain: float) -> tuple[float, ...]:
            less, short, chance = about(id)
            return (gain / less, short, chance)

        cover, sides = self.cover(), (self.evidence.failed, self.evidence.passed)
        orders = (
            greedy_order(cover, (id for id in side if id in self.texts), worth)
            for side in sides
        )
        return [], islice(chain.from_iterable(orders), MOST_WANTED)

    @cached_property
    def leaving(self) -> list[str]:
        """The document's examples, first the one that is missed least."""
        return least_missed(list(self.lessons.examples), self.likeness.covered)


def grow(desk: Desk, count: int) -> Iterator[list[Edit]]:
    """Yield ways to add `count` worked examples: the best, then each later choice."""
    for _, coming in _runs(desk, count):
        yield [added(desk, id) for id in coming]


def swap(desk: Desk, count: int) -> Iterator[list[Edit]]:
    """Yield ways to replace `count` examples, the least missed ones first."""
    for start, coming in _runs(desk, count):
        shift = start % len(desk.leaving) if desk.leaving else 0
        going = (desk.leaving[shift:] + desk.leaving[:shift])[:count]
        if len(going) == count:
            yield [_swapped(desk, *pair) for pair in zip(coming, going, strict=True)]


def _runs(desk: Desk, count: int) -> Iterator[tuple[int, list[str]]]:
    """Yield each place in the order of need with the `count` items that stand there."""
    start = 0
    while len(coming := desk.wanted(start + count)[start:]) == count:
        yield start, coming
        start += 1


def advise(desk: Desk) -> Iterator[list[Edit]]:
    """Yield single lines against the most frequent failures, then such in place of others."""
    lines = list(_new_lines(desk))
    anchor = desk.lessons.anchor
    gap = "" if anchor is None or anchor in desk.lessons.lines else "\n"
    for text, reason, items in lines:
        op = "append" if anchor is None else "insert_after"
        yield [
            Edit(op, "" if anchor is None else anchor, gap + text, reason=reason, items=items)
        ]
    for old in desk.lessons.lines:
        for text, reason, items in lines:
            yield [
                Edit(
                    "replace",
                    old,
                    text,
                    reason=f"{reason}, unlike the line it replaces",
                    items=items,
                )
            ]


def _new_lines(desk: Desk) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield catalogue lines that are not in the document, why, and the items behind each."""
    for failure_type, ids in desk.evidence.items_by_type.items():
        failed = [desk.view.pool[id].item for id in ids]
        for line, behind in desk.known.env.catalogue.lines(failure_type, failed).items():
            text = item_line(line)
            if text not in desk.lessons.lines:
                reason = f"{len(behind)} failed as {failure_type!r}, which this line is against"
                yield text, reason, tuple(behind)


def drop(desk: Desk) -> Iterator[list[Edit]]:
    """Yield single deletions: instruction lines, then examples, the least missed first."""
    for line in desk.lessons.lines:
        yield [_removed(desk, line, "rule", "instruction line")]
    for id in desk.leaving:
        yield [_removed(desk, desk.lessons.examples[id], "example", "worked example")]


def added(desk: Desk, id: str) -> Edit:
    """Return the edit that adds the example of one item."""
    return Edit(
        op="append",
        content=desk.texts[id],
        kind="example",
        reason=_why(desk, id),
        items=_behind(desk, id),
    )


def _swapped(desk: Desk, coming: str, going: str) -> Edit:
    return Edit(
        op="replace",
        target=desk.lessons.examples[going],
        content=desk.texts[coming],
        kind="example",
        reason=f"in place of the example of {going}, missed least: {_why(desk, coming)}",
        items=_behind(desk, coming),
    )


def _removed(desk: Desk, text: str, kind: str, what: str) -> Edit:
    items = tuple(islice(desk.evidence.passed, MOST_NAMED))
    return Edit("delete", text, kind=kind, reason=f"may this {what} be spared?", items=items)


def _why(desk: Desk, id: str) -> str:
    failure = desk.evidence.types.get(id)
    if failure is None:
        return "a solved item that is little like the examples so far"
    return f"failed as {failure!r}; {len(_alike(desk, id))} more failures are like it"


def _behind(desk: Desk, id: str) -> tuple[str, ...]:
    """Return the train items an example stands for: itself, then failures like it."""
    return (id, *_alike(desk, id)[: MOST_NAMED - 1])


def _alike(desk: Desk, id: str) -> list[str]:
    others = [other for other in desk.evidence.failed if other != id]
    return desk.covered.alike(id, others)

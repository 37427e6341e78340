"""The changes that `rules` can think of for one document, each a short list of edits.

    grow    add worked examples of the kinds of items that fail most for what is taught of them
    swap    put such an example in the place of another
    advise  add the catalogue's instruction line against a frequent failure type
    drop    take out an instruction line or a worked example

Each is a generator, best first; the caller takes the first that has not lost yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from stages.core.edit import Edit
from stages.core.order import order_key
from stages.envs.teaching import Teachable
from stages.optimizers.protocol import StepView
from stages.optimizers.rules.lessons import Evidence, Lessons, item_line
from stages.optimizers.rules.memory import Memory

# More examples than this were seen to add reading time and hardly any right answers.
MAX_EXAMPLES = 20


@dataclass(frozen=True)
class Desk:
    """All that a move is made from."""

    view: StepView
    env: Teachable
    lessons: Lessons
    evidence: Evidence
    memory: Memory

    @property
    def room(self) -> int:
        return MAX_EXAMPLES - len(self.lessons.examples)


def grow(desk: Desk, count: int) -> Iterator[list[Edit]]:
    """Yield ways to add `count` worked examples: the best, then each later choice."""
    wanted = ranked_items(desk)
    for start in range(len(wanted)):
        chosen = wanted[start : start + count]
        if len(chosen) == count:
            yield [_added(desk, id) for id in chosen]


def swap(desk: Desk, count: int) -> Iterator[list[Edit]]:
    """Yield ways to replace `count` examples, each by one of the same kind if there is one."""
    wanted = ranked_items(desk)
    for start in range(len(wanted)):
        edits: list[Edit] = []
        for id in wanted[start:]:
            leaving = _leaving(desk, id, {edit.target for edit in edits})
            if leaving is not None and len(edits) < count:
                edits.append(_swapped(desk, id, leaving))
        if len(edits) == count:
            yield edits


def advise(desk: Desk) -> Iterator[list[Edit]]:
    """Yield single catalogue lines, against the most frequent failure type first."""
    for failure_type, ids in desk.evidence.items_by_type.items():
        for line in desk.env.catalogue.lines(failure_type):
            text = item_line(line)
            if text in desk.lessons.lines:
                continue
            anchor = desk.lessons.anchor
            yield [
                Edit(
                    op="append" if anchor is None else "insert_after",
                    target="" if anchor is None else anchor,
                    content=text,
                    kind="rule",
                    reason=f"{len(ids)} failed as {failure_type!r}, which this line is against",
                    items=tuple(ids),
                )
            ]


def drop(desk: Desk) -> Iterator[list[Edit]]:
    """Yield single deletions: instruction lines, then examples, oldest first."""
    passed = tuple(desk.evidence.passed)
    for line in desk.lessons.lines:
        yield [_removed(line, "rule", passed)]
    for text in desk.lessons.examples.values():
        yield [_removed(text, "example", passed)]


def ranked_items(desk: Desk) -> list[str]:
    """Return the items worth an example, in the order of need.

    Kinds take turns: next comes the kind with most failures for each example that is taught of
    it. Within a kind come items that lost least often, then short ones, which cost least to
    read. Items that did not fail follow, so that a run without failures can still improve.
    """
    seed = desk.view.seed

    def cost(id: str) -> tuple[int, int, int, str]:
        tried = desk.memory.times_tried(_added(desk, id))
        late = 0 if id in batch else 1
        size = len(desk.env.example(desk.evidence.failed[id].item) or "")
        return (tried, late, size, order_key(seed, 0, id))

    batch = {o.item.id for o in desk.view.observations}
    queues = {
        kind: sorted(filter(lambda id: _usable(desk, id), ids), key=cost)
        for kind, ids in desk.evidence.failures_by_kind.items()
    }
    failures = {kind: len(queue) for kind, queue in queues.items()}
    taught = Counter(kind_of_example(desk, id) for id in desk.lessons.examples)
    order: list[str] = []
    while any(queues.values()):
        kind = max(
            (kind for kind, queue in queues.items() if queue),
            key=lambda k: (failures[k] / (1 + taught[k]), order_key(seed, 1, k)),
        )
        order.append(queues[kind].pop(0))
        taught[kind] += 1
    spare = [id for id in desk.evidence.passed if _usable(desk, id)]
    spare.sort(key=lambda id: (taught[desk.evidence.kinds[id]], order_key(seed, 2, id)))
    return order + spare


def kind_of_example(desk: Desk, id: str) -> str:
    """Return the kind of a taught item."""
    return desk.env.kind(desk.view.pool[id].item)


def _usable(desk: Desk, id: str) -> bool:
    return desk.env.example(desk.view.pool[id].item) is not None


def _example(desk: Desk, id: str) -> str:
    text = desk.env.example(desk.view.pool[id].item)
    assert text is not None
    return text


def _added(desk: Desk, id: str) -> Edit:
    return Edit(
        op="append",
        content=_example(desk, id),
        kind="example",
        reason=_why(desk, id),
        items=_behind(desk, id),
    )


def _swapped(desk: Desk, id: str, leaving: str) -> Edit:
    return Edit(
        op="replace",
        target=leaving,
        content=_example(desk, id),
        kind="example",
        reason=f"in place of a weaker example: {_why(desk, id)}",
        items=_behind(desk, id),
    )


def _removed(text: str, kind: str, passed: tuple[str, ...]) -> Edit:
    what = "instruction line" if kind == "rule" else "worked example"
    return Edit("delete", text, kind=kind, reason=f"may this {what} be spared?", items=passed)


def _why(desk: Desk, id: str) -> str:
    kind, failure = desk.evidence.kinds[id], desk.evidence.types.get(id)
    if failure is None:
        return f"a solved item of a kind with few examples ({kind})"
    alike = len(desk.evidence.failures_by_kind[kind])
    return f"failed as {failure!r}; {alike} items of its kind ({kind}) fail"


def _behind(desk: Desk, id: str) -> tuple[str, ...]:
    """Return the train items an example stands for: itself first, then failures alike."""
    alike = desk.evidence.failures_by_kind.get(desk.evidence.kinds[id], [])
    return (id, *(other for other in alike if other != id))


def _leaving(desk: Desk, id: str, gone: set[str]) -> str | None:
    """Return the example that gives way to `id`: of its kind, else of the most taught kind."""
    kinds = {other: kind_of_example(desk, other) for other in desk.lessons.examples}
    taught = Counter(kinds.values())
    left = [o for o, text in desk.lessons.examples.items() if text not in gone]
    if not left:
        return None
    own = desk.evidence.kinds[id]
    place = {other: at for at, other in enumerate(left)}
    best = min(left, key=lambda o: (kinds[o] != own, -taught[kinds[o]], place[o]))
    return desk.lessons.examples[best]

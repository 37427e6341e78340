"""What the current skill document already teaches: its worked examples and catalogue lines."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from skilltrail.core.canon import texts_in
from skilltrail.core.item import Item
from skilltrail.core.order import order_key
from skilltrail.core.score import Score
from skilltrail.envs.protocol import Environment
from skilltrail.optimizers.protocol import Observation, StepView
from skilltrail.optimizers.rules.coverage import Likeness

# The failure type that no scorer can see: it takes the document to tell. An environment has it
# where its `rules.yaml` lists it.
LEAKED = "leaked"
# More items than these are sampled: what covers a thousand of a kind covers the others too, and
# the time that a step takes grows with the square.
MOST_ITEMS = 1000


@dataclass(frozen=True)
class Lessons:
    """The taught part of one skill document.

    Attributes:
        examples: train item id -> its worked example as it stands in the document, in the
            order of the document.
        lines: catalogue lines that stand in the document, in its order, as Markdown items.
        anchor: the line after which a further instruction line belongs; None = at the end.
    """

    examples: Mapping[str, str]
    lines: tuple[str, ...]
    anchor: str | None


class KnownItems:
    """What an environment says of train items, asked once for each of them in a run.

    What is computed of it is kept as well, since most of it is the same at the next step.
    """

    def __init__(self, env: Environment) -> None:
        self.env = env
        self._examples: dict[str, str | None] = {}
        self._beginning: dict[str, list[str]] = defaultdict(list)
        self._traits: dict[str, frozenset[str]] = {}
        self._likeness: tuple[Mapping[str, frozenset[str]], Likeness] | None = None
        self._orders: dict[int, list[tuple[str, str]]] = defaultdict(list)
        self._ordered: dict[int, set[str]] = defaultdict(set)

    def example(self, item: Item) -> str | None:
        """Return the item's worked example; None where it has none."""
        if item.id not in self._examples:
            text = self._examples[item.id] = self.env.example(item)
            if text is not None:
                self._beginning[text.partition("\n")[0]].append(item.id)
        return self._examples[item.id]

    def traits(self, item: Item) -> frozenset[str]:
        if item.id not in self._traits:
            self._traits[item.id] = self.env.traits(item)
        return self._traits[item.id]

    def likeness(self, traits: Mapping[str, frozenset[str]]) -> Likeness:
        """Return how alike items of these traits are."""
        if self._likeness is None or self._likeness[0] != traits:
            self._likeness = (traits, Likeness(traits))
        return self._likeness[1]

    def standing_in(
        self, skill: str, pool: Mapping[str, Observation]
    ) -> Iterator[tuple[int, str, str]]:
        """Yield place, id and text of each example of `pool` that is whole lines of `skill`.

        The lines of the document lead to the examples that begin so: of ten thousand items
        few are in it.
        """
        for id in pool.keys() - self._examples.keys():
            self.example(pool[id].item)
        found: set[str] = set()
        ended, at = f"{skill}\n", 0
        for line in skill.split("\n"):
            for id in self._beginning.get(line, ()):
                text = self._examples[id]
                if id not in found and id in pool and ended.startswith(f"{text}\n", at):
                    assert text is not None
                    found.add(id)
                    yield at, id, text
            at += len(line) + 1

    def in_turn(self, ids: Set[str], seed: int) -> Iterator[str]:
        """Yield `ids` in the order that a seed gives them."""
        order, placed = self._orders[seed], self._ordered[seed]
        for id in ids - placed:
            insort(order, (order_key(seed, 0, id), id))
        placed.update(ids)
        return (id for _, id in order if id in ids)


def item_line(line: str) -> str:
    """Return a catalogue line as an item of a Markdown list."""
    return f"- {line}"


def read_lessons(view: StepView, known: KnownItems) -> Lessons:
    """Return what `view.skill` teaches; examples are found among train items seen so far."""
    found = sorted(known.standing_in(view.skill, view.pool))
    taught = {item_line(line) for line in known.env.catalogue.all_lines}
    rows = view.skill.split("\n")
    lines = tuple(row for row in rows if row in taught)
    return Lessons(
        examples={id: text for _, id, text in found},
        lines=lines,
        anchor=_anchor(view.skill[: found[0][0]] if found else view.skill, lines, rows),
    )


def _anchor(before: str, lines: tuple[str, ...], rows: list[str]) -> str | None:
    """Return a line that stands once: the last taught one, else the last before examples.

    Nothing from the first HTML comment on is an anchor: protected regions begin with one.
    """
    texts = [row for row in before.partition("<!--")[0].split("\n") if row.strip()]
    last = lines[-1] if lines else (texts[-1] if texts else None)
    return last if last is not None and rows.count(last) == 1 else None


@dataclass(frozen=True)
class Evidence:
    """The train rollouts of one step, sorted into failures and successes.

    Attributes:
        failed: latest observation of every failed item that is no example yet; those of this
            step's batch come first, then the rest of the pool.
        passed: the same for successes.
        types: item id -> failure type, of `failed`.
        traits: item id -> the environment's traits, of the whole pool.
    """

    failed: Mapping[str, Observation]
    passed: Mapping[str, Observation]
    types: Mapping[str, str]
    traits: Mapping[str, frozenset[str]]

    @cached_property
    def items_by_type(self) -> dict[str, list[str]]:
        """Failure type -> ids of its items, most frequent type first."""
        groups: dict[str, list[str]] = {}
        for id, name in self.types.items():
            groups.setdefault(name, []).append(id)
        return dict(sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def is_failure(score: Score, threshold: float) -> bool:
    """Return whether a scored rollout is below the success threshold."""
    return score.hard is not None and score.hard < threshold


def is_leaked(observation: Observation, lessons: Lessons, view: StepView) -> bool:
    """Return whether the answer of a worked example was given to another item.

    That can be told of this step's rollouts alone: they were made with this document. An
    answer that stands in the item's own input is a choice of the model and no leak.
    """
    said = observation.trajectory.answer.strip().casefold()
    if not said or all(one is not observation for one in view.observations):
        return False
    taught = (view.pool[id].reference for id in lessons.examples)
    if all(answer is None or answer.strip().casefold() != said for answer in taught):
        return False
    return all(said not in text.casefold() for text in texts_in(observation.item.input))


def considered(view: StepView, known: KnownItems, lessons: Lessons) -> StepView:
    """Return the view with a pool of at most `MOST_ITEMS`.

    This step's items and the document's examples are among them, then as many others as have
    room, in an order that the seed gives.
    """
    if len(view.pool) <= MOST_ITEMS:
        return view
    first = {o.item.id for o in view.observations} | lessons.examples.keys()
    others = (id for id in known.in_turn(view.pool.keys(), view.seed) if id not in first)
    kept = first | set(islice(others, max(0, MOST_ITEMS - len(first))))
    return replace(view, pool={id: one for id, one in view.pool.items() if id in kept})


def sort_evidence(view: StepView, known: KnownItems, lessons: Lessons) -> Evidence:
    """Return the failures and successes that `view` shows."""
    catalogue = known.env.catalogue
    failed: dict[str, Observation] = {}
    passed: dict[str, Observation] = {}
    for id in [*(o.item.id for o in view.observations), *sorted(view.pool)]:
        observation = view.pool[id]
        if id in lessons.examples or observation.score.hard is None:
            continue
        side = failed if is_failure(observation.score, view.success_threshold) else passed
        side.setdefault(id, observation)
    leaks = any(kind.name == LEAKED for kind in catalogue.types)

    def type_of(observation: Observation) -> str:
        if leaks and is_leaked(observation, lessons, view):
            return LEAKED
        return catalogue.type_of(observation.score)

    return Evidence(
        failed=failed,
        passed=passed,
        types={id: type_of(o) for id, o in failed.items()},
        traits={id: known.traits(view.pool[id].item) for id in sorted(view.pool)},
    )

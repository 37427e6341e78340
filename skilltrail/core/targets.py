"""Several targets: one skill for several frozen models, each with a weight and a floor.

An item on one of them is a *case*, named `ITEM on TARGET`; where a run has one target a case is
the item. A run's target says whether there are several: its identity is then
`{"targets": {name: {"model", "weight", "floor"}}}`, so that whatever holds targets against each
other needs to know nothing of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from skilltrail.core.score import exact, exact_mean

Value = TypeVar("Value")
Values = Mapping[str, Fraction | None]  # by case


@dataclass(frozen=True)
class Target:
    """One of several targets.

    Attributes:
        weight: of its items in the run's score.
        floor: the mean that no accepted skill may bring it below.
    """

    name: str
    weight: float = 1.0
    floor: float = 0.0


class OfItem(Protocol):
    """What says which item, on which target, it is of."""

    @property
    def item(self) -> str: ...

    @property
    def target(self) -> str | None: ...


def targets_in(identity: Mapping[str, Any]) -> tuple[Target, ...]:
    """Return the targets that an identity names, by name; () where it is one model."""
    several = identity.get("targets", {})
    return tuple(
        Target(name, float(several[name]["weight"]), float(several[name]["floor"]))
        for name in sorted(several)
    )


def case_name(item: str, target: str | None) -> str:
    """Return the name of an item on a target."""
    return item if target is None else f"{item} on {target}"


def case_of(row: OfItem) -> str:
    """Return the name of the case that a row of rollouts is of."""
    return row.item if row.target is None else case_name(row.item, row.target)


def target_of(case: str, targets: Sequence[Target]) -> Target | None:
    """Return the target of a case; None where there is but one."""
    name = case.rpartition(" on ")[2] if targets else None
    return next((target for target in targets if target.name == name), None)


def item_of(case: str, targets: Sequence[Target]) -> str:
    """Return the id of a case's item."""
    return case.rpartition(" on ")[0] if targets else case


def cases_of(items: Iterable[str], targets: Sequence[Target]) -> list[str]:
    """Return the cases of items, those of an item together, in their order."""
    names = [target.name for target in targets] if targets else [None]
    return [case_name(item, name) for item in items for name in names]


def of_target(values: Mapping[str, Value], name: str) -> dict[str, Value]:
    """Return the values of one target, by item."""
    end = f" on {name}"
    return {case.removesuffix(end): v for case, v in values.items() if case.endswith(end)}


def weighted_mean(values: Values, targets: Sequence[Target]) -> Fraction | None:
    """Return the mean over the cases that have a value, each with its target's weight."""
    if not targets:
        return exact_mean(values.values())
    weights = {target.name: exact(target.weight) for target in targets}
    total = weight = Fraction(0)
    for case, value in values.items():
        if value is not None:
            own = weights[case.rpartition(" on ")[2]]
            total, weight = total + own * value, weight + own
    return total / weight if weight else None


def by_item(values: Values, targets: Sequence[Target]) -> dict[str, Fraction | None]:
    """Return the weighted mean of each item over its targets: items are the units of every
    interval and test, whatever the number of targets."""
    if not targets:
        return dict(values)
    grouped: dict[str, dict[str, Fraction | None]] = {}
    for case, value in values.items():
        grouped.setdefault(item_of(case, targets), {})[case] = value
    return {item: weighted_mean(some, targets) for item, some in grouped.items()}


def item_gains(before: Values, after: Values, targets: Sequence[Target]) -> list[Fraction]:
    """Return after - before of each item, over its cases that have both."""
    gains = by_item(case_gains(before, after), targets)
    return [gain for gain in gains.values() if gain is not None]


def case_gains(before: Values, after: Values) -> dict[str, Fraction | None]:
    """Return after - before of each case that has both."""
    return {
        case: value - earlier
        for case, value in after.items()
        if value is not None and (earlier := before.get(case)) is not None
    }

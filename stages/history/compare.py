"""Compare runs by a param, over seeds: mean gain per group, paired intervals between groups.

A run's gain is its best skill's gate metric on the selection split minus the seed skill's. Two
groups are compared on the runs that share a seed, item by item: the difference of their best
skills' scores, with its 95 % interval. The best of several candidates looks better on the split
that chose it than it is; the held-out evaluation has the last word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from stages.core.errors import UsageError
from stages.core.score import exact, exact_mean
from stages.core.stats import gain_interval
from stages.history.consumed import consumed_params
from stages.history.events import Event
from stages.history.replay import Version
from stages.history.rows import Row
from stages.history.runs import natural, scores_of
from stages.history.story import Story


@dataclass(frozen=True)
class Group:
    """The runs with one value of the param."""

    value: str
    runs: tuple[str, ...]
    seeds: tuple[int, ...]
    gains: tuple[float, ...]
    mean_gain: float | None


@dataclass(frozen=True)
class Contrast:
    """A group against the first one, on the seeds that both have.

    Attributes:
        difference: mean over (seed, item) pairs of the best skills' scores, later minus first.
        pairs: how many there are.
    """

    value: str
    against: str
    seeds: int
    pairs: int
    difference: float | None
    low: float | None
    high: float | None
    note: str


@dataclass(frozen=True)
class Comparison:
    """Runs grouped by a param, and what else differs between them."""

    param: str
    groups: tuple[Group, ...]
    contrasts: tuple[Contrast, ...]
    also_differ: Mapping[str, tuple[str, ...]]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare_runs(runs: Mapping[str, Sequence[Event]], param: str) -> Comparison:
    """Return the comparison of finished runs by `param`, a name in params.yaml.

    Raises:
        UsageError: no run consumed such a param.
    """
    finished = {n: Story(e) for n, e in runs.items() if e and e[-1].type == "run.finished"}
    params = {name: consumed_params(story.events) for name, story in finished.items()}
    values = {name: str(known[param]) for name, known in params.items() if param in known}
    if not values:
        known_params = sorted({key for known in params.values() for key in known})
        raise UsageError(
            f"--group-by {param}",
            f"none of {len(finished)} finished runs consumed it",
            f"Params that were: {', '.join(known_params)}",
        )
    groups = []
    for value in sorted(set(values.values()), key=natural):
        names = sorted((n for n in values if values[n] == value), key=natural)
        groups.append(_group(value, names, finished, params))
    contrasts = [_contrast(groups[0], group, finished, params) for group in groups[1:]]
    return Comparison(param, tuple(groups), tuple(contrasts), _others(param, values, params))


def _group(
    value: str,
    names: Sequence[str],
    stories: Mapping[str, Story],
    params: Mapping[str, Mapping[str, Any]],
) -> Group:
    gains = []
    for name in names:
        seed, best = scores_of(stories[name])
        if seed is not None and best is not None:
            gains.append(best - seed)
    return Group(
        value,
        tuple(names),
        tuple(params[name]["seed"] for name in names),
        tuple(gains),
        sum(gains) / len(gains) if gains else None,
    )


def _contrast(
    first: Group,
    group: Group,
    stories: Mapping[str, Story],
    params: Mapping[str, Mapping[str, Any]],
) -> Contrast:
    by_seed = {params[name]["seed"]: name for name in reversed(first.runs)}
    differences: list[Fraction] = []
    seeds = set()
    for name in group.runs:
        other = by_seed.get(params[name]["seed"])
        if other is None or params[name]["seed"] in seeds:
            continue
        one, two = best_scores(stories[other]), best_scores(stories[name])
        differences += [two[item] - one[item] for item in two if item in one]
        seeds.add(params[name]["seed"])
    if not differences:
        note = "no seed in common: nothing is paired"
        return Contrast(group.value, first.value, 0, 0, None, None, None, note)
    low, high = gain_interval(differences)
    mean = float(sum(differences, Fraction(0)) / len(differences))
    return Contrast(
        group.value, first.value, len(seeds), len(differences), mean, low, high, _note(seeds)
    )


def _note(seeds: set[int]) -> str:
    if len(seeds) == 1:
        return "one seed is noise: repeat with other values of `seed`"
    return f"over {len(seeds)} seeds"


def best_scores(story: Story) -> dict[str, Fraction]:
    """Return the gate metric of the best skill on each selection item."""
    gates = story.of_type("gate.judged")
    best: Version | None = None
    for version in story.versions:
        if version.event.data["best"]:
            best = version
    if best is None or not gates:
        return {}
    data = gates[0].data
    found = {}
    for item, rows in story.scores(best.digest).items():
        mean = exact_mean(_value(row, data) for row in rows)
        if mean is not None:
            found[item] = mean
    return found


def _value(row: Row, gate: Mapping[str, Any]) -> Fraction | None:
    if row["hard"] is None or row["soft"] is None:
        return None
    hard, soft = exact(row["hard"]), exact(row["soft"])
    if gate["metric"] == "mixed":
        weight = exact(gate["mixed_weight"])
        return (1 - weight) * hard + weight * soft
    return hard if gate["metric"] == "hard" else soft


def _others(
    param: str, values: Mapping[str, str], params: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[str, ...]]:
    """Return the other params (seed aside) that are not the same in all compared runs."""
    names = {key for run in values for key in params[run]} - {param, "seed"}
    found = {}
    for name in sorted(names):
        different = {str(params[run].get(name)) for run in values}
        if len(different) > 1:
            found[name] = tuple(sorted(different, key=natural))
    return found

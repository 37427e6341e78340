"""Compare runs by a param, over seeds: mean gain per group, paired intervals between groups.

A run's gain is its best skill's gate metric on the selection split minus the seed skill's. Two
groups are compared on the runs that share a seed, item by item: the difference of their best
skills' scores, with its 95 % interval. The best of several candidates looks better on the split
that chose it than it is, so the same is said of the held-out test split where evaluations of
the runs are at hand (`heldout`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from skilltrail.core.errors import UsageError
from skilltrail.core.score import exact_mean
from skilltrail.core.stats import gain_interval
from skilltrail.history.ask.heldout import HeldOut, metric_of
from skilltrail.history.ask.runs import natural, scores_of
from skilltrail.history.log.consumed import consumed_items, consumed_params
from skilltrail.history.log.events import Event
from skilltrail.history.log.replay import Version
from skilltrail.history.log.run_log import Story


@dataclass(frozen=True)
class Group:
    """The runs with one value of the param."""

    value: str
    runs: tuple[str, ...]
    seeds: tuple[int, ...]
    gains: tuple[float, ...]
    mean_gain: float | None
    held_out_gains: tuple[float, ...]
    mean_held_out: float | None


@dataclass(frozen=True)
class Paired:
    """Paired differences on the held-out split: their number, mean and 95 % interval."""

    seeds: int
    pairs: int
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Contrast:
    """A group against the first one, on the seeds that both have.

    Attributes:
        difference: mean over (seed, item) pairs of the best skills' scores, later minus first.
        pairs: how many there are.
        held_out: the same on the test split; None where a group has no evaluation at hand.
    """

    value: str
    against: str
    seeds: int
    pairs: int
    difference: float | None
    low: float | None
    high: float | None
    note: str
    held_out: Paired | None = None


@dataclass(frozen=True)
class Comparison:
    """Runs grouped by a param, and what else differs between them.

    Attributes:
        not_evaluated: runs without an evaluation at hand.
    """

    param: str
    groups: tuple[Group, ...]
    contrasts: tuple[Contrast, ...]
    also_differ: Mapping[str, tuple[str, ...]]
    not_evaluated: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare_runs(
    runs: Mapping[str, Sequence[Event]],
    param: str,
    evaluations: Mapping[str, HeldOut] | None = None,
) -> Comparison:
    """Return the comparison of finished runs by `param`, a name in params.yaml.

    Args:
        evaluations: what held-out items say, by the id of a run's last event.

    Raises:
        UsageError: no run consumed such a param.
    """
    finished = {n: Story(e) for n, e in runs.items() if e and e[-1].type == "run.finished"}
    params = {name: consumed_params(story.events) for name, story in finished.items()}
    items = {name: consumed_items(story.events) for name, story in finished.items()}
    values = {name: str(known[param]) for name, known in params.items() if param in known}
    if not values:
        known_params = sorted({key for known in params.values() for key in known})
        raise UsageError(
            f"--group-by {param}",
            f"none of {len(finished)} finished runs consumed it",
            f"Params that were: {', '.join(known_params)}",
        )
    known_tests = {} if evaluations is None else evaluations
    tests = {
        name: known_tests[story.events[-1].id]
        for name, story in finished.items()
        if story.events[-1].id in known_tests
    }
    groups = []
    for value in sorted(set(values.values()), key=natural):
        names = sorted((n for n in values if values[n] == value), key=natural)
        groups.append(_group(value, names, finished, params, tests))
    contrasts = [_contrast(groups[0], group, finished, params, tests) for group in groups[1:]]
    return Comparison(
        param,
        tuple(groups),
        tuple(contrasts),
        _others(param, values, {n: known | items[n] for n, known in params.items()}),
        tuple(sorted((name for name in values if name not in tests), key=natural)),
    )


def _group(
    value: str,
    names: Sequence[str],
    stories: Mapping[str, Story],
    params: Mapping[str, Mapping[str, Any]],
    tests: Mapping[str, HeldOut],
) -> Group:
    gains = []
    for name in names:
        seed, best = scores_of(stories[name])
        if seed is not None and best is not None:
            gains.append(best - seed)
    held = [tests[name].gain for name in names if name in tests]
    return Group(
        value,
        tuple(names),
        tuple(params[name]["seed"] for name in names),
        tuple(gains),
        sum(gains) / len(gains) if gains else None,
        tuple(held),
        sum(held) / len(held) if held else None,
    )


def _contrast(
    first: Group,
    group: Group,
    stories: Mapping[str, Story],
    params: Mapping[str, Mapping[str, Any]],
    tests: Mapping[str, HeldOut],
) -> Contrast:
    by_seed = {params[name]["seed"]: name for name in reversed(first.runs)}
    chosen: dict[int, list[Fraction]] = {}
    held: dict[int, list[Fraction]] = {}
    for name in group.runs:
        seed = params[name]["seed"]
        other = by_seed.get(seed)
        if other is None or seed in chosen:
            continue
        chosen[seed] = _differences(best_scores(stories[other]), best_scores(stories[name]))
        one, two = tests.get(other), tests.get(name)
        if one is not None and two is not None and one.metric == two.metric:
            held[seed] = _differences(one.best, two.best)
    found = _paired(chosen)
    if found is None:
        note = "no seed in common: nothing is paired"
        return Contrast(group.value, first.value, 0, 0, None, None, None, note)
    return Contrast(
        value=group.value,
        against=first.value,
        seeds=found.seeds,
        pairs=found.pairs,
        difference=found.difference,
        low=found.low,
        high=found.high,
        note=_note(set(chosen)),
        held_out=_paired(held),
    )


def _differences(one: Mapping[str, Fraction], two: Mapping[str, Fraction]) -> list[Fraction]:
    return [two[item] - one[item] for item in two if item in one]


def _paired(by_seed: Mapping[int, Sequence[Fraction]]) -> Paired | None:
    differences = [one for some in by_seed.values() for one in some]
    if not differences:
        return None
    low, high = gain_interval(differences)
    mean = float(sum(differences, Fraction(0)) / len(differences))
    return Paired(len(by_seed), len(differences), mean, low, high)


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
        mean = exact_mean(metric_of(row, data) for row in rows)
        if mean is not None:
            found[item] = mean
    return found


def _others(
    param: str, values: Mapping[str, str], params: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[str, ...]]:
    """Return what else (seed aside) is not the same in all compared runs."""
    names = {key for run in values for key in params[run]} - {param, "seed"}
    found = {}
    for name in sorted(names):
        different = {str(params[run].get(name)) for run in values}
        if len(different) > 1:
            found[name] = tuple(sorted(different, key=natural))
    return found

"""Compare runs by a param, over seeds: mean gain per group, paired intervals between groups.

A run's gain is its best skill's gate metric on the selection split minus the seed skill's. Two
groups are compared on the runs that share a seed, item by item: the difference of their best
skills' scores. Items are the units; seeds are averaged within an item and are a factor of their
own where they differ by more than noise (`core.stats.crossed_interval`). The best of several
candidates looks better on the split that chose it than it is, so the same is said of the
held-out test split where evaluations of the runs are at hand (`heldout`).

Numbers of different environments, data or targets are never pooled: `where` chooses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from skilltrail.core.errors import UsageError
from skilltrail.core.score import exact_mean
from skilltrail.core.stats import crossed_interval
from skilltrail.history.ask.comparable import (
    RunScores,
    Scores,
    chosen,
    common_metric,
    read_run,
    require_one_setting,
)
from skilltrail.history.ask.evaluations import HeldOut
from skilltrail.history.ask.runs import natural
from skilltrail.history.ask.served import Get, served_in
from skilltrail.history.log.erasure import end_of
from skilltrail.history.log.events import Event
from skilltrail.history.log.run_log import RunLog


@dataclass(frozen=True)
class Group:
    """The runs with one value of the param.

    Attributes:
        skills: how many different best skills they came to.
        items, held_out_items: how many items of the split each mean is over.
        gains, held_out_gains: of each run, over the items scored under seed and best skill.
    """

    value: str
    runs: tuple[str, ...]
    seeds: tuple[int, ...]
    skills: int
    items: int
    gains: tuple[float, ...]
    mean_gain: float | None
    held_out_items: int
    held_out_gains: tuple[float, ...]
    mean_held_out: float | None


@dataclass(frozen=True)
class Paired:
    """Differences paired by item and seed on one split: mean and 95 % interval.

    Attributes:
        items: those scored under both groups' best skills at every seed: the units.
        by_seed: the mean difference of each seed.
        trainings: how many different pairs of skills the seeds gave.
    """

    items: int
    seeds: int
    trainings: int
    difference: float
    low: float
    high: float
    by_seed: Mapping[int, float]


NOTHING_PAIRED: dict[str, Any] = {
    "items": 0, "seeds": 0, "trainings": 0, "difference": None, "low": None, "high": None,
    "by_seed": {},
}  # fmt: skip


@dataclass(frozen=True)
class Contrast:
    """A group against the first one, on the seeds that both have; later minus first."""

    value: str
    against: str
    selection: Paired | None
    held_out: Paired | None

    def to_json(self) -> dict[str, Any]:
        told = NOTHING_PAIRED if self.selection is None else asdict(self.selection)
        held_out = None if self.held_out is None else asdict(self.held_out)
        about = {"value": self.value, "against": self.against, "note": self.note}
        return told | about | {"held_out": held_out}

    @property
    def note(self) -> str:
        """How far the seeds carry."""
        if self.selection is None:
            return "no seed and item in common: nothing is paired"
        seeds, trainings = self.selection.seeds, self.selection.trainings
        if seeds == 1:
            return "one seed is noise: repeat with other values of `seed`"
        if trainings == 1:
            return f"{seeds} seeds gave the same skills: they say what one seed says"
        same = "" if trainings == seeds else f", of which {trainings} gave different skills"
        return f"over {seeds} seeds{same}"


@dataclass(frozen=True)
class Comparison:
    """Runs grouped by a param, and what else differs between them.

    Attributes:
        metric: what all scores here are in: the runs' gate metric, `hard` where they differ.
        setting: what the compared runs have in common: environment, data, target, judge.
        not_evaluated: runs without an evaluation at hand.
    """

    param: str
    metric: str
    setting: Mapping[str, str]
    groups: tuple[Group, ...]
    contrasts: tuple[Contrast, ...]
    also_differ: Mapping[str, tuple[str, ...]]
    not_evaluated: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"contrasts": [one.to_json() for one in self.contrasts]}


def compare_runs(
    runs: Mapping[str, Sequence[Event]],
    param: str,
    evaluations: Mapping[str, HeldOut] | None = None,
    where: Mapping[str, str] | None = None,
    get: Get = lambda keys: {},
) -> Comparison:
    """Return the comparison of finished runs by `param`, a name in params.yaml.

    Args:
        evaluations: what held-out items say, by the id of a run's last event.
        where: of the runs only those that have these values.
        get: returns the facts at hand by key; they say which model served a run.

    Raises:
        UsageError: no run consumed such a param or has such a value; or the runs are of several
            environments, data or targets.
    """
    logs = {n: RunLog(e) for n, e in _each_once(runs).items() if end_of(e) is not None}
    said = common_metric(logs.values())
    tests = {} if evaluations is None else evaluations
    read = [
        read_run(n, logs[n], said, tests, served_in(logs[n].events, get))
        for n in sorted(logs, key=natural)
    ]
    found = chosen(read, {} if where is None else where)
    having = [run for run in found if param in run.known]
    if not having:
        names = ", ".join(sorted({key for run in found for key in run.known}))
        told = f"none of {len(found)} finished runs consumed it"
        raise UsageError(f"--group-by {param}", told, f"Params that were: {names}")
    values = sorted({run.known[param] for run in having}, key=natural)
    by_value = [[run for run in having if run.known[param] == value] for value in values]
    require_one_setting(param, having, by_value)
    first = by_value[0]
    return Comparison(
        param,
        said["metric"],
        dict(first[0].setting),
        tuple(_group(value, some) for value, some in zip(values, by_value, strict=True)),
        tuple(_contrast(v, values[0], first, g) for v, g in zip(values, by_value, strict=True))[
            1:
        ],
        _others(param, having),
        tuple(run.name for run in having if run.test is None),
    )


def _each_once(runs: Mapping[str, Sequence[Event]]) -> Mapping[str, Sequence[Event]]:
    """Return the runs without those that somebody else made again and shared."""
    first: dict[str, str] = {}
    for name in sorted(runs, key=lambda name: (name.count("/"), natural(name))):
        first.setdefault(runs[name][-1].id, name)
    return {name: runs[name] for name in first.values()}


def _group(value: str, runs: Sequence[RunScores]) -> Group:
    gains = [
        float(mean)
        for run in runs
        if (mean := exact_mean(_differences(run.seed_scores, run.best_scores).values()))
        is not None
    ]
    tests = [run.test for run in runs if run.test is not None]
    held = [test.gain for test in tests]
    return Group(
        value,
        tuple(run.name for run in runs),
        tuple(run.seed for run in runs),
        len({run.skill for run in runs}),
        max((len(run.best_scores) for run in runs), default=0),
        tuple(gains),
        sum(gains) / len(gains) if gains else None,
        max((len(test.best) for test in tests), default=0),
        tuple(held),
        sum(held) / len(held) if held else None,
    )


def _contrast(
    value: str, against: str, first: Sequence[RunScores], group: Sequence[RunScores]
) -> Contrast:
    """Pair the first run of each seed in one group with that of the other."""
    one, two = ({run.seed: run for run in reversed(some)} for some in (first, group))
    pairs = {seed: (one[seed], two[seed]) for seed in sorted(two) if seed in one}
    tested = {
        seed: (a.test.best, b.test.best)
        for seed, (a, b) in pairs.items()
        if a.test is not None and b.test is not None
    }
    chosen = {seed: (a.best_scores, b.best_scores) for seed, (a, b) in pairs.items()}
    skills = {seed: (a.skill, b.skill) for seed, (a, b) in pairs.items()}
    return Contrast(value, against, _paired(chosen, skills), _paired(tested, skills))


def _differences(one: Scores, two: Scores) -> dict[str, Fraction]:
    return {item: two[item] - one[item] for item in two if item in one}


def _paired(
    scores: Mapping[int, tuple[Scores, Scores]], skills: Mapping[int, tuple[str, str]]
) -> Paired | None:
    by_seed = {seed: _differences(*pair) for seed, pair in scores.items()}
    items = set.intersection(*map(set, by_seed.values())) if by_seed else set()
    if not items:
        return None
    rows = [[by_seed[seed][item] for seed in by_seed] for item in sorted(items)]
    low, high = crossed_interval(rows)
    means = [sum(column, Fraction(0)) / len(items) for column in zip(*rows, strict=True)]
    return Paired(
        len(items),
        len(by_seed),
        len({skills[seed] for seed in by_seed}),
        float(sum(means, Fraction(0)) / len(means)),
        low,
        high,
        {seed: float(mean) for seed, mean in zip(by_seed, means, strict=True)},
    )


def _others(param: str, runs: Sequence[RunScores]) -> dict[str, tuple[str, ...]]:
    """Return what else (seed aside) is not the same in all compared runs."""
    names = {key for run in runs for key in run.known} - {param, "seed"}
    found = {}
    for name in sorted(names):
        different = {run.known.get(name, "-") for run in runs}
        if len(different) > 1:
            found[name] = tuple(sorted(different, key=natural))
    return found

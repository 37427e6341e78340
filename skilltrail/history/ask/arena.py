"""The arena: methods side by side, each over the same seeds, with an equal budget of calls.

A gain is the best skill's score minus the seed skill's on the test split, which chose nothing.
Items are the units of its interval, seeds are averaged within an item and a factor of their own
where they differ by more than noise (`core.stats.crossed_interval`); two methods are compared
item by item on the seeds that both have. Calls and tokens are those of training: each rollout
that the log names counts once, whoever paid for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

from skilltrail.core.score import exact_mean
from skilltrail.core.stats import crossed_interval
from skilltrail.history.ask.comparable import common_metric, scores_under
from skilltrail.history.ask.evaluations import HeldOut
from skilltrail.history.log import types
from skilltrail.history.log.erasure import end_of
from skilltrail.history.log.events import Event, read_all
from skilltrail.history.log.run_log import RunLog

Cost = Callable[[Iterable[str]], tuple[int | None, float | None]]  # keys -> tokens, US dollars


@dataclass(frozen=True)
class Point:
    """The best skill after so many rollouts; `mean` is its score on the selection split."""

    calls: int
    mean: float
    tokens: int


@dataclass(frozen=True)
class RunByCalls:
    """A run by its target calls, finished or not.

    Attributes:
        points: the best skill from the seed's on, each where it was accepted.
        keys: of all rollouts that the log names, each once.
        until: of those that were known when the last point came.
        limit: `stop.calls` where that ended the run.
    """

    points: tuple[Point, ...]
    keys: tuple[str, ...]
    until: tuple[str, ...]
    limit: int | None

    @property
    def spent(self) -> int:
        """Target calls: the whole limit where it ended the run."""
        return len(self.keys) if self.limit is None else self.limit


@dataclass(frozen=True)
class Entry:
    """One finished run.

    Attributes:
        why: what ended it; `limit` is `stop.calls` where that did.
        calls: rollouts of training that the log names; what the end cut off is in none.
        spent: `Course.spent`; `curve` its points.
        tokens, usd: of all those rollouts; None where a usage or a price is not known.
        best_tokens, best_usd: of those up to the best skill's acceptance.
        wall_s: how long training took here, None where nobody knows.
    """

    method: str
    seed: int
    name: str
    why: str
    limit: int | None
    calls: int
    spent: int
    curve: tuple[Point, ...]
    tokens: int | None
    usd: float | None
    best_tokens: int | None
    best_usd: float | None
    test: HeldOut | None
    wall_s: float | None = None


@dataclass(frozen=True)
class Interval:
    """A mean difference over `items` and `seeds`, with its 95 % interval."""

    mean: float
    low: float
    high: float
    items: int
    seeds: int


@dataclass(frozen=True)
class Arena:
    """All entries, methods in the order asked for, and what follows from them.

    Attributes:
        gains: best minus seed skill on the test split, by method; None where not measured.
        contrasts: best skills of the first method minus those of the second, by the two.
    """

    entries: tuple[Entry, ...]
    gains: Mapping[str, Interval | None]
    contrasts: Mapping[tuple[str, str], Interval | None]

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(entry.method for entry in self.entries))

    def of(self, method: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.method == method]


def arena_of(entries: Sequence[Entry]) -> Arena:
    """Return what entries say, each alone and in pairs."""
    tests: dict[str, dict[int, HeldOut]] = {}
    for entry in entries:
        tests.setdefault(entry.method, {})
        if entry.test is not None:
            tests[entry.method][entry.seed] = entry.test
    gains = {
        method: _interval({seed: (test.seed, test.best) for seed, test in some.items()})
        for method, some in tests.items()
    }
    contrasts = {
        (one, two): _interval(
            {
                seed: (tests[two][seed].best, test.best)
                for seed, test in tests[one].items()
                if seed in tests[two]
            }
        )
        for one, two in permutations(tests, 2)
    }
    return Arena(tuple(entries), gains, contrasts)


def _interval(
    pairs: Mapping[int, tuple[Mapping[str, Fraction], Mapping[str, Fraction]]],
) -> Interval | None:
    """Return the interval of later minus earlier, over the items that all pairs have."""
    sets = [set(one) & set(two) for one, two in pairs.values()]
    items = sorted(set.intersection(*sets)) if sets else []
    if not items:
        return None
    rows = [[two[item] - one[item] for one, two in pairs.values()] for item in items]
    low, high = crossed_interval(rows)
    total = sum((value for row in rows for value in row), Fraction(0))
    return Interval(float(total / (len(items) * len(pairs))), low, high, len(items), len(pairs))


def entry_of(
    method: str,
    name: str,
    events: Sequence[Event],
    tests: Mapping[str, HeldOut],
    cost: Cost,
    wall_s: float | None,
) -> Entry | None:
    """Return the entry of a training log, None where the run is not finished.

    Args:
        tests: what held-out items say, by the id of a run's last event.
    """
    end = end_of(events)
    if end is None:
        return None
    course = run_by_calls(events)
    tokens, usd = cost(course.keys)
    best_tokens, best_usd = cost(course.until)
    return Entry(
        method=method,
        seed=events[0].read(types.RunStarted).seed,
        name=name,
        why=end.read(types.RunFinished).why,
        limit=course.limit,
        calls=len(course.keys),
        spent=course.spent,
        curve=course.points,
        tokens=tokens,
        usd=usd,
        best_tokens=best_tokens,
        best_usd=best_usd,
        test=tests.get(events[-1].id),
        wall_s=wall_s,
    )


def _keys(events: Iterable[Event]) -> Iterable[str]:
    for said in read_all(events, types.RolloutsScored):
        yield from (row.key for row in said.items if row.key is not None)


def run_by_calls(events: Sequence[Event]) -> RunByCalls:
    """Return the best skill by calls, of a training log of at least its first two events."""
    log, end = RunLog(events), end_of(events)
    metric = common_metric([log])
    points: list[Point] = []
    known: dict[str, None] = {}
    until: tuple[str, ...] = ()
    seed: types.SkillVersioned | None = None
    for event in events:
        said, version = event.said, None
        if isinstance(said, types.RolloutsScored):
            known |= dict.fromkeys(_keys([event]))
            version, seed = seed, None  # these measure the seed, which comes before
        elif isinstance(said, types.SkillVersioned) and said.version == 0:
            seed = said
        elif isinstance(said, types.SkillVersioned) and said.best:
            version = said
        if version is None:
            continue
        mean = exact_mean(scores_under(log, version.digest, metric).values())
        if mean is not None:
            points.append(Point(len(known), float(mean), version.tokens))
        until = tuple(known)
    limit = None if end is None else end.read(types.RunFinished).calls
    return RunByCalls(tuple(points), tuple(known), until, limit)

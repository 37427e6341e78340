"""What the runs of `benchmarks.trial` say: a row each, and over seeds and sets.

Intervals are of 95 % and have items as their units; seeds are averaged within an item. The gap
is the best skill's mean on the selection split, which chose it, minus that on the test split:
two samples of items, so that their variances add, each with a success and a failure added. Over
sets the gaps are averaged, the sets as they are: it is no guess about other sets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean, median

from skilltrail.core.stats import Z95, crossed_interval
from skilltrail.history.ask.arena import run_by_calls
from skilltrail.history.ask.comparable import common_metric, scores_under, seed_and_best
from skilltrail.history.ask.evaluations import HeldOut
from skilltrail.history.log.erasure import end_of
from skilltrail.history.log.events import Event
from skilltrail.history.log.run_log import RunLog

Scores = Mapping[str, Fraction]


@dataclass(frozen=True)
class Trained:
    """One finished run.

    Attributes:
        calls: target calls of training, each rollout once; recorded ones count as if made.
        opened: rollouts of the evaluation, of the seed skill and the best one.
        seed_scores, best_scores: of selection items, by id; `test` has those of test items.
    """

    name: str
    seed: int
    accepted: int
    steps: int
    why: str
    calls: int
    opened: int
    tokens: int
    seed_scores: Scores
    best_scores: Scores
    test: HeldOut


def trained_of(name: str, seed: int, events: Sequence[Event], test: HeldOut) -> Trained:
    """Return what a finished run's log and its evaluation say."""
    story, end, course = RunLog(events), end_of(events), run_by_calls(events)
    assert end is not None
    said = common_metric([story])
    first, best = seed_and_best(story)
    return Trained(
        name=name,
        seed=seed,
        accepted=end.data["accepted"],
        steps=end.data["steps"],
        why=end.data["why"],
        calls=course.spent,
        opened=len(test.seed) + len(test.best),
        tokens=course.points[-1].tokens,
        seed_scores=scores_under(story, first, said),
        best_scores=scores_under(story, best, said),
        test=test,
    )


def mean(scores: Scores) -> float:
    return fmean(float(score) for score in scores.values())


def over_seeds(some: Sequence[Scores]) -> list[Fraction]:
    """Return each item's mean over runs, of the items that all of them have."""
    items = set.intersection(*(set(scores) for scores in some))
    return [
        sum((scores[item] for scores in some), Fraction(0)) / len(some)
        for item in sorted(items)
    ]


def gain(runs: Sequence[Trained]) -> tuple[float, float, float]:
    """Return the mean held-out gain of one set's runs and its interval."""
    items = sorted(set.intersection(*(set(run.test.best) for run in runs)))
    rows = [[run.test.best[item] - run.test.seed[item] for run in runs] for item in items]
    total = sum((value for row in rows for value in row), Fraction(0))
    return float(total / (len(items) * len(runs))), *crossed_interval(rows)


def gap(sets: Sequence[Sequence[Trained]]) -> tuple[float, float, float]:
    """Return the mean gap over sets, each a list of runs, and its interval."""
    gaps, centres, variances = [], [], []
    for runs in sets:
        chosen = over_seeds([run.best_scores for run in runs])
        tested = over_seeds([run.test.best for run in runs])
        gaps.append(fmean(map(float, chosen)) - fmean(map(float, tested)))
        (one, of_one), (two, of_two) = adjusted(chosen), adjusted(tested)
        centres.append(one - two)
        variances.append(of_one + of_two)
    half = Z95 * math.sqrt(math.fsum(variances)) / len(sets)
    return fmean(gaps), fmean(centres) - half, fmean(centres) + half


def adjusted(values: Sequence[Fraction]) -> tuple[float, float]:
    """Return mean and variance of the mean, a success and a failure added."""
    more = [*map(float, values), 0.0, 1.0]
    centre = fmean(more)
    return centre, math.fsum((value - centre) ** 2 for value in more) / len(more) ** 2


def interval(found: tuple[float, float, float]) -> str:
    value, low, high = found
    return f"{value:+.3f} ({low:+.3f} to {high:+.3f})"


def markdown(runs: Sequence[Trained]) -> str:
    """Return a row per run, one per set of several runs, and the gap over all of them."""
    sets = {name: [run for run in runs if run.name == name] for name in [r.name for r in runs]}
    lines = [
        "| set | seed | selection, seed → best | test, seed → best | gain on test | "
        "selection − test | accepted of steps | ended by | calls, of the test | tokens |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, some in sets.items():
        lines += [row(name, str(run.seed), [run]) for run in some]
        if len(some) > 1:
            lines.append(row(f"**{name}**", f"{len(some)} seeds", some))
    told = interval(gap(list(sets.values())))
    lines += ["", f"Selection − test, sets: {len(sets)}, runs: {len(runs)}: {told}."]
    return "\n".join(lines) + "\n"


def row(name: str, seed: str, runs: Sequence[Trained]) -> str:
    """Return the row of runs of one set: means, the median of accepted steps."""
    scores = [
        fmean(mean(run.seed_scores) for run in runs),
        fmean(mean(run.best_scores) for run in runs),
        fmean(mean(run.test.seed) for run in runs),
        fmean(mean(run.test.best) for run in runs),
    ]
    why = ", ".join(sorted({run.why for run in runs}))
    accepted = median(run.accepted for run in runs)
    steps = fmean(run.steps for run in runs)
    calls = fmean(run.calls for run in runs)
    opened = fmean(run.opened for run in runs)
    tokens = fmean(run.tokens for run in runs)
    return (
        f"| {name} | {seed} | {scores[0]:.3f} → {scores[1]:.3f} | "
        f"{scores[2]:.3f} → {scores[3]:.3f} | {interval(gain(runs))} | "
        f"{interval(gap([runs]))} | {accepted:g} of {steps:.3g} | {why} | "
        f"{calls:.0f} + {opened:.0f} | {tokens:.0f} |"
    )

"""Which runs may be compared: what is known of each by name, and what they must share.

Numbers of different environments, data, targets or judges are never pooled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from msgspec import to_builtins

from skilltrail.core.canon import digest
from skilltrail.core.errors import UsageError
from skilltrail.core.served import Served
from skilltrail.core.targets import by_item, targets_in
from skilltrail.history.ask.evaluations import HeldOut
from skilltrail.history.ask.runs import natural
from skilltrail.history.log.consumed import consumed_items, consumed_params
from skilltrail.history.log.rows import means_of
from skilltrail.history.log.run_log import RunLog
from skilltrail.history.log.types.outcomes import GateJudged, RunStarted, SkillVersioned

# What runs must have in common before a number is made of several: the kinds of it, by names.
KINDS = {
    "env": ("env", "agent"),
    "data": ("data.train", "data.selection", "data.test"),
    "target": ("target.model", "target.backend", "target", "target.served"),
    "judge": ("judge", "judge.served"),
}
Scores = Mapping[str, Fraction]


@dataclass(frozen=True)
class RunScores:
    """One finished run, with what is known of it by name and its scores by item."""

    name: str
    params: Mapping[str, Any]
    setting: Mapping[str, str]
    skill: str
    seed_scores: Scores
    best_scores: Scores
    test: HeldOut | None

    @property
    def seed(self) -> int:
        found: int = self.params["seed"]
        return found

    @property
    def known(self) -> dict[str, str]:
        return {
            name: str(value) for name, value in (dict(self.params) | dict(self.setting)).items()
        }


def common_metric(logs: Iterable[RunLog]) -> dict[str, Any]:
    """Return the metric that every gate of the runs used, `hard` where they used several."""
    first = (said for log in logs for said in log.told(GateJudged)[:1])
    used = {(said.metric, said.mixed_weight) for said in first}
    metric, weight = used.pop() if len(used) == 1 else ("hard", None)
    return {"metric": metric, "mixed_weight": weight}


def read_run(
    name: str,
    log: RunLog,
    said: Mapping[str, Any],
    tests: Mapping[str, HeldOut],
    served: Mapping[str, Counter[Served]],
) -> RunScores:
    """Return a finished run's scores in the metric `said`; `tests` is by last event's id.

    `served` says who gave the replies of each role, as far as that is known.
    """
    start, test = log.start.read(RunStarted), tests.get(log.events[-1].id)
    agent, judge = start.agent, start.judge
    told = f", params {digest('agent/1', agent['params'])[:8]}" if agent.get("params") else ""
    setting = {
        "agent": f"{agent['version']}{told}",
        "target": digest("target/1", start.target)[:8],
        "judge": "none" if judge is None else digest("judge/1", to_builtins(judge))[:8],
    } | consumed_items(log.events)
    setting |= {
        f"{role}.served": " + ".join(map(str, sorted(served[role])))
        for role in ("target", "judge", *start.target.get("targets", ()))
        if role in served
    }
    if test is not None:
        setting["data.test"] = test.items
    seed, best = seed_and_best(log)
    same = test is not None and test.metric == said["metric"]
    return RunScores(
        name,
        consumed_params(log.events),
        setting,
        best,
        scores_under(log, seed, said),
        scores_under(log, best, said),
        test if same else None,
    )


def seed_and_best(log: RunLog) -> tuple[str, str]:
    """Return the digests of a run's seed skill and of its best one so far."""
    made = [said.digest for said in log.told(SkillVersioned) if said.best]
    seed = log.start.read(RunStarted).seed_skill.digest
    return seed, made[-1] if made else seed


def scores_under(log: RunLog, skill: str, said: Mapping[str, Any]) -> dict[str, Fraction]:
    """Return each selection item's score under a skill (by digest), in the metric `said`."""
    cases = means_of(log.scores(skill), said["metric"], said.get("mixed_weight"))
    means = by_item(cases, targets_in(log.start.read(RunStarted).target))
    return {item: mean for item, mean in means.items() if mean is not None}


def chosen(runs: Sequence[RunScores], where: Mapping[str, str]) -> list[RunScores]:
    """Return the runs that have all values of `where`.

    Raises:
        UsageError: no run has such a name, or such a value.
    """
    found = list(runs)
    for name, value in where.items():
        having = [run for run in found if name in run.known]
        if not having:
            names = ", ".join(sorted({key for run in found for key in run.known}))
            raise UsageError(f"--where {name}={value}", "no run has it", f"Known are: {names}")
        kept = [run for run in having if value in _ways_to_say(run.known[name])]
        if not kept:
            values = "; ".join(sorted({run.known[name] for run in having}, key=natural))
            raise UsageError(
                f"--where {name}={value}", "no run has that", f"There is: {values}"
            )
        found = kept
    return found


def _ways_to_say(value: str) -> tuple[str, str]:
    """Return what may be typed for a value: all of it, or the digest that it ends in."""
    return value, value.rpartition(", ")[2]


def require_one_setting(
    param: str, runs: Sequence[RunScores], by_value: Sequence[Sequence[RunScores]]
) -> None:
    """Refuse runs whose numbers cannot be pooled; groups may differ in what they are made by.

    Raises:
        UsageError: naming what differs, how many runs have each value, and the way on.
    """
    for kind, names in KINDS.items():
        # Groups made by a target differ in it, of course; within one it must be the same.
        pools = by_value if param in names else [runs]
        for name in names:
            for pool in pools:
                held = Counter(run.known[name] for run in pool if name in run.known)
                if len(held) > 1 and name != param:
                    told = "; ".join(f"{value} ({n} runs)" for value, n in held.most_common())
                    some = _ways_to_say(held.most_common(1)[0][0])[1]
                    raise UsageError(
                        f"--group-by {param}",
                        f"the runs are of different {kind}, whose numbers are not pooled: "
                        f"{name} is {told}",
                        f"Choose, e.g. with --where '{name}={some}'",
                    )

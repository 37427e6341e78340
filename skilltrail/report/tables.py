"""Numbers and curves of a run, read from its events.

`metrics` is what `dvc metrics` and `dvc exp show` list; `curve` has a row per step for
`dvc plots`. Both are pure functions of the training log and the evaluation log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from skilltrail.core.score import Score, exact_mean, metric
from skilltrail.core.stats import gain_interval
from skilltrail.core.targets import Target, by_item, of_target, targets_in, weighted_mean
from skilltrail.history.log import types
from skilltrail.history.log.erasure import end_of
from skilltrail.history.log.events import Event, read_all
from skilltrail.history.log.rows import scores_of
from skilltrail.history.log.types.parts import Purpose

METRICS = ("hard", "soft")
COLUMNS = (
    "step", "epoch", "train_hard", "train_soft", "candidate_hard", "candidate_soft", "before",
    "after", "best", "verdict", "lr", "merged", "selected", "applied", "skill_tokens",
    "version",
)  # fmt: skip

TRANSFERRED = (
    "mean", "mean_hard", "mean_soft", "gain", "gain_low", "gain_high", "share", "share_low",
    "share_high",
)  # fmt: skip

COLUMN_OF = {Purpose.TRAIN: "train", Purpose.SELECTION: "candidate"}
Kind = tuple[str, float]  # metric and mixed weight
Scores = dict[str, Score]


def metrics(training: Sequence[Event], evaluation: Sequence[Event]) -> dict[str, Any]:
    """Return the headline numbers; means are fractions, absent ones are left out.

    Without a suffix a number is in the gate's metric; `_hard` and `_soft` are always there.
    """
    end = end_of(training)
    if end is None:
        raise ValueError("the run has not finished")
    finished = end.read(types.RunFinished)
    digests = {"seed": seed_digest(training), "best": finished.best.digest}
    digests["last"] = finished.last.digest
    kind, chosen = gate_metric(training), scores_by_skill(training, "baseline", "selection")
    test, several = _of(digests, scores_by_skill(evaluation, "test")), targets_of(training)
    ends = _of({n: digests[n] for n in ("seed", "best")}, chosen)
    numbers: dict[str, Any] = {
        "selection": _means(kind, ends, several),
        "steps": finished.steps,
        "accepted": finished.accepted,
        "rejected": finished.rejected,
        "indecisive": finished.indecisive,
        "skill_tokens": _tokens(training, digests["best"]),
    }
    if test:
        tag = next(one.interval for one in read_all(evaluation, types.SkillEvaluated))
        numbers["test"] = _means(kind, test, several, tag) | _named(evaluation)
    transfer = _transfer(evaluation)
    return numbers | ({"transfer": transfer} if transfer else {})


def scores_by_skill(events: Sequence[Event], *purposes: str) -> dict[str, Scores]:
    """Return the score of each item (of the test split, not another that was evaluated) by
    skill digest; an evaluation that stopped early is no match for a whole one."""
    found: dict[str, Scores] = {}
    for said in read_all(events, types.RolloutsScored):
        if said.purpose not in purposes:
            continue
        scores = scores_of(said.items)
        whole = len(scores) >= len(found.get(said.skill, ()))
        if whole and said.split in (None, "test"):
            found[said.skill] = scores
    return found


def held_out_values(
    training: Sequence[Event], evaluation: Sequence[Event]
) -> dict[str, list[Fraction]]:
    """Return the gate metric of the test items that seed and best skill have, by those names.

    {} where one of them was not evaluated, or the run goes on.
    """
    end = end_of(training)
    if end is None:
        return {}
    ends = {"seed": seed_digest(training), "best": end.read(types.RunFinished).best.digest}
    scores = _of(ends, scores_by_skill(evaluation, "test"))
    kind, several = gate_metric(training), targets_of(training)
    values = _shared(kind, scores, several) if len(scores) == 2 else {}
    return values if values.get("seed") else {}


def seed_digest(training: Sequence[Event]) -> str:
    return training[0].read(types.RunStarted).seed_skill.digest


def _transfer(evaluation: Sequence[Event]) -> dict[str, Any]:
    """Return, by target and skill, what it scores there and the share of the gain it keeps."""
    found: dict[str, Any] = {}
    for said in read_all(evaluation, types.SkillTransferred):
        rows = found.setdefault(said.target, {})
        rows[said.name] = {name: getattr(said, name) for name in TRANSFERRED}
    return found


def _named(evaluation: Sequence[Event]) -> dict[str, Any]:
    """Return, by skill, the environment's further metrics on the test split, if it has any."""
    found = {
        said.name: {one.name: one.mean for one in said.metrics}
        for said in read_all(evaluation, types.SkillEvaluated)
        if said.split == "test" and said.metrics
    }
    return {"metrics": found} if found else {}


def curve(training: Sequence[Event]) -> list[dict[str, Any]]:
    """Return one row per step, in the columns of `COLUMNS`; None where nothing was measured."""
    rows: list[dict[str, Any]] = []
    columns = columns_of(training)
    row: dict[str, Any] = dict.fromkeys(columns)
    best = baseline_mean(training)
    tokens = training[1].read(types.SkillVersioned).tokens
    for event in training:
        said = event.said
        if isinstance(said, types.RolloutsScored) and said.purpose in COLUMN_OF:
            name = COLUMN_OF[said.purpose]
            row |= {f"{name}_hard": said.mean_hard, f"{name}_soft": said.mean_soft}
        elif isinstance(said, types.BudgetDecided):
            row["lr"] = said.budget
        elif isinstance(said, types.GateJudged):
            row |= {"before": said.before, "after": said.after}
            for one in () if said.targets is None else said.targets:
                row |= {f"before_{one.target}": one.before, f"after_{one.target}": one.after}
            if said.after is None:  # the mean of a part of the items is no score
                row |= {"candidate_hard": None, "candidate_soft": None}
        elif isinstance(said, types.SkillVersioned):
            tokens = said.tokens
            best = row["after"] if said.best and said.version else best
        elif isinstance(said, types.StepEnded):
            counts = ("merged", "selected", "applied")
            row |= {name: said.counts.get(name, 0) for name in counts}
            row |= {"step": said.step, "epoch": said.epoch, "verdict": said.result.value}
            rows.append(row | {"best": best, "skill_tokens": tokens, "version": said.version})
            row = dict.fromkeys(columns)
    return rows


def columns_of(training: Sequence[Event]) -> tuple[str, ...]:
    """Return the columns of the curve: of several targets their means beside the weighted."""
    names = [target.name for target in targets_of(training)]
    return COLUMNS + tuple(f"{kind}_{name}" for name in names for kind in ("before", "after"))


def baseline_mean(training: Sequence[Event]) -> float | None:
    """Return the seed skill's score on the selection split, None before it is measured."""
    for said in read_all(training, types.RolloutsScored):
        if said.purpose is Purpose.BASELINE:
            kind = gate_metric(training)
            scores = scores_of(said.items)
            values = {case: metric(score, *kind) for case, score in scores.items()}
            mean = weighted_mean(values, targets_of(training))
            return None if mean is None else float(mean)
    return None


def tsv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as tab-separated text with a header; None is an empty cell."""
    columns = tuple(rows[0]) if rows else COLUMNS
    lines = ["\t".join(columns)]
    for row in rows:
        cells = ("" if row[name] is None else str(row[name]) for name in columns)
        lines.append("\t".join(cells))
    return "\n".join(lines) + "\n"


def gate_metric(training: Sequence[Event]) -> Kind:
    """Return (metric, mixed weight) as the gate used it; hard when no candidate was judged."""
    for said in read_all(training, types.GateJudged):
        return said.metric, 0.5 if said.mixed_weight is None else said.mixed_weight
    return "hard", 0.5


def _of(digests: Mapping[str, str], scores: Mapping[str, Scores]) -> dict[str, Scores]:
    """Return the scores of named skills, of those that have any."""
    return {name: scores[skill] for name, skill in digests.items() if skill in scores}


def targets_of(training: Sequence[Event]) -> tuple[Target, ...]:
    """Return the targets of a run with several."""
    start = training[0].said if training else None
    return targets_in(start.target) if isinstance(start, types.RunStarted) else ()


def _shared(
    kind: Kind, scores: Mapping[str, Scores], several: Sequence[Target]
) -> dict[str, list[Fraction]]:
    """Return each skill's values over the items scored under the seed and the best skill; of
    several targets an item's weighted mean."""
    ends = [scores[name] for name in ("seed", "best") if name in scores]
    items = [
        id
        for id in (ends[0] if ends else {})
        if all(id in some and metric(some[id], *kind) is not None for some in ends)
    ]
    return {
        name: [
            value
            for value in by_item(
                {id: metric(of[id], *kind) for id in items if id in of}, several
            ).values()
            if value is not None
        ]
        for name, of in scores.items()
    }


def _means(
    kind: Kind,
    scores: Mapping[str, Scores],
    several: Sequence[Target],
    tag: str | None = None,
) -> dict[str, Any]:
    """Return each skill's means over `items` that are scored under seed and best skill, and
    with `tag`, which names the interval, the gain between these two; of several targets the
    same on each too."""
    numbers: dict[str, Any] = {}
    for target in several:
        own = {name: of_target(some, target.name) for name, some in scores.items()}
        numbers.setdefault("targets", {})[target.name] = _means(kind, own, (), tag)
    for suffix, one in (("", kind), *((f"_{name}", (name, 0.0)) for name in METRICS)):
        values = _shared(one, scores, several)
        numbers["items"] = len(next(iter(values.values()), ()))
        for name, some in values.items():
            numbers[f"{name}{suffix}"] = _mean(some)
        if tag is not None and {"seed", "best"} <= set(values):
            gains = [b - a for a, b in zip(values["seed"], values["best"], strict=True)]
            low, high = gain_interval(gains, tag)
            numbers |= {
                f"gain{suffix}": _mean(gains),
                f"gain_low{suffix}": low,
                f"gain_high{suffix}": high,
            }
    return numbers


def _mean(values: Iterable[Fraction | None]) -> float | None:
    mean = exact_mean(values)
    return None if mean is None else float(mean)


def _tokens(training: Sequence[Event], digest: str) -> int:
    sizes = {one.digest: one.tokens for one in read_all(training, types.SkillVersioned)}
    return sizes[digest]

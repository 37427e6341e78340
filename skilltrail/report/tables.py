"""Numbers and curves of a run, read from its events.

`metrics` is what `dvc metrics` and `dvc exp show` list; `curve` has a row per step for
`dvc plots`. Both are pure functions of the training log and the evaluation log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from skilltrail.core.score import Outcome, Score, exact_mean, metric
from skilltrail.core.stats import gain_interval
from skilltrail.history.log.erasure import end_of
from skilltrail.history.log.events import Event

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

Scores = dict[str, Score]


def metrics(training: Sequence[Event], evaluation: Sequence[Event]) -> dict[str, Any]:
    """Return the headline numbers; means are fractions, absent ones are left out.

    Without a suffix a number is in the gate's metric; `_hard` and `_soft` are always there.
    """
    end = end_of(training)
    if end is None:
        raise ValueError("the run has not finished")
    finished = end.data
    selection = _selection_scores(training)
    digests = {"seed": training[0].data["seed_skill"]["digest"]} | {
        name: finished[name]["digest"] for name in ("best", "last")
    }
    kind = gate_metric(training)
    test = held_out_scores(evaluation)
    numbers: dict[str, Any] = {
        "selection": _means(kind, digests, ("seed", "best"), selection),
        "steps": finished["steps"],
        "accepted": finished["accepted"],
        "rejected": finished["rejected"],
        "indecisive": finished["indecisive"],
        "skill_tokens": _tokens(training, digests["best"]),
    }
    names = [name for name in ("seed", "best", "last") if digests[name] in test]
    if names:
        numbers["test"] = _means(kind, digests, names, test) | _named(evaluation)
    if {"seed", "best"} <= set(names):
        tag = next(e.data["interval"] for e in evaluation if e.type == "skill.evaluated")
        seed, best = (test[digests[name]] for name in ("seed", "best"))
        numbers["test"] |= _gains(kind, seed, best, tag)
    transfer = _transfer(evaluation)
    return numbers | ({"transfer": transfer} if transfer else {})


def held_out_scores(evaluation: Sequence[Event]) -> dict[str, Scores]:
    """Return the scores on the test split by skill digest."""
    return {
        event.data["skill"]: _scores(event)
        for event in evaluation
        if event.type == "rollouts.scored"
        and event.data["purpose"] == "test"
        and event.data["split"] == "test"
    }


def held_out_values(
    training: Sequence[Event], evaluation: Sequence[Event]
) -> dict[str, list[Fraction]]:
    """Return the gate metric of the test items that seed and best skill have, by those names.

    {} where one of them was not evaluated, or the run goes on.
    """
    end = end_of(training)
    if end is None:
        return {}
    scores, kind = held_out_scores(evaluation), gate_metric(training)
    ends = training[0].data["seed_skill"], end.data["best"]
    found = [scores.get(skill["digest"], {}) for skill in ends]
    pairs = [(metric(found[0][id], *kind), metric(found[1][id], *kind))
             for id in found[1] if id in found[0]]  # fmt: skip
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return {"seed": [a for a, _ in known], "best": [b for _, b in known]} if known else {}


def _transfer(evaluation: Sequence[Event]) -> dict[str, Any]:
    """Return, by target and skill, what it scores there and the share of the gain it keeps."""
    found: dict[str, Any] = {}
    for event in evaluation:
        if event.type == "skill.transferred":
            data = event.data
            rows = found.setdefault(data["target"], {})
            rows[data["name"]] = {name: data[name] for name in TRANSFERRED if name in data}
    return found


def _named(evaluation: Sequence[Event]) -> dict[str, Any]:
    """Return, by skill, the environment's further metrics on the test split, if it has any."""
    found = {
        event.data["name"]: {one["name"]: one["mean"] for one in event.data["metrics"]}
        for event in evaluation
        if event.type == "skill.evaluated"
        and event.data["split"] == "test"
        and "metrics" in event.data
    }
    return {"metrics": found} if found else {}


def curve(training: Sequence[Event]) -> list[dict[str, Any]]:
    """Return one row per step, in the columns of `COLUMNS`; None where nothing was measured."""
    rows: list[dict[str, Any]] = []
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    best = baseline_mean(training)
    tokens = training[1].data["tokens"]
    for event in training:
        data = event.data
        if event.type == "rollouts.scored" and data["purpose"] == "train":
            row |= {"train_hard": data["mean_hard"], "train_soft": data["mean_soft"]}
        elif event.type == "budget.decided":
            row["lr"] = data["budget"]
        elif event.type == "rollouts.scored" and data["purpose"] == "selection":
            row |= {"candidate_hard": data["mean_hard"], "candidate_soft": data["mean_soft"]}
        elif event.type == "gate.judged":
            row |= {"before": data["before"], "after": data["after"]}
            if data["after"] is None:  # the mean of a part of the items is no score
                row |= {"candidate_hard": None, "candidate_soft": None}
        elif event.type == "skill.versioned":
            tokens = data["tokens"]
            best = row["after"] if data["best"] and data["version"] else best
        elif event.type == "step.ended":
            counts = {name: data["counts"].get(name, 0) for name in ("merged", "selected")}
            rows.append(
                row
                | counts
                | {
                    "step": data["step"],
                    "epoch": data["epoch"],
                    "applied": data["counts"].get("applied", 0),
                    "best": best,
                    "verdict": data["result"],
                    "skill_tokens": tokens,
                    "version": data["version"],
                }
            )
            row = dict.fromkeys(COLUMNS)
    return rows


def baseline_mean(training: Sequence[Event]) -> float | None:
    """Return the seed skill's score on the selection split, None before it is measured."""
    for event in training:
        if event.type == "rollouts.scored" and event.data["purpose"] == "baseline":
            return _mean_of(gate_metric(training), _scores(event))
    return None


def tsv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as tab-separated text with a header; None is an empty cell."""
    lines = ["\t".join(COLUMNS)]
    for row in rows:
        cells = ("" if row[name] is None else str(row[name]) for name in COLUMNS)
        lines.append("\t".join(cells))
    return "\n".join(lines) + "\n"


def gate_metric(training: Sequence[Event]) -> tuple[str, float]:
    """Return (metric, mixed weight) as the gate used it; hard when no candidate was judged."""
    for event in training:
        if event.type == "gate.judged":
            return event.data["metric"], event.data.get("mixed_weight", 0.5)
    return "hard", 0.5


def _selection_scores(training: Sequence[Event]) -> dict[str, Scores]:
    """Return full selection scores by skill digest."""
    return {
        event.data["skill"]: _scores(event)
        for event in training
        if event.type == "rollouts.scored"
        and event.data["purpose"] in ("baseline", "selection")
    }


def _scores(event: Event) -> Scores:
    return {
        row["item"]: Score(Outcome(row["outcome"]), row["hard"], row["soft"], row["reason"])
        for row in event.data["items"]
    }


def _means(
    gate_metric: tuple[str, float],
    digests: Mapping[str, str],
    names: Sequence[str],
    scores: Mapping[str, Scores],
) -> dict[str, Any]:
    """Return each skill's means over the `items` that are scored under all of them."""
    shared = set.intersection(*(_scored(scores[digests[name]]) for name in names))
    numbers: dict[str, Any] = {"items": len(shared)}
    for name in names:
        of_skill = {id: one for id, one in scores[digests[name]].items() if id in shared}
        numbers[name] = _mean_of(gate_metric, of_skill)
        for kind in METRICS:
            numbers[f"{name}_{kind}"] = _mean_of((kind, 0.0), of_skill)
    return numbers


def _gains(
    gate_metric: tuple[str, float], seed: Scores, best: Scores, tag: str
) -> dict[str, float | None]:
    numbers: dict[str, float | None] = {}
    for suffix, kind in (("", gate_metric), ("_hard", ("hard", 0.0)), ("_soft", ("soft", 0.0))):
        pairs = [(metric(seed[id], *kind), metric(score, *kind)) for id, score in best.items()]
        gains = [b - a for a, b in pairs if a is not None and b is not None]
        low, high = gain_interval(gains, tag)
        gain = float(sum(gains, Fraction(0)) / len(gains)) if gains else None
        numbers |= {
            f"gain{suffix}": gain,
            f"gain_low{suffix}": low,
            f"gain_high{suffix}": high,
        }
    return numbers


def _scored(scores: Scores) -> set[str]:
    return {id for id, score in scores.items() if score.outcome is Outcome.SCORED}


def _mean_of(kind: tuple[str, float], scores: Scores) -> float | None:
    mean = exact_mean(metric(score, *kind) for score in scores.values())
    return None if mean is None else float(mean)


def _tokens(training: Sequence[Event], digest: str) -> int:
    sizes = {
        event.data["digest"]: event.data["tokens"]
        for event in training
        if event.type == "skill.versioned"
    }
    tokens: int = sizes[digest]
    return tokens

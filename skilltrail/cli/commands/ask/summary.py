"""`skilltrail summary`: the closing table of the last run, and where to look."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from skilltrail.cli.options import JSON
from skilltrail.core.canon import loaded
from skilltrail.core.errors import FaultError, UsageError
from skilltrail.core.layout import BEST_SKILL, EVALUATION, EVENTS, METRICS, PAGE
from skilltrail.history.ask.evaluations import Openings, evaluations, openings
from skilltrail.history.ask.sources import Project
from skilltrail.history.git.opening import name_here
from skilltrail.history.log import words
from skilltrail.history.log.events import Event, read_all
from skilltrail.history.log.log import read_log
from skilltrail.history.log.types.outcomes import GateJudged, StepEnded
from skilltrail.history.log.types.parts import Verdict
from skilltrail.runtime.console import emit, emit_json, say, table
from skilltrail.runtime.reference import compare_with_head
from skilltrail.store.ops import read_ops
from skilltrail.store.place import Place, find_place
from skilltrail.store.usage import read_usage

_SHOWN_STEPS = 12
NAMELESS = "this run has no name here: `skilltrail rebuild` makes its commits from the logs"
REMEDY = "`dvc repro` trains, evaluates and reports"
COMMITTED = (
    "no run was made here: these are the numbers of the run that came with the checkout; "
    "`dvc repro` makes one"
)
OTHERS_CALLS = (
    "calls and time are left out: the last ones counted here are of another run; "
    "`dvc repro` resumes"
)


def summary(
    as_json: JSON = False,
) -> None:
    """Show scores, gain, calls and time of the last run, and whether it was reproduced.

    Example: skilltrail summary
    """
    place = find_place()
    told = summarize(place)
    if as_json:
        emit_json(told)
        return
    scores = told["scores"]
    there = [
        path.as_posix() for path in (PAGE, BEST_SKILL) if (place.workspace / path).exists()
    ]
    places = [*there, "`skilltrail log`"]
    table(
        ("split", "items", "seed skill", "best skill", "gain (95 % interval)"),
        [
            row
            for split in ("selection", "test")
            if split in scores
            for row in score_rows(split, scores[split])
        ],
        right=("items", "seed skill", "best skill"),
    )
    lines = [
        f"this is run {told['name']}" if told["name"] is not None else NAMELESS,
        *named_lines(scores.get("test", {}).get("metrics", {})),
        f"steps: {scores['steps']} ({scores['accepted']} accepted, {scores['rejected']} "
        f"rejected, {scores['indecisive']} indecisive)",
        *unusable_lines(told["steps_without_usable_reply"]),
        *paid_lines(told),
        *skipped_lines(told["early_stopping"]),
        *opened_lines(told["openings"]),
        *([] if told["reproduction"] is None else [told["reproduction"]]),
        f"look at {', '.join(places)}",
    ]
    if "test" not in scores:
        lines.insert(0, "the test split is sealed (evaluate.enabled: false)")
    for line in lines:
        emit(line)


def named_lines(metrics: dict[str, dict[str, float]]) -> list[str]:
    """Return a line per skill with the environment's further metrics on the test split."""
    return [
        f"test, {skill}: " + ", ".join(f"{name} {mean:.3f}" for name, mean in means.items())
        for skill, means in metrics.items()
    ]


def unusable_steps(training: Iterable[Event]) -> list[int]:
    """Return the steps in which every reply of the optimizer was thrown away."""
    return [
        ended.step
        for ended in read_all(training, StepEnded)
        if ended.counts["replies_rejected"] and not ended.counts["patches"]
    ]


def unusable_lines(steps: list[int]) -> list[str]:
    """Return the line that names the steps in which no reply of the optimizer was of use."""
    if not steps:
        return []
    named = ", ".join(map(str, steps[:_SHOWN_STEPS])) + (", …" if steps[_SHOWN_STEPS:] else "")
    return [
        f"every optimizer reply was invalid in {len(steps)} steps ({named}): "
        "`skilltrail log` says why"
    ]


def skipped_lines(saved: dict[str, int]) -> list[str]:
    """Return the line of what early stopping spared, none where no candidate was rejected."""
    if not saved["of"]:
        return []
    return [
        f"early stopping skipped {saved['saved']} of {saved['of']} selection rollouts of "
        "rejected candidates"
    ]


def opened_lines(found: dict[str, Any]) -> list[str]:
    """Return the line of how often the test split was opened, none where it never was."""
    return [f"test split {Openings(**found)}"] if found["run"] else []


def paid_lines(told: dict[str, Any]) -> list[str]:
    """Return the line of calls and time, none where those counted are not this run's."""
    calls = told["calls"]
    if calls is None:
        return []
    return [
        f"calls made: {calls['made']}, calls reused: {calls['reused']}, "
        f"wall time: {told['wall_s']:.0f} s"
    ]


def summarize(place: Place) -> dict[str, Any]:
    """Return the closing table as JSON; calls and time are null unless they are this run's.

    Raises:
        UsageError: no run has finished here, or the scores are those of another run.
        FaultError: a log is damaged.
    """
    for path in (EVENTS, METRICS):
        if not (place.workspace / path).exists():
            raise UsageError("skilltrail summary", f"no {path.as_posix()}", REMEDY)
    training = read_log(place.workspace / EVENTS)
    if not training:
        raise UsageError("skilltrail summary", f"{EVENTS.as_posix()} is empty", REMEDY)
    try:
        usage = read_usage(place.state / "usage.json")
    except FaultError as error:
        usage = None
        say(str(error))
    made_here = usage is not None and usage.get("run") == training[-1].id
    scores = _recorded_scores(place.workspace / METRICS)
    check_scores(place.workspace, scores, training, made_here=made_here)
    if usage is None or not made_here:
        calls = wall_s = same = None
        reproduction: str | None = COMMITTED if usage is None else OTHERS_CALLS
    else:
        calls = {name: usage["total"][name] for name in ("made", "reused")}
        wall_s = wall_time_s(place.state / "ops.jsonl")
        compared = compare_with_head(place.workspace)
        same, reproduction = compared.same, compared.told
    here = Project(place.workspace, place.root)
    judged = read_all(training, GateJudged)
    rejected = [said for said in judged if said.verdict is Verdict.REJECTED]
    return {
        "scores": scores,
        "calls": calls,
        "wall_s": wall_s,
        "early_stopping": {
            "saved": sum(said.saved for said in rejected),
            "of": sum(said.total for said in rejected),
        },
        "steps_without_usable_reply": unusable_steps(training),
        "openings": asdict(openings(evaluations(here), training[-1].id)),
        "made_here": made_here,
        "reproduced": same,
        "reproduction": reproduction,
        "name": name_here(place.root, training[-1]),
    }


def _recorded_scores(path: Path) -> dict[str, Any]:
    """Return what metrics.json holds.

    Raises:
        FaultError: it is damaged.
    """
    try:
        scores = loaded(path.read_bytes().decode("utf-8"))
        if not isinstance(scores, dict):
            raise ValueError(f"an object is due, found {type(scores).__name__}")
    except ValueError as error:
        remedy = f"Restore it: `git restore {METRICS.as_posix()}`, or `dvc repro` writes one"
        raise FaultError(f"{METRICS.as_posix()} is damaged", str(error), remedy) from error
    return scores


def check_scores(
    workspace: Path, scores: dict[str, Any], training: list[Event], *, made_here: bool
) -> None:
    """Compute the scores again from the logs: metrics.json must be this run's.

    The evaluation log is not committed. Where it is not of this run, the scores of the training
    log alone are compared, provided that nothing was trained here after it.

    Raises:
        UsageError: metrics.json tells of another run, or this run was not evaluated.
        FaultError: the evaluation log is damaged.
    """
    from skilltrail.report.tables import metrics

    evaluation = evaluation_of(workspace, training[-1])
    if evaluation is None and made_here:
        raise UsageError(
            "skilltrail summary", f"no {EVALUATION.as_posix()} of the run in {EVENTS}", REMEDY
        )
    found = metrics(training, [] if evaluation is None else evaluation)
    differs = [name for name in found if scores.get(name) != found[name]]
    if evaluation is not None and "test" in scores and "test" not in found:
        differs.append("test")
    if differs:
        raise UsageError(
            "skilltrail summary",
            f"{METRICS.as_posix()} is of another run than {EVENTS.as_posix()}: "
            f"{', '.join(differs)} differ",
            REMEDY,
        )


def evaluation_of(workspace: Path, last: Event) -> list[Event] | None:
    """Return the evaluation log if it is of the run that ends in `last`, else None."""
    path = workspace / EVALUATION
    if not path.exists():
        return None
    data = path.read_bytes()
    if data and f'"prev":"{last.id}"'.encode() not in data.split(b"\n", 1)[0]:
        return None
    return read_log(path, after=last)


def torn_line(number: int) -> None:
    """Say that a line of the journal is broken: a full disk or a kill cut it."""
    say(f".skilltrail/ops.jsonl, line {number} is torn: what it told is lost, the rest counts")


def wall_time_s(ops: Path) -> float:
    """Return the seconds that the last train and the last evaluate stage took together."""
    last: dict[str, float] = {}
    if ops.exists():
        for record in read_ops(ops, torn_line):
            if record["type"] == "stage.ended" and record["stage"] in ("train", "evaluate"):
                last[record["stage"]] = record["wall_s"]
    return sum(last.values())


def score_rows(split: str, means: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return a split's row, and of several targets one of each."""
    own = [score_row(f"{split}, {name}", of) for name, of in means.get("targets", {}).items()]
    return [score_row(split, means), *own]


def score_row(split: str, means: dict[str, Any]) -> tuple[Any, ...]:
    """Return a row of the closing table; the selection split's own gain is not a finding."""
    gain = "(chosen on it)"
    if means.get("gain") is not None:
        gain = f"{means['gain']:+.3f} ({means['gain_low']:+.3f} to {means['gain_high']:+.3f})"
    seed, best = (words.score(means[name]) for name in ("seed", "best"))
    return split, means["items"], seed, best, gain

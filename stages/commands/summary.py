"""`skilltrail summary`: the closing table of the last run, and where to look."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from stages.console import emit_json, say, table
from stages.core.errors import UsageError
from stages.history.log import read_log
from stages.outputs import EVENTS, METRICS
from stages.reference import compare_with_head
from stages.store.ops import read_ops
from stages.store.place import Place, find_place
from stages.store.usage import read_usage


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("summary")(summary)


def summary(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")] = False,
) -> None:
    """Show scores, gain, calls and time of the last run, and whether it was reproduced.

    Example: skilltrail summary
    """
    told = summarize(find_place())
    if as_json:
        emit_json(told)
        return
    scores = told["scores"]
    table(
        ("split", "seed skill", "best skill", "gain (95 % interval)"),
        [score_row(split, scores[split]) for split in ("selection", "test") if split in scores],
        right=("seed skill", "best skill"),
    )
    calls, saved = told["calls"], told["early_stopping"]
    lines = [
        *named_lines(scores.get("test", {}).get("metrics", {})),
        f"steps: {scores['steps']} ({scores['accepted']} accepted, {scores['rejected']} "
        f"rejected, {scores['indecisive']} indecisive)",
        f"calls made: {calls['made']}, calls reused: {calls['reused']}, "
        f"wall time: {told['wall_s']:.0f} s",
        f"early stopping saved {saved['saved']} of {saved['of']} selection rollouts of "
        "rejected candidates",
        told["reproduction"],
        "look at reports/out/index.html, skills/best_skill.md, `skilltrail log`",
    ]
    if "test" not in scores:
        lines.insert(0, "the test split is sealed (evaluate.enabled: false)")
    for line in lines:
        say(line)


def named_lines(metrics: dict[str, dict[str, float]]) -> list[str]:
    """Return a line per skill with the environment's further metrics on the test split."""
    return [
        f"test, {skill}: " + ", ".join(f"{name} {mean:.3f}" for name, mean in means.items())
        for skill, means in metrics.items()
    ]


def summarize(place: Place) -> dict[str, Any]:
    """Return the closing table as JSON.

    Raises:
        UsageError: no run has finished here.
    """
    path = place.workspace / METRICS
    if not path.exists() or not (place.workspace / EVENTS).exists():
        raise UsageError("skilltrail summary", f"no {METRICS}", "Run `dvc repro` first")
    usage = read_usage(place.state / "usage.json")
    total = {"made": 0, "reused": 0} if usage is None else usage["total"]
    judged = [e.data for e in read_log(place.workspace / EVENTS) if e.type == "gate.judged"]
    rejected = [data for data in judged if data["verdict"] == "rejected"]
    reproduction = compare_with_head(place.workspace)
    return {
        "scores": json.loads(path.read_text(encoding="utf-8")),
        "calls": {name: total[name] for name in ("made", "reused")},
        "wall_s": wall_time_s(place.state / "ops.jsonl"),
        "early_stopping": {
            "saved": sum(data["saved"] for data in rejected),
            "of": sum(data["total"] for data in rejected),
        },
        "reproduced": reproduction.same,
        "reproduction": reproduction.told,
    }


def wall_time_s(ops: Path) -> float:
    """Return the seconds that the last train and the last evaluate stage took together."""
    last: dict[str, float] = {}
    if ops.exists():
        for record in read_ops(ops):
            if record["type"] == "stage.ended" and record["stage"] in ("train", "evaluate"):
                last[record["stage"]] = record["wall_s"]
    return sum(last.values())


def score_row(split: str, means: dict[str, Any]) -> tuple[str, str, str, str]:
    """Return a row of the closing table; the selection split's own gain is not a finding."""
    gain = "(chosen on it)"
    if "gain" in means:
        gain = f"{means['gain']:+.3f} ({means['gain_low']:+.3f} to {means['gain_high']:+.3f})"
    return split, f"{means['seed']:.3f}", f"{means['best']:.3f}", gain

"""`skilltrail evaluate`: measure any skill on any split; recorded rollouts are reused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import PurePath
from typing import Annotated, Any

import typer

from skilltrail.cli.options import JSON
from skilltrail.core.errors import UsageError
from skilltrail.core.item import SPLITS
from skilltrail.core.layout import EVENTS
from skilltrail.history.log.events import Event
from skilltrail.history.log.log import read_log
from skilltrail.history.log.types.outcomes import SkillEvaluated
from skilltrail.history.log.words import score
from skilltrail.runtime.command import until_stopped
from skilltrail.runtime.console import emit, emit_json, say, table
from skilltrail.runtime.evaluation import evaluate as measured
from skilltrail.runtime.evaluation import items_of
from skilltrail.runtime.evaluation.log import EvaluationAsked, openings_before
from skilltrail.runtime.evaluation.named_skill import named_skill
from skilltrail.runtime.evaluation.transfer import target_named
from skilltrail.runtime.session import open_session

GAIN, SHARE = "gain (95 % interval)", "share of the gain (95 % interval)"
TRAINED_ON = "target"  # what tables call the role `target`


def evaluate(
    skill: Annotated[
        list[str], typer.Option("--skill", help="FILE, RUN:vN, seed, best or last.")
    ],
    split: Annotated[str, typer.Option(help="train, selection, test or all.")] = "selection",
    target: Annotated[
        list[str] | None,
        typer.Option("--target", help="A name of evaluate.targets, or a .gguf file."),
    ] = None,
    as_json: JSON = False,
) -> None:
    """Measure skills on a split, compared item by item with the first one.

    On each --target the same skills do the same items, and the share of the gain that carries
    over to it is shown with its 95 % interval.

    Example: skilltrail evaluate --skill seed --skill best --split test
    Example: skilltrail evaluate --skill seed --skill best --target larger.gguf
    """
    if split not in (*SPLITS, "all"):
        raise UsageError(
            f"--split {split}", "no such split", "One of train, selection, test, all"
        )
    rows: list[dict[str, Any]] = []
    targets = [] if target is None else target
    asyncio.run(until_stopped(_measure(skill, split, targets, rows)))
    if as_json:
        emit_json(rows)
        return
    columns = ("target", "skill", "n", "hard", "soft", GAIN, SHARE)
    shown = [(row["target"], *_shown(row), _share(row)) for row in rows]
    several = any(row["target"] != TRAINED_ON for row in rows)
    wanted = slice(None) if targets else slice(0, -1) if several else slice(1, -1)
    table(
        columns[wanted],
        [cells[wanted] for cells in shown],
        right=("n", "hard", "soft"),
    )
    for row in rows:
        named = ", ".join(f"{name} {value:.3f}" for name, value in row["metrics"].items())
        if named:
            emit(f"{row['skill']}{_on(row)}: {named}")


async def _measure(
    names: list[str], split: str, targets: list[str], rows: list[dict[str, Any]]
) -> None:
    async with open_session("evaluate", command="evaluate") as session:
        workspace = session.place.workspace
        log = workspace / EVENTS
        training = read_log(log) if log.exists() else []
        asked = EvaluationAsked(
            training,
            split,
            items_of(workspace, split),
            [named_skill(workspace, name) for name in names],
            {PurePath(n).name: target_named(session.params, n) for n in targets},
            openings_before(session, training),
        )
        if asked.unseals:
            say("the test split is opened: this is recorded in the history of the run")
        rows += rows_of(await measured(session, asked))


def rows_of(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return one row per skill and target: means, the paired gain over the first skill, per
    task type; on another target than the training one the share that carries over."""
    rows = []
    for event in events:
        if isinstance(event.said, SkillEvaluated):
            data = dict(event.data)  # the row is what the event says, under our own names
            about = {"target": data.pop("target", TRAINED_ON), "skill": data.pop("name")}
            about["digest"] = data.pop("skill")
            named = {one["name"]: one["mean"] for one in data.pop("metrics", ())}
            for name in ("model", "against", "split"):
                data.pop(name, None)
            own = data.pop("targets", ())
            rows.append({**data, **about, "metrics": named})
            rows += [{**data, **about, **one, "metrics": {}} for one in own]
    return rows


def _on(row: dict[str, Any]) -> str:
    return "" if row["target"] == TRAINED_ON else f" on {row['target']}"


def _share(row: dict[str, Any]) -> str:
    if row.get("share") is None:
        return "-"
    if row["share_low"] is None:
        return f"{row['share']:.0%} (open: the gain on the target is not clear of 0)"
    return f"{row['share']:.0%} ({row['share_low']:.0%} to {row['share_high']:.0%})"


def _shown(row: dict[str, Any]) -> tuple[str, ...]:
    coverage = row["coverage"]
    gain = "-"
    if row["gain"] is not None:
        gain = f"{row['gain']:+.3f} ({row['gain_low']:+.3f} to {row['gain_high']:+.3f})"
    return (
        row["skill"],
        f"{coverage['scored']}/{coverage['asked']}",
        score(row["mean_hard"]),
        score(row["mean_soft"]),
        gain,
    )

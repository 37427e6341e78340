"""`skilltrail evaluate`: measure any skill on any split; recorded rollouts are reused."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from skilltrail.core.canon import text_digest
from skilltrail.core.errors import UsageError
from skilltrail.core.item import SPLITS, Item
from skilltrail.envs.kit.metrics import metric_means
from skilltrail.method.rollout import Rollout, Rollouts
from skilltrail.method.run import gate_rule
from skilltrail.runtime.command import until_stopped
from skilltrail.runtime.console import emit_json, say, table
from skilltrail.runtime.evaluation import (
    answered,
    by_task_type,
    items_of,
    note_opening,
    summary,
)
from skilltrail.runtime.named_skill import NamedSkill, named_skill
from skilltrail.runtime.session import Session, open_session
from skilltrail.runtime.transfer import carried, open_rollouts, target_named

GAIN, SHARE = "gain (95 % interval)", "share of the gain (95 % interval)"
TRAINED_ON = "target"  # what tables call the role `target`


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("evaluate")(evaluate)


def evaluate(
    skill: Annotated[
        list[str], typer.Option("--skill", help="FILE, RUN:vN, seed, best or last.")
    ],
    split: Annotated[str, typer.Option(help="train, selection, test or all.")] = "selection",
    target: Annotated[
        list[str] | None,
        typer.Option("--target", help="A name of evaluate.targets, or a .gguf file."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")] = False,
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
    wanted = slice(None) if targets else slice(1, -1)
    table(
        columns[wanted],
        [cells[wanted] for cells in shown],
        right=("n", "hard", "soft"),
    )
    for row in rows:
        named = ", ".join(f"{name} {value:.3f}" for name, value in row["metrics"].items())
        if named:
            say(f"{row['skill']}{_on(row)}: {named}")


async def _measure(
    names: list[str], split: str, targets: list[str], rows: list[dict[str, Any]]
) -> None:
    async with open_session("evaluate", command="evaluate") as session:
        workspace = session.place.workspace
        skills = [named_skill(workspace, name) for name in names]
        items = items_of(workspace, split)
        roles = {name: target_named(session.params, name) for name in targets}
        session.progress.expect(len(items) * len(skills) * (1 + len(roles)))
        note_opening(session, split, items, skills)
        if split in ("test", "all"):
            say("the test split is opened; this is noted in .skilltrail/ops.jsonl")
        home = await roll_out(session.rollouts(), items, skills)
        rows += rows_of(session, None, skills, home, home)
        for name, options in roles.items():
            async with open_rollouts(session, name, options) as rollouts:
                there = await roll_out(rollouts, items, skills)
            rows += rows_of(session, name, skills, there, home)


async def roll_out(
    rollouts: Rollouts, items: list[Item], skills: list[NamedSkill]
) -> list[list[Rollout]]:
    """Return the rollouts of all items, one list a skill."""
    return [await rollouts.all(items, skill.text) for skill in skills]


def rows_of(
    session: Session,
    target: str | None,
    skills: list[NamedSkill],
    done: list[list[Rollout]],
    home: list[list[Rollout]],
) -> list[dict[str, Any]]:
    """Return one row per skill: means, the paired gain over the first, and per task type; on
    another target than the training one (`target` is its name) the share that carries over."""
    rule = gate_rule(session.params)
    return [
        {
            "target": TRAINED_ON if target is None else target,
            "skill": skill.name,
            "digest": text_digest(skill.text),
            "metric": rule.metric,
            **summary(rule, done[0], rolled, alone=rolled is done[0]),
            **({} if target is None else carried(rule, (home[0], at_home), (done[0], rolled))),
            "task_types": by_task_type(rule, done[0], rolled, alone=rolled is done[0]),
            "metrics": metric_means(session.env, answered(rolled)),
        }
        for skill, rolled, at_home in zip(skills, done, home, strict=True)
    ]


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
        f"{row['mean_hard']:.3f}",
        f"{row['mean_soft']:.3f}",
        gain,
    )

"""`skilltrail evaluate`: measure any skill on any split; recorded rollouts are reused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from stages.command import until_stopped
from stages.console import emit_json, say, table
from stages.core.canon import text_digest
from stages.core.errors import UsageError
from stages.core.item import SPLITS, Item
from stages.core.trajectory import Trajectory
from stages.data.splits import read_split
from stages.envs.named import named_means
from stages.evaluate import NamedSkill, by_task_type, summary
from stages.history.sources import skill_text
from stages.outputs import EVENTS
from stages.rollout import Rollout
from stages.run import gate_rule
from stages.session import Session, open_session
from stages.train import read_seed_skill

FROM_THE_LOG = ("seed", "best", "last")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("evaluate")(evaluate)


def evaluate(
    skill: Annotated[
        list[str], typer.Option("--skill", help="FILE, RUN:vN, seed, best or last.")
    ],
    split: Annotated[str, typer.Option(help="train, selection, test or all.")] = "selection",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")] = False,
) -> None:
    """Measure skills on a split, compared item by item with the first one.

    Example: skilltrail evaluate --skill seed --skill best --split test
    """
    if split not in (*SPLITS, "all"):
        raise UsageError(
            f"--split {split}", "no such split", "One of train, selection, test, all"
        )
    rows: list[dict[str, Any]] = []
    asyncio.run(until_stopped(_measure(skill, split, rows)))
    if as_json:
        emit_json(rows)
        return
    table(
        ("skill", "n", "hard", "soft", "gain (95 % interval)"),
        [_shown(row) for row in rows],
        right=("n", "hard", "soft"),
    )
    for row in rows:
        named = ", ".join(f"{name} {value:.3f}" for name, value in row["metrics"].items())
        if named:
            say(f"{row['skill']}: {named}")


async def _measure(names: list[str], split: str, rows: list[dict[str, Any]]) -> None:
    async with open_session("evaluate", command="evaluate") as session:
        workspace = session.place.workspace
        skills = [named_skill(workspace, name) for name in names]
        items = _items(workspace, split)
        session.progress.expect(len(items) * len(skills))
        if split in ("test", "all"):
            session.ops.write("test.opened", items=len(items), skills=names)
            say("the test split is opened; this is noted in .skilltrail/ops.jsonl")
        rows += await compare(session, items, skills)


async def compare(
    session: Session, items: list[Item], skills: list[NamedSkill]
) -> list[dict[str, Any]]:
    """Return one row per skill: means, the paired gain over the first, and per task type."""
    rule, rollouts = gate_rule(session.params), session.rollouts()
    done = [await rollouts.all(items, skill.text) for skill in skills]
    return [
        {
            "skill": skill.name,
            "digest": text_digest(skill.text),
            "metric": rule.metric,
            **summary(rule, done[0], rolled, alone=rolled is done[0]),
            "task_types": by_task_type(rule, done[0], rolled, alone=rolled is done[0]),
            "metrics": named_means(rollouts.env, answered(rolled)),
        }
        for skill, rolled in zip(skills, done, strict=True)
    ]


def answered(rolled: list[Rollout]) -> list[tuple[Item, Trajectory]]:
    """Return item and trajectory of every rollout that is not missing."""
    return [(one.item, one.trajectory) for one in rolled if one.trajectory is not None]


def named_skill(workspace: Path, name: str) -> NamedSkill:
    """Return the skill a person named: a file, a version of a run, or one of the last run's.

    Raises:
        UsageError: there is no such file, run or version.
    """
    path = workspace / name
    if path.is_file():
        return NamedSkill(name, read_seed_skill(path))
    if name in FROM_THE_LOG and not (workspace / EVENTS).exists():
        raise UsageError(
            f"--skill {name}", f"no {EVENTS}", "Run `dvc repro` first, or name a file"
        )
    return NamedSkill(name, skill_text(name))


def _items(workspace: Path, split: str) -> list[Item]:
    names = SPLITS if split == "all" else (split,)
    return [item for name in names for item in read_split(workspace, name)]


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

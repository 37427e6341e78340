"""Evaluation: skills measured on a split, item by item against the first of them.

A gain comes with its 95 % interval. On each further target the same skills do the same items,
to see what of the gain carries over (see `transfer`). The training log is never touched. The
page of the pipeline's evaluation is `stages/evaluate.py`; `skilltrail evaluate` makes others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from msgspec import convert

from skilltrail.core.canon import text_digest
from skilltrail.core.files import write_atomic
from skilltrail.core.item import SPLITS, Item
from skilltrail.core.layout import EVALUATION
from skilltrail.core.score import Score, exact_mean, exact_sum
from skilltrail.core.stats import gain_interval, gain_tag
from skilltrail.core.targets import item_gains
from skilltrail.core.trajectory import Trajectory
from skilltrail.data.splits import read_split
from skilltrail.envs.protocol import Environment
from skilltrail.envs.scoring import metric_rows
from skilltrail.history.log import types
from skilltrail.history.log.events import Event, as_recorded
from skilltrail.history.log.types.parts import Purpose, items_named
from skilltrail.method.gate import GateRule
from skilltrail.method.rollout import Rollout, Rollouts, scored
from skilltrail.method.run import History, gate_rule
from skilltrail.runtime.evaluation.log import EvaluationAsked, open_log
from skilltrail.runtime.evaluation.named_skill import NamedSkill, named_skill, skills_of
from skilltrail.runtime.evaluation.transfer import transfer_ratio
from skilltrail.runtime.outputs import TEST_ROLLOUTS, facts_named
from skilltrail.runtime.session import Session
from skilltrail.store.exports import export_shards


def asked_by_params(session: Session, training: Sequence[Event]) -> EvaluationAsked:
    """Return what the pipeline measures of a training log."""
    workspace, wanted = session.place.workspace, session.params.evaluate
    named = [named_skill(workspace, name) for name in wanted.skills]
    skills = named if named else skills_of(training)
    items = items_of(workspace, wanted.split)
    return EvaluationAsked(training, wanted.split, items, skills, wanted.roles)


async def evaluate(session: Session, asked: EvaluationAsked) -> list[Event]:
    """Measure what is asked for, on the target trained on and on the further ones."""
    rule, items, skills = gate_rule(session.params), asked.items, asked.skills
    gaps = ""
    if asked.opened_before is None:
        gaps = gaps_after(asked.training[-1].id)
        session.accounts.keep_in(session.place.state / "spent" / f"{gaps}.jsonl")
    on_each = len(skills) * (len(session.params.target_roles) + len(asked.targets))
    session.progress.expect(len(items) * on_each)
    async with open_log(session, asked) as recorder:
        if asked.unseals:
            names = [skill.name for skill in skills]
            session.ops.write("test.opened", items=len(items), skills=names)
        home, split = session.rollouts(gaps), asked.split
        done = await measure(home, rule, items, skills, recorder, split, asked.opened_before)
        for name, options in asked.targets.items():
            async with session.rollouts_on(name, options, gaps) as there:
                await transfer(name, there, rule, done, skills, recorder, split)
        recorder.finish()
    return recorder.events


def write_outputs(session: Session, events: Sequence[Event]) -> None:
    """Write what DVC tracks: the log, which is empty where the split was left sealed, and the
    rollouts that it rests on."""
    workspace = session.place.workspace
    lines = "".join(f"{event.line.decode()}\n" for event in events)
    write_atomic(workspace / EVALUATION, lines)
    named = facts_named(events, gaps_after(events[0].prev)) if events else set()
    export_shards(session.store, named, workspace / TEST_ROLLOUTS)


def gaps_after(run: str | None) -> str:
    """Return the name of the gaps in an evaluation of the training that ends with `run`."""
    return "" if run is None else f"evaluate-{run[:16]}"


def items_of(workspace: Path, split: str) -> list[Item]:
    """Return the frozen items of a split; `all` are those of all three."""
    names = SPLITS if split == "all" else (split,)
    return [item for name in names for item in read_split(workspace, name)]


async def measure(
    rollouts: Rollouts,
    rule: GateRule,
    items: Sequence[Item],
    skills: Sequence[NamedSkill],
    history: History,
    split: str,
    opened_before: int | None = None,
) -> list[list[Rollout]]:
    """Roll out every item with every skill; the first skill is what the others gain over.

    That the split is opened is on record before the first rollout, see `EvaluationAsked`.
    Returns the
    rollouts, one list a skill.
    """
    opened = {
        "split": split,
        "items": items_named(items),
        "skills": [{"name": s.name, "digest": text_digest(s.text)} for s in skills],
        "target": dict(rollouts.target.identity),
        **({} if opened_before is None else {"opened_before": opened_before}),
        **rollouts.scorer.consumed(items),
    }
    history.append(*as_recorded(convert(opened, types.TestOpened)))
    history.flush()
    all_done: list[list[Rollout]] = []
    for skill in skills:
        done = await rollouts.all(rollouts.cases(items), skill.text)
        all_done.append(done)
        history.append(*as_recorded(scored(done, skill.text, Purpose.TEST, split=split)))
        means = _told(rule, skills, skill, all_done[0], done, split)
        said = types.SkillEvaluated(**means, **named(rollouts.env, done))
        history.append(*as_recorded(said))
    history.flush()
    return all_done


async def transfer(
    name: str,
    rollouts: Rollouts,
    rule: GateRule,
    home: Sequence[Sequence[Rollout]],
    skills: Sequence[NamedSkill],
    history: History,
    split: str,
) -> None:
    """Roll out the items of `home` with every skill on another target, called `name`.

    `home` holds the rollouts on the training target, one list a skill.
    """
    items = [rollout.item for rollout in home[0]]
    first: list[Rollout] = []
    for skill, at_home in zip(skills, home, strict=True):
        done = await rollouts.all(items, skill.text)
        first = first or done
        history.append(*as_recorded(scored(done, skill.text, Purpose.TRANSFER, target=name)))
        said = types.SkillTransferred(
            target=name,
            model=dict(rollouts.target.identity),
            **_told(rule, skills, skill, first, done, split),
            **named(rollouts.env, done),
            **transfer_ratio(rule, (home[0], at_home), (first, done)),
        )
        history.append(*as_recorded(said))
    history.flush()


def _told(
    rule: GateRule,
    skills: Sequence[NamedSkill],
    skill: NamedSkill,
    first: Sequence[Rollout],
    done: Sequence[Rollout],
    split: str,
) -> dict[str, Any]:
    """Return what an evaluation says of one skill."""
    alone = skill is skills[0]
    return {
        "name": skill.name,
        "skill": text_digest(skill.text),
        "against": None if alone else text_digest(skills[0].text),
        "split": split,
        "metric": rule.metric,
        **({"mixed_weight": rule.mixed_weight} if rule.metric == "mixed" else {}),
        **summary(rule, first, done, alone=alone),
        "task_types": by_task_type(rule, first, done, alone=alone),
        **by_target(rule, first, done, alone=alone),
    }


def summary(
    rule: GateRule, first: Sequence[Rollout], done: Sequence[Rollout], *, alone: bool
) -> dict[str, Any]:
    """Return means, and the paired gain of `done` over `first` with its 95 % interval."""
    hard = [s.score.hard for s in done if s.score.hard is not None]
    mean = rule.mean({r.item.case: r.score for r in done})
    differences = item_gains(_values(rule, first), _values(rule, done), rule.targets)
    means = {
        "mean": None if mean is None else float(mean),
        "mean_hard": mean_by(GateRule(metric="hard"), [r.score for r in done]),
        "mean_soft": mean_by(GateRule(metric="soft"), [r.score for r in done]),
        "coverage": {"scored": len(hard), "asked": len(done)},
        "interval": gain_tag([] if alone else differences),
        "gain": None,
        "gain_low": None,
        "gain_high": None,
    }
    if alone or not differences:
        return means
    low, high = gain_interval(differences)
    gain = float(exact_sum(differences) / len(differences))
    return means | {"gain": gain, "gain_low": low, "gain_high": high}


def by_target(
    rule: GateRule, first: Sequence[Rollout], done: Sequence[Rollout], *, alone: bool
) -> dict[str, Any]:
    """Return means and gain on each of several targets; nothing where there is one."""
    rows, own = [], replace(rule, targets=())
    for target in rule.targets:
        sides = (
            [one for one in some if one.item.target == target.name] for some in (first, done)
        )
        rows.append({"target": target.name, **summary(own, *sides, alone=alone)})
    return {"targets": rows} if rows else {}


def named(env: Environment, done: Sequence[Rollout]) -> dict[str, Any]:
    """Return the means of the environment's further metrics; nothing where it has none."""
    found = metric_rows(env, answered(done))
    return {"metrics": found} if found else {}


def answered(done: Sequence[Rollout]) -> list[tuple[Item, Trajectory]]:
    """Return item and trajectory of every rollout that is not missing."""
    return [(one.item, one.trajectory) for one in done if one.trajectory is not None]


def by_task_type(
    rule: GateRule, first: Sequence[Rollout], done: Sequence[Rollout], *, alone: bool
) -> list[dict[str, Any]]:
    """Return n, means and gain for each task type, in alphabetical order."""
    kinds = sorted({r.item.task_type for r in done if r.item.task_type is not None})
    rows = []
    for kind in kinds:
        pairs = [(a, b) for a, b in zip(first, done, strict=True) if b.item.task_type == kind]
        told = summary(rule, [a for a, _ in pairs], [b for _, b in pairs], alone=alone)
        rows.append(
            {
                "task_type": kind,
                "n": told["coverage"]["scored"],
                "hard": told["mean_hard"],
                "soft": told["mean_soft"],
                "gain": told["gain"],
                "gain_low": told["gain_low"],
                "gain_high": told["gain_high"],
            }
        )
    return rows


def _values(rule: GateRule, done: Sequence[Rollout]) -> dict[str, Fraction | None]:
    return {one.item.case: rule.value(one.score) for one in done}


def mean_by(rule: GateRule, scores: Sequence[Score]) -> float | None:
    """Return the mean of the scored ones by a rule's metric, None of none."""
    mean = exact_mean(rule.value(score) for score in scores)
    return None if mean is None else float(mean)

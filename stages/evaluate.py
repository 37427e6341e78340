"""The `evaluate` stage: open the test split once and measure seed, best and last skill on it.

    in    skills/events.jsonl, data/splits/test.jsonl, data/rollouts/test (if any)
    out   reports/out/evaluation.jsonl, data/rollouts/test

Skills are compared item by item with the seed skill; a gain comes with its 95 % interval. The
training log is never touched. `evaluate.enabled: false` keeps the test split sealed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from stages.command import run_stage
from stages.core.canon import text_digest
from stages.core.files import write_atomic
from stages.core.item import Item
from stages.core.score import Score, exact_mean
from stages.core.stats import gain_interval
from stages.data.splits import read_split
from stages.gate import GateRule
from stages.history.events import Event
from stages.history.log import read_log
from stages.history.recorder import Recorder
from stages.history.replay import version_of
from stages.outputs import EVALUATION, EVENTS, TEST_ROLLOUTS, facts_named
from stages.rollout import Rollout, Rollouts, scored
from stages.run import History, gate_rule
from stages.session import Session, open_session
from stages.store.exports import export_shards, import_shards

INTERVAL = "adjusted_wald/1"


@dataclass(frozen=True)
class NamedSkill:
    """A skill to measure: `seed`, `best`, `last`, or what a person called it."""

    name: str
    text: str


async def main() -> None:
    """Measure the skills of the training log on the test split and write the outputs."""
    async with open_session("evaluate") as session:
        workspace = session.place.workspace
        export = workspace / TEST_ROLLOUTS
        if not session.params.evaluate.enabled:
            write_atomic(workspace / EVALUATION, "")
            export_shards(session.store, set(), export)
            return
        import_shards(session.store, export)
        training = read_log(workspace / EVENTS)
        items = read_split(workspace, "test")
        skills = skills_of(training)
        session.ops.write("test.opened", items=len(items), skills=[s.name for s in skills])
        events = await evaluate_skills(session, items, skills, after=training[-1])
        export_shards(session.store, facts_named(events), export)


async def evaluate_skills(
    session: Session, items: Sequence[Item], skills: Sequence[NamedSkill], *, after: Event
) -> list[Event]:
    """Measure `skills` into reports/out/evaluation.jsonl and return its events."""
    path = session.place.workspace / EVALUATION
    path.parent.mkdir(parents=True, exist_ok=True)
    recorder = Recorder(path, after=after, report=session.report)
    try:
        session.progress.expect(len(items) * len(skills))
        await measure(
            session.rollouts(), gate_rule(session.params), items, skills, recorder, "test"
        )
        recorder.finish()
    finally:
        recorder.close()
    return recorder.events


def skills_of(training: Sequence[Event]) -> list[NamedSkill]:
    """Return seed and best skill of a training log, and the last one where it differs."""
    seed, best, last = (version_of(training, name).text for name in ("seed", "best", "last"))
    skills = [NamedSkill("seed", seed), NamedSkill("best", best)]
    if last != best:
        skills.append(NamedSkill("last", last))
    return skills


async def measure(
    rollouts: Rollouts,
    rule: GateRule,
    items: Sequence[Item],
    skills: Sequence[NamedSkill],
    history: History,
    split: str,
) -> None:
    """Roll out every item with every skill; the first skill is what the others gain over."""
    history.append(
        "test.opened",
        {
            "split": split,
            "items": [{"item": item.id, "digest": item.content_digest} for item in items],
            "skills": [{"name": s.name, "digest": text_digest(s.text)} for s in skills],
            "target": dict(rollouts.target.identity),
        },
    )
    first: list[Rollout] = []
    for skill in skills:
        done = await rollouts.all(items, skill.text)
        first = first or done
        history.append("rollouts.scored", scored(done, skill.text, "test", split=split))
        history.append(
            "skill.evaluated",
            {
                "name": skill.name,
                "skill": text_digest(skill.text),
                "against": None if skill is skills[0] else text_digest(skills[0].text),
                "split": split,
                "metric": rule.metric,
                **({"mixed_weight": rule.mixed_weight} if rule.metric == "mixed" else {}),
                **summary(rule, first, done, alone=skill is skills[0]),
                "task_types": by_task_type(rule, first, done, alone=skill is skills[0]),
            },
        )
    history.flush()


def summary(
    rule: GateRule, first: Sequence[Rollout], done: Sequence[Rollout], *, alone: bool
) -> dict[str, Any]:
    """Return means, and the paired gain of `done` over `first` with its 95 % interval."""
    hard = [s.score.hard for s in done if s.score.hard is not None]
    means = {
        "mean": _mean(rule, [r.score for r in done]),
        "mean_hard": _mean(GateRule(metric="hard"), [r.score for r in done]),
        "mean_soft": _mean(GateRule(metric="soft"), [r.score for r in done]),
        "coverage": {"scored": len(hard), "asked": len(done)},
        "interval": INTERVAL,
        "gain": None,
        "gain_low": None,
        "gain_high": None,
    }
    differences = paired(rule, [r.score for r in first], [r.score for r in done])
    if alone or not differences:
        return means
    low, high = gain_interval(differences)
    gain = float(sum(differences, Fraction(0)) / len(differences))
    return means | {"gain": gain, "gain_low": low, "gain_high": high}


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


def paired(rule: GateRule, before: Sequence[Score], after: Sequence[Score]) -> list[Fraction]:
    """Return after - before in the gate metric for every item scored under both."""
    pairs = [(rule.value(a), rule.value(b)) for a, b in zip(before, after, strict=True)]
    return [b - a for a, b in pairs if a is not None and b is not None]


def _mean(rule: GateRule, scores: Sequence[Score]) -> float | None:
    mean = exact_mean(rule.value(score) for score in scores)
    return None if mean is None else float(mean)


if __name__ == "__main__":
    run_stage(main)

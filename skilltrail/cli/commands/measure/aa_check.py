"""`skilltrail aa-check`: how noisy is the measurement, before money is spent on training?"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from skilltrail.cli.options import JSON
from skilltrail.core.score import Score
from skilltrail.data.splits import read_split
from skilltrail.method.gate import judge_all
from skilltrail.method.gate.noise import COMPARISONS, false_accept_rate
from skilltrail.method.run import gate_rule
from skilltrail.runtime.command import until_stopped
from skilltrail.runtime.console import emit, emit_json
from skilltrail.runtime.evaluation.named_skill import named_skill
from skilltrail.runtime.session import open_session


def aa_check(
    skill: Annotated[str, typer.Option("--skill", help="FILE, RUN:vN, seed, best or last.")],
    as_json: JSON = False,
) -> None:
    """Measure one skill twice on the selection split and compare it with itself.

    Prints how many items flip between two measurements of the same skill, what the gate says of
    that comparison and how often it would accept such noise, and the smallest gain that the
    split can show.

    Example: skilltrail aa-check --skill skills/seeds/textqa.md
    """
    told: dict[str, Any] = {}
    asyncio.run(until_stopped(_check(skill, told)))
    if as_json:
        emit_json(told)
        return
    emit(
        f"{told['flipped']} of {told['items']} items flip between two measurements of one "
        f"skill (rate {told['flip_rate']:.3f}); "
        f"the gate ({told['rule']}) says: {told['verdict']}"
    )
    emit(
        f"of {COMPARISONS} comparisons of the skill with itself the gate would accept "
        f"{told['false_accept_rate']:.1%} (gate.alpha: {told['alpha']:.1%})"
    )
    emit(f"the smallest gain that this split can show is {told['smallest_gain']:.3f}")
    if told["false_accept_rate"] > told["alpha"]:
        emit("the gate would accept noise here: use `gate.rule: paired` or `gate.repeats`")


async def _check(name: str, told: dict[str, Any]) -> None:
    async with open_session("evaluate", command="aa-check") as session:
        text = named_skill(session.place.workspace, name).text
        items = read_split(session.place.workspace, "selection")
        door = session.rollouts()
        cases = door.cases(items)
        session.progress.expect(2 * len(cases))
        rollouts = await door.all(cases, text, 2)
        one, two = ({r.item.case: r.score for r in rollouts if r.repeat == n} for n in (0, 1))
        rule = gate_rule(session.params)
        ids = [case.case for case in cases]
        verdict = judge_all(rule, ids, one, two)
        flipped = sum(_differs(one[id], two[id]) for id in ids)
        told |= {
            "items": len(ids),
            "flipped": flipped,
            "flip_rate": flipped / len(ids),
            "rule": rule.rule,
            "verdict": verdict.verdict,
            "false_accept": verdict.verdict == "accepted",
            "false_accept_rate": false_accept_rate(rule, ids, one, two),
            "alpha": rule.alpha,
            "smallest_gain": 1 / len(ids),
        }


def _differs(one: Score, two: Score) -> bool:
    return (one.hard, one.soft) != (two.hard, two.soft)

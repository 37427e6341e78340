"""A candidate before the gate: roll it out on the selection split until the gate knows.

`method.gate` decides; this module fetches the rollouts in gate order, records the verdict, and
turns an accepted candidate into the next version of the skill.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.item import Item
from skilltrail.core.score import Score, mean_score
from skilltrail.core.targets import case_gains, weighted_mean
from skilltrail.core.tokens import count_tokens
from skilltrail.history.log import types
from skilltrail.history.log.events import Event
from skilltrail.history.log.run_state import Scores
from skilltrail.history.log.types.parts import Purpose, Verdict
from skilltrail.method.gate import ORDER, Gate, GateRule, gate_order, on_cost, recorded
from skilltrail.method.rollout import Rollout, scored
from skilltrail.method.run import Run, State
from skilltrail.method.update import Built
from skilltrail.optimizers.protocol import StepRecord

_LEAST_OF_TYPE = 3


async def evaluate_candidate(
    run: Run,
    state: State,
    built: Built,
    record: StepRecord,
    *,
    source: str = "step",
    force: bool = False,
    against: tuple[str, Scores] | None = None,
) -> tuple[State, StepRecord]:
    """Return the state after the gate's verdict, and the step's record with that verdict.

    `force` accepts whatever the scores; the candidate is measured in full all the same. It is
    judged against the newest version, or `against` another text with its scores.
    """
    rule = replace(run.gate_rule, rule="none") if force else run.gate_rule
    text = built.candidate.text
    where: dict[str, Any] = {"epoch": record.epoch, "step": record.step}
    skill, scores = (state.skill, state.scores) if against is None else against
    order = gate_order([item.case for item in run.cases], scores, rule, state.cumulative_loss)
    tokens = {"tokens_before": count_tokens(skill), "tokens_after": count_tokens(text)}
    gate = Gate(rule, order, scores, **tokens)
    rollouts = await _roll_out(run, gate, text)
    verdict = gate.verdict()
    run.tell(scored(rollouts, text, Purpose.SELECTION, **where))
    about: dict[str, Any] = {
        "source": source,
        "current": text_digest(skill),
        "candidate": text_digest(text),
    }
    about |= recorded(verdict, len(order)) | tokens
    judged = run.tell(types.GateJudged(**where, **rule_fields(run, rule), **about))
    state = run.follow(state)
    if verdict.verdict is Verdict.ACCEPTED:
        record_version(run, state, built, judged)
    counts = {"judged": len(verdict.judged), "saved": verdict.saved}
    return run.follow(state), replace(
        record,
        verdict=verdict.verdict.value,
        before=verdict.before,
        after=verdict.after,
        won=by_task_type(run.cases, verdict.won),
        lost=by_task_type(run.cases, verdict.lost),
        counts=dict(record.counts) | counts,
    )


def rule_fields(run: Run, rule: GateRule) -> dict[str, Any]:
    """Return what a verdict says of the rule that it was made by."""
    repeats = run.params.gate.repeats
    told = {"rule": f"{rule.rule}/1", "order": ORDER, **rule.consumed()}
    return told | ({"repeats": repeats} if repeats > 1 else {})


async def _roll_out(run: Run, gate: Gate, text: str) -> list[Rollout]:
    """Return the candidate's rollouts in gate order, up to where the gate knows."""
    by_case = {item.case: item for item in run.cases}
    repeats = run.params.gate.repeats
    rollouts: list[Rollout] = []
    stream = run.rollouts.in_order([by_case[case] for case in gate.order], text, repeats)
    async with aclosing(stream):
        async for rollout in stream:
            if gate.rule.min_coverage == 1:
                run.rollouts.require([rollout])
            rollouts.append(rollout)
            if len(rollouts) % repeats:
                continue
            if gate.add(mean_score([r.score for r in rollouts[-repeats:]])):
                break
    return rollouts


def by_task_type(cases: Sequence[Item], names: Sequence[str]) -> dict[str, int]:
    """Return how many of the cases named each task type has.

    A type that fewer than `_LEAST_OF_TYPE` selection items have is counted under `other`: what
    an optimizer is told never gives away how one item fared.
    """
    sizes = Counter({item.id: item.task_type for item in cases}.values())
    types = {
        item.case: item.task_type
        if item.task_type is not None and sizes[item.task_type] >= _LEAST_OF_TYPE
        else "other"
        for item in cases
    }
    return dict(sorted(Counter(types[name] for name in names).items()))


def moves_best(
    rule: GateRule, best: Mapping[str, Score], candidate: Mapping[str, Score], *, cheaper: bool
) -> bool:
    """Return whether an accepted candidate is the best skill from here on.

    Args:
        best, candidate: full scores by item of the best skill so far and of the candidate.
        cheaper: the candidate costs less than the skill it replaces (`on_cost`). At an equal
            score that speaks for it, and what was accepted is what is delivered.
    """
    before, after = (
        {case: rule.value(score) for case, score in some.items()} for some in (best, candidate)
    )
    gain = weighted_mean(case_gains(before, after), rule.targets)
    return gain is not None and (gain > 0 or (gain == 0 and cheaper))


def record_version(run: Run, state: State, built: Built, judged: Event) -> None:
    """Record an accepted candidate as the next version; its scores are in the state."""
    candidate, gate = built.candidate, judged.read(types.GateJudged)
    best = moves_best(
        run.gate_rule, state.best_scores, state.candidate_scores, cheaper=on_cost(gate)
    )
    assert state.version is not None
    run.tell(
        types.SkillVersioned(
            epoch=gate.epoch,
            step=gate.step,
            version=state.version + 1,
            parent=text_digest(candidate.parent),
            digest=text_digest(candidate.text),
            best=best,
            patch=built.patch,
            candidate=built.event,
            gate=judged.seq,
            edits=candidate.applied,
            not_applied=candidate.not_applied,
            lines_added=candidate.added,
            lines_removed=candidate.removed,
            tokens=gate.tokens_after,
        )
    )

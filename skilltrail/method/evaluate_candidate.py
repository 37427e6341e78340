"""A candidate before the gate: roll it out on the selection split until the gate knows.

`method.gate` decides; this module fetches the rollouts in gate order, records the verdict, and
turns an accepted candidate into the next version of the skill.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from fractions import Fraction

from skilltrail.core.canon import text_digest
from skilltrail.core.item import Item
from skilltrail.core.score import Score, exact_mean
from skilltrail.core.tokens import count_tokens
from skilltrail.method.gate import ORDER, Gate, GateRule, Verdict, gate_order, recorded
from skilltrail.method.rollout import Rollout, by_item, mean_score, scored, with_shortfall
from skilltrail.method.run import Best, Rejection, Run, State
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
) -> tuple[State, StepRecord]:
    """Return the state after the gate's verdict, and the step's record with that verdict.

    `force` accepts whatever the scores; the candidate is measured in full all the same.
    """
    rule = replace(run.gate_rule, rule="none") if force else run.gate_rule
    ids = [item.id for item in run.selection]
    order = gate_order(ids, state.scores, rule, state.shortfall)
    tokens_before, tokens_after = count_tokens(state.skill), count_tokens(built.candidate.text)
    gate = Gate(
        rule, order, state.scores, tokens_before=tokens_before, tokens_after=tokens_after
    )
    by_id = {item.id: item for item in run.selection}
    repeats = run.params.gate.repeats
    rollouts: list[Rollout] = []
    stream = run.rollouts.in_order([by_id[id] for id in order], built.candidate.text, repeats)
    async with aclosing(stream):
        async for rollout in stream:
            if rule.min_coverage == 1:
                run.rollouts.require([rollout])
            rollouts.append(rollout)
            if len(rollouts) % repeats:
                continue
            if gate.add(mean_score([r.score for r in rollouts[-repeats:]])):
                break
    verdict = gate.verdict()
    where = {"epoch": record.epoch, "step": record.step}
    run.history.append(
        "rollouts.scored", scored(rollouts, built.candidate.text, "selection", **where)
    )
    tokens = (tokens_before, tokens_after)
    gate_seq = _record_verdict(run, state, built, record, source, rule, verdict, tokens)
    record = replace(
        record,
        verdict=verdict.verdict,
        before=verdict.before,
        after=verdict.after,
        won=by_task_type(run.selection, verdict.won),
        lost=by_task_type(run.selection, verdict.lost),
        counts=dict(record.counts) | {"judged": len(verdict.judged), "saved": verdict.saved},
    )
    state = replace(state, shortfall=with_shortfall(state.shortfall, rollouts))
    if verdict.verdict == "rejected":
        why = Rejection(gate_seq, state.digest, mean_of(run.gate_rule, state.scores))
        digest = text_digest(built.candidate.text)
        state = replace(state, rejected=dict(state.rejected) | {digest: why})
    if verdict.verdict != "accepted":
        return state, record
    return _accept(run, state, built, record, by_item(rollouts), gate_seq, tokens), record


def by_task_type(selection: Sequence[Item], ids: Sequence[str]) -> dict[str, int]:
    """Return how many of `ids` each task type has.

    A type that fewer than `_LEAST_OF_TYPE` selection items have is counted under `other`: what
    an optimizer is told never gives away how one item fared.
    """
    sizes = Counter(item.task_type for item in selection)
    types = {
        item.id: item.task_type
        if item.task_type is not None and sizes[item.task_type] >= _LEAST_OF_TYPE
        else "other"
        for item in selection
    }
    return dict(sorted(Counter(types[id] for id in ids).items()))


def moves_best(
    rule: GateRule, best: Mapping[str, Score], candidate: Mapping[str, Score], *, shorter: bool
) -> bool:
    """Return whether an accepted candidate is the best skill from here on.

    Args:
        best, candidate: full scores by item of the best skill so far and of the candidate.
        shorter: the candidate has fewer tokens than the skill it replaces. At an equal score
            cost is what speaks for it, and what was accepted is what is delivered.
    """
    pairs = [
        (rule.value(best[id]), rule.value(candidate[id])) for id in candidate if id in best
    ]
    gains = [after - now for now, after in pairs if now is not None and after is not None]
    gain = sum(gains, Fraction(0))
    return bool(gains) and (gain > 0 or (gain == 0 and shorter))


def mean_of(rule: GateRule, scores: Mapping[str, Score]) -> Fraction | None:
    """Return the mean of the gate metric over the scored items, None of none."""
    return exact_mean(rule.value(score) for score in scores.values())


def _record_verdict(
    run: Run,
    state: State,
    built: Built,
    record: StepRecord,
    source: str,
    rule: GateRule,
    verdict: Verdict,
    tokens: tuple[int, int],
) -> int:
    event = run.history.append(
        "gate.judged",
        {
            "epoch": record.epoch,
            "step": record.step,
            "source": source,
            "rule": f"{rule.rule}/1",
            **rule.consumed(),
            **({"repeats": run.params.gate.repeats} if run.params.gate.repeats > 1 else {}),
            "current": state.digest,
            "candidate": text_digest(built.candidate.text),
            "order": ORDER,
            **recorded(verdict, len(run.selection)),
            "tokens_before": tokens[0],
            "tokens_after": tokens[1],
        },
    )
    return event.seq


def _accept(
    run: Run,
    state: State,
    built: Built,
    record: StepRecord,
    scores: Mapping[str, Score],
    gate_seq: int,
    tokens: tuple[int, int],
) -> State:
    """Record the next version and return the state that goes on from it."""
    candidate = built.candidate
    rule, shorter = run.gate_rule, tokens[1] < tokens[0]
    is_best = moves_best(rule, state.best.scores, scores, shorter=shorter)
    version = state.version + 1
    run.history.append(
        "skill.versioned",
        {
            "epoch": record.epoch,
            "step": record.step,
            "version": version,
            "parent": text_digest(candidate.parent),
            "digest": text_digest(candidate.text),
            "best": is_best,
            "patch": built.patch,
            "candidate": built.event,
            "gate": gate_seq,
            "edits": list(candidate.applied),
            "not_applied": list(candidate.not_applied),
            "lines_added": candidate.added,
            "lines_removed": candidate.removed,
            "tokens": tokens[1],
        },
    )
    return replace(
        state,
        skill=candidate.text,
        version=version,
        scores=scores,
        best=Best(candidate.text, version, scores, mean_of(rule, scores))
        if is_best
        else state.best,
    )

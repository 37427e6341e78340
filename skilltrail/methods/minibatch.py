"""Train minibatches: roll one out with a document, and judge a candidate on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.score import exact_mean
from skilltrail.core.tokens import count_tokens
from skilltrail.history.log import types
from skilltrail.history.log.events import Event
from skilltrail.history.log.types.parts import Batch, Purpose, Source, Verdict
from skilltrail.method.gate import GateRule
from skilltrail.method.rollout import Rollout, scored
from skilltrail.method.run import Run, State
from skilltrail.method.schedule import Step
from skilltrail.methods.steps import CandidateTried
from skilltrail.optimizers.protocol import Observation, StepRecord

TAG, ORDER = "improvement/1", "batch_order/1"


async def roll_out(
    run: Run, state: State, step: Step, skill: str, size: int
) -> tuple[State, list[Rollout], tuple[Observation, ...]]:
    """Roll out the step's minibatch with a document; return what may be reflected on too."""
    rollouts = await run.rollouts.all(run.train_items(step.items), skill)
    batch = Batch(rule="in_turn/1", size=size, accumulation=1)
    run.tell(scored(rollouts, skill, Purpose.TRAIN, batch=batch, **step.where))
    seen = run.observed(rollouts, text_digest(skill))
    return run.follow(state).with_seen(seen), rollouts, seen


async def judge_minibatch(
    run: Run, step: Step, tried: CandidateTried, parent: str, before: Sequence[Rollout]
) -> tuple[Event, StepRecord]:
    """Roll out the same items with the candidate and judge it: its sum must be higher.

    Returns:
        The verdict's event, and the step's record with the verdict.
    """
    text = tried.built.candidate.text
    after = await run.rollouts.all([rollout.item for rollout in before], text)
    run.tell(scored(after, text, Purpose.MINIBATCH, **step.where))
    rule = run.gate_rule
    pairs = {
        old.item.id: (rule.value(old.score), rule.value(new.score))
        for old, new in zip(before, after, strict=True)
    }
    found = verdict_of(pairs)
    event = run.tell(
        types.GateJudged(
            **step.where,
            source=Source.STEP,
            split="train",
            rule=TAG,
            **consumed(rule),
            current=text_digest(parent),
            candidate=text_digest(text),
            order=ORDER,
            **found,
            tokens_before=count_tokens(parent),
            tokens_after=count_tokens(text),
        )
    )
    record = replace(
        tried.record,
        verdict=str(found["verdict"]),
        before=found["before"],
        after=found["after"],
    )
    return event, record


def consumed(rule: GateRule) -> dict[str, Any]:
    """Return the settings that are read where only scores are compared: the metric."""
    return replace(rule, rule="none").consumed()


Pairs = dict[str, tuple[Fraction | None, Fraction | None]]


def verdict_of(pairs: Pairs) -> dict[str, Any]:
    """Return what `gate.judged` says of scores before and after, by item in batch order."""
    known = {i: (a, b) for i, (a, b) in pairs.items() if a is not None and b is not None}
    before = exact_mean(a for a, _ in known.values())
    after = exact_mean(b for _, b in known.values())
    gain = sum((b - a for a, b in known.values()), Fraction(0))
    verdict, reason = (
        (Verdict.ACCEPTED, "sum higher") if gain > 0 else (Verdict.REJECTED, "sum not higher")
    )
    return {
        "before": None if before is None else float(before),
        "after": None if after is None else float(after),
        "after_max": None,
        **({"compared": len(known)} if len(known) < len(pairs) else {}),
        "judged": len(pairs),
        "total": len(pairs),
        "flips": {
            "won": [item for item, (a, b) in known.items() if b > a],
            "lost": [item for item, (a, b) in known.items() if b < a],
        },
        "statistic": None,
        "verdict": verdict,
        "forced": False,
        "saved": 0,
        "reason": reason,
    }

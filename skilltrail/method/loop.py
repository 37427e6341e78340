"""The method: train a skill document for a frozen model (SkillOpt, arXiv 2605.23904).

    measure the seed skill on the selection split
    for each epoch, for each step:
        roll out a batch of train items with the current skill        forward pass
        reflect on the trajectories: patches                          gradient
        aggregate the patches into one                                batch reduction
        select at most `edit_budget(step)` of its edits               learning rate
        update: apply them, which gives a candidate                   optimizer step
        gate: keep the candidate only if the selection split improves
    at the end of each epoch: slow update (from the second on), meta skill   momentum
    at the end of each epoch, where asked for: the same skill, shorter       weight decay
    stop where epochs, patience or target calls (`stop.calls`) end, or nothing can win any more

The loop always starts from the beginning. What was paid for before is in the store and costs
nothing, so resuming, forking and replaying are all the same thing: running again.

Departures from SkillOpt: edits apply by exact span or not at all; the gate stops early without
changing a verdict; a missing reply is never a score of 0; every decision is an event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.tokens import TAG as TOKEN_COUNTER
from skilltrail.core.tokens import count_tokens
from skilltrail.history.log import types
from skilltrail.history.log.run_state import Scores
from skilltrail.history.log.types.parts import (
    Batch,
    Purpose,
    SeedSkill,
    StepResult,
    Verdict,
    items_named,
)
from skilltrail.method.aggregate import aggregate
from skilltrail.method.appendix import appendix_edit
from skilltrail.method.calls import CallsSpent
from skilltrail.method.epoch_end import end_epoch
from skilltrail.method.evaluate_candidate import evaluate_candidate
from skilltrail.method.reflect import reflect
from skilltrail.method.rollout import scored
from skilltrail.method.run import Run, State, nothing_can_win, view_of
from skilltrail.method.schedule import DECAYING, Step, edit_budget
from skilltrail.method.select_edits import select_edits
from skilltrail.method.update import make_candidate
from skilltrail.optimizers.protocol import Observation, StepRecord
from skilltrail.params.knob import result_values
from skilltrail.skill.edit import Edit, EditResult, EditStatus, Patch

COUNTS = ("patches", "proposed", "merged", "selected", "applied", "judged", "saved")


async def train(run: Run) -> State:
    """Train and return the final state; every decision is in the history by then."""
    state = await measure_seed(run)
    try:
        for epoch in range(1, run.params.epochs + 1):
            for step in run.plan(epoch):
                state = await take_step(run, state, step)
                if nothing_can_win(run, state):
                    return finish(run, state, "full_score")
                if run.params.patience and state.stalled >= run.params.patience:
                    return finish(run, state, "patience")
            async for after in end_epoch(run, state, epoch):
                state = after
    except CallsSpent:
        return finish(run, state, "calls")
    return finish(run, state, "epochs")


async def take_step(run: Run, state: State, step: Step) -> State:
    """Do one step of the method and return the state after it."""
    state, observations = await roll_out(run, state, step)
    view = view_of(run, state, step, decide_budget(run, step), observations)

    patches = await reflect(run, view)
    merged = await aggregate(run, view, patches)
    edits = [] if merged is None else await select_edits(run, view, merged)
    notes = await appendix_edit(run, view, patches)
    record = first_record(step, patches, observations, view.success_threshold)
    if merged is None and notes is None:
        return end_step(run, state, record, "nobody proposed an edit")

    built = await make_candidate(run, state, view, merged, edits, notes)
    record = with_candidate(record, merged, edits, built.candidate.results)
    if not built.usable:
        return end_step(run, state, record, built.reason)

    state, record = await evaluate_candidate(run, state, built, record)
    return end_step(run, state, record, "")


async def measure_seed(run: Run) -> State:
    """Record the start of the run and measure the seed skill on the selection split."""
    env, target = run.rollouts.env, run.rollouts.target
    digest = text_digest(run.seed_skill)
    run.tell(
        types.RunStarted(
            env=env.name,
            agent={"version": env.version, "params": result_values(env.params)},
            train=items_named(run.train),
            selection=items_named(run.selection),
            target=dict(target.identity),
            seed=run.params.seed,
            seed_skill=SeedSkill(text=run.seed_skill, digest=digest),
            counter=TOKEN_COUNTER,
            parent=run.parent,
            **run.rollouts.scorer.consumed((*run.train, *run.selection)),
        )
    )
    run.tell(
        types.SkillVersioned(
            version=0,
            parent=None,
            digest=digest,
            best=True,
            patch=None,
            candidate=None,
            gate=None,
            edits=(),
            not_applied=(),
            lines_added=0,
            lines_removed=0,
            tokens=count_tokens(run.seed_skill),
        )
    )
    rollouts = await run.rollouts.all(run.cases, run.seed_skill, run.params.gate.repeats)
    run.tell(scored(rollouts, run.seed_skill, Purpose.BASELINE))
    run.history.flush()
    return run.follow(State(rule=run.gate_rule))


async def roll_out(run: Run, state: State, step: Step) -> tuple[State, tuple[Observation, ...]]:
    """Roll out the step's batches with the current skill; return what may be reflected on."""
    rollouts = await run.rollouts.all(run.train_items(step.items), state.skill)
    batch = Batch(
        rule="seeded/1", size=run.params.batch_size, accumulation=run.params.accumulation
    )
    run.tell(scored(rollouts, state.skill, Purpose.TRAIN, batch=batch, **step.where))
    seen = run.observed(rollouts, state.digest)
    return run.follow(state).with_seen(seen), seen


def decide_budget(run: Run, step: Step) -> int | None:
    """Return and record the edit budget; the event carries only what the schedule read."""
    params = run.params
    # A whole document is taken or left: rewriting by minibatch has no budget to spend.
    whole = params.update_mode == "full_rewrite_minibatch"
    schedule = "none" if whole else params.lr_schedule
    free = schedule == "none" or (schedule == "autonomous" and params.lr_bound == "none")
    warmup = 0 if free else params.lr_warmup
    read: dict[str, Any] = {} if free else {"lr": params.lr}
    if warmup:
        read["warmup"] = warmup
    if schedule in DECAYING:
        read |= {"lr_min": params.lr_min, "total_steps": run.total_steps}
        read |= {"phase": params.lr_phase} if params.lr_phase != "start" else {}
        read |= {"rounding": params.lr_rounding} if params.lr_rounding != "up" else {}
    budget = edit_budget(step.step, schedule=schedule, **{"lr": None} | read)
    data: dict[str, Any] = {
        **step.where,
        "budget": budget,
        "schedule": schedule,
        "rule": f"{schedule}/1",
        "reason": "whole documents have no edit budget" if whole else "",
        "reply": None,
        **read,
    }
    run.tell(types.BudgetDecided(**data))
    return budget


def first_record(
    step: Step,
    patches: Sequence[Patch],
    seen: Sequence[Observation] = (),
    success_threshold: float = 1.0,
) -> StepRecord:
    """Return the record of a step after reflection on what was `seen`."""
    scores = [one.score.hard for one in seen if one.score.hard is not None]
    return StepRecord(
        **step.where,
        runs=len(scores),
        failed=sum(score < success_threshold for score in scores),
        failure_types=Counter(type for p in patches for type in p.failure_types.values()),
        counts={"patches": len(patches), "proposed": sum(len(p.edits) for p in patches)},
    )


def with_candidate(
    record: StepRecord,
    merged: Patch | None,
    selected: Sequence[Edit],
    results: Sequence[EditResult],
) -> StepRecord:
    """Return the record of a step after its candidate was built."""
    applied = sum(result.status is EditStatus.APPLIED for result in results)
    n_merged = 0 if merged is None else len(merged.edits)
    counts = {"merged": n_merged, "selected": len(selected), "applied": applied}
    return replace(
        record,
        verdict="no_change",
        edits=tuple(selected),
        results=tuple(results),
        counts=dict(record.counts) | counts,
    )


def end_step(run: Run, state: State, record: StepRecord, reason: str) -> State:
    """Record the end of a step and make the log durable."""
    counts = dict(record.counts) | {"replies_rejected": replies_rejected(run)}
    assert state.version is not None  # the seed skill is version 0
    run.tell(
        types.StepEnded(
            epoch=record.epoch,
            step=record.step,
            result=StepResult(record.verdict),
            reason=reason,
            counts=counts,
            version=state.version,
        )
    )
    run.history.flush()
    record = replace(record, counts=counts)
    state = run.follow(replace(state, history=(*state.history, record)))
    run.say(record, state)
    return state


def replies_rejected(run: Run) -> int:
    """Return how many optimizer replies this step had to throw away."""
    count = 0
    for event in reversed(run.history.events):
        said = event.said
        begins = isinstance(said, types.BudgetDecided) and said.offered is None
        if begins or isinstance(said, types.ParentsChosen):
            break
        count += isinstance(said, types.ReplyRejected)
    return count


def finish(run: Run, state: State, why: str) -> State:
    """Record the end of the run."""

    def skill(text: str, version: int | None, scores: Scores) -> dict[str, object]:
        mean = state.rule.mean(scores)
        score = None if mean is None else float(mean)
        return {"version": version, "digest": text_digest(text), "score": score}

    data: dict[str, Any] = {
        "best": skill(state.best_skill, state.best_version, state.best_scores),
        "last": skill(state.skill, state.version, state.scores),
        "why": why,
        "steps": state.ended.total(),
        **{name: state.ended[name] for name in Verdict},
        "totals": {name: state.totals[name] for name in COUNTS},
    }
    if why == "patience":
        data["patience"] = run.params.patience
    if why == "calls":
        data["calls"] = run.params.stop.calls
    run.tell(types.RunFinished(**data))
    run.history.flush()
    return state

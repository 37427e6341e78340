"""What the steps of all rivals are made of, in the words of the main loop.

choose_parents   which documents of the pool the step works on
build            a recorded patch, all of it selected, applied to the parent: a candidate
judge            the candidate against the newest version, on the selection split
whole            a document that a model writes whole: the question, the patch, the candidate
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from msgspec import convert

from skilltrail.core.canon import text_digest
from skilltrail.history.log import types
from skilltrail.method.evaluate_candidate import evaluate_candidate
from skilltrail.method.loop import end_step, first_record, with_candidate
from skilltrail.method.reflect import record_patch
from skilltrail.method.run import Run, State, view_of
from skilltrail.method.schedule import Step
from skilltrail.method.update import Build, Built, record_candidate, with_params, with_scripts
from skilltrail.optimizers.protocol import Answer, Brief, Observation, StepRecord
from skilltrail.skill.apply import TAG as APPLY
from skilltrail.skill.apply import apply_edits
from skilltrail.skill.edit import Edit, Patch
from skilltrail.skill.rewrite import TAG as REWRITE
from skilltrail.skill.rewrite import rewrite

DRAWN = "drawn/1"
WHOLE: dict[str, Any] = {"rule": REWRITE, "mode": "document"}


@dataclass(frozen=True)
class PoolMember:
    """A document of the pool. `version` is None where it is none; see the event's fields."""

    text: str
    version: int | None = None
    score: Fraction | None = None
    weight: int | None = None

    def to_json(self) -> dict[str, object]:
        told = {"version": self.version, "weight": self.weight}
        score = {} if self.score is None else {"score": float(self.score)}
        known = {name: value for name, value in told.items() if value is not None}
        return {"digest": text_digest(self.text), **known, **score}


def seed_of(run: Run) -> PoolMember:
    """Return the seed skill as a member of the pool."""
    return PoolMember(run.seed_skill, 0)


def choose_parents(
    run: Run,
    step: Step,
    parents: Sequence[PoolMember],
    rule: str,
    reason: str,
    pool: Sequence[PoolMember] = (),
    **consumed: Any,
) -> None:
    """Record which documents the step works on, and what they were chosen from; `consumed` is
    what else the choice read."""
    run.tell(
        convert(
            {
                **step.where,
                "parents": [one.to_json() for one in parents],
                **({"pool": [one.to_json() for one in pool]} if pool else {}),
                **consumed,
                "rule": rule,
                "reason": reason,
            },
            types.ParentsChosen,
        )
    )


@dataclass(frozen=True)
class CandidateTried:
    """A candidate on its way: as built, the step's record so far, and the recorded patch."""

    built: Built
    record: StepRecord
    patch: Patch


async def build(
    run: Run, state: State, step: Step, parent: str, patch: Patch
) -> CandidateTried:
    """Record a patch and the candidate that all of it makes of `parent`."""
    patch = record_patch(run, patch, **step.where)
    return await select_all(run, state, step, parent, patch, [patch])


async def select_all(
    run: Run, state: State, step: Step, parent: str, patch: Patch, proposed: Sequence[Patch]
) -> CandidateTried:
    """Select a recorded patch as a whole, and record the candidate it makes of `parent`."""
    record_selection(run, step, patch)
    makes = run.params.skill.makes_references
    make: Build = partial(apply_edits, parent, patch.edits, references=makes)
    told: dict[str, Any] = {"rule": APPLY}
    if patch.edits and patch.edits[0].op == "rewrite":
        one = patch.edits[0]
        make = partial(rewrite, parent, one.content, one.id, references=makes)
        told = WHOLE
    candidate, decided = await with_params(run, make)
    candidate, tested = await with_scripts(run, candidate, patch.edits)
    built = record_candidate(
        run,
        state,
        candidate,
        **step.where,
        **told,
        patch=patch.id,
        more=decided | tested,
    )
    first = first_record(step, proposed)
    record = with_candidate(first, patch, patch.edits, candidate.results)
    return CandidateTried(built, record, patch)


def instruct(run: Run, step: Step, operator: str, text: str, reply: str | None = None) -> None:
    """Record by which words the optimizer is asked; `reply` wrote them, or they were drawn."""
    rule = DRAWN if reply is None else None
    run.tell(
        types.InstructionChosen(
            operator=operator,
            text=text,
            rule=rule,
            reply=reply,
            **step.where,
        )
    )


def record_selection(run: Run, step: Step, patch: Patch) -> None:
    """Record that a patch is tried as a whole."""
    run.tell(
        types.EditsSelected(
            **step.where,
            patch=patch.id,
            budget=None,
            selected=tuple(edit.id for edit in patch.edits),
            left_out=(),
            rule="all/1",
            reason="the patch is tried as a whole",
            reply=None,
        )
    )


async def judge(run: Run, state: State, tried: CandidateTried) -> State:
    """Let the gate judge a candidate and end the step; one that nobody can use ends it too."""
    if not tried.built.usable:
        return end_step(run, state, tried.record, tried.built.reason)
    state, record = await evaluate_candidate(run, state, tried.built, tried.record)
    return end_step(run, state, record, "")


async def question(
    run: Run,
    state: State,
    step: Step,
    text: str,
    brief: Brief,
    seen: Sequence[Observation] = (),
) -> Answer:
    """Put a question about the document `text`; nothing is recorded yet."""
    view = replace(view_of(run, state, step, None, tuple(seen)), skill=text)
    return await run.optimizer.compose(view, brief)


async def whole(
    run: Run,
    state: State,
    step: Step,
    parent: str,
    answer: Answer,
    seen: Sequence[Observation] = (),
) -> CandidateTried:
    """Record the written document and the candidate that it makes of `parent`."""
    ids = tuple(one.item.id for one in seen)
    edit = Edit("rewrite", content=answer.value, reason=answer.reason, items=ids)
    failed = any(one.score.hard != 1 for one in seen)
    source = "failure" if failed else "success"
    patch = Patch(source, ids, (edit,), answer.reason, reply=answer.reply)
    return await build(run, state, step, parent, patch)

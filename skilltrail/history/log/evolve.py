"""`evolve`: the state of a run after its next event.

The loop, replay, commits, verification and reports all fold a log by this one function, so that
what one holds true is true for the others. Events are taken at their word: the checks of
`verify` compare each with the state before it is taken in. Documents are rebuilt from the log
alone; each is right by its recorded SHA-256, or named as a fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from skilltrail.core.canon import text_digest
from skilltrail.core.errors import FaultError
from skilltrail.core.score import Outcome
from skilltrail.core.targets import case_of
from skilltrail.history.log import types
from skilltrail.history.log.events import Event
from skilltrail.history.log.patching import patched
from skilltrail.history.log.rows import scores_of
from skilltrail.history.log.run_state import Rejection, RunState
from skilltrail.history.log.types.parts import (
    EditMade,
    Purpose,
    RowScored,
    Source,
    StepResult,
    Verdict,
)

Changes = dict[str, Any]
_NOTHING = Fraction(0)

# Events that carry a patch.
CARRYING = (
    types.PatchProposed,
    types.PatchMerged,
    types.AppendixProposed,
    types.SlowUpdateProposed,
    types.CompactionProposed,
)
CARRIERS = tuple(map(types.type_of, CARRYING))
# What versions are rebuilt from.
DOCUMENTS = tuple(
    map(
        types.type_of,
        (
            types.RunStarted,
            types.MethodChosen,
            types.ParentsChosen,
            types.CandidateBuilt,
            types.SkillVersioned,
        ),
    )
)

State = TypeVar("State", bound=RunState)


def edits_in(event: Event) -> Sequence[EditMade]:
    """Return the edits that an event carries; none where it is of another kind."""
    said = event.said
    return said.edits if isinstance(said, CARRYING) else ()


def evolve(state: State, event: Event) -> State:
    """Return the state after `event`.

    Raises:
        FaultError: names the event whose text cannot be rebuilt.
    """
    documents, others = _documents(state, event), _others(state, event)
    changes: Changes = {"last": event, "seen": (*state.seen, event)}
    return replace(state, **(changes | documents | others))


def rebuilt(state: State, event: Event) -> State:
    """Return the state after `event` as far as documents go; raises as `evolve`."""
    changes = _documents(state, event)
    return replace(state, **changes) if changes else state


def _documents(state: RunState, event: Event) -> Changes:
    """Return what `event` changes of the documents."""
    if event.type not in DOCUMENTS or state.broken is not None:
        return {}
    said = event.said
    if isinstance(said, types.RunStarted):
        text = _checked(event, said.seed_skill.text, said.seed_skill.digest)
        return {"skill": text, "parent": text, "best_skill": text}
    if isinstance(said, types.MethodChosen):
        return {"documents": {text_digest(state.skill): state.skill}}
    if isinstance(said, types.ParentsChosen):
        return {"parent": _chosen(state, event, said)}
    if isinstance(said, types.CandidateBuilt):
        text = _built(state, event, said)
        pool = state.documents
        documents = pool if pool is None else {**pool, said.candidate: text}
        return {"candidate": text, "documents": documents}
    versioned = event.read(types.SkillVersioned)
    made = state.parent if versioned.candidate is None else state.candidate
    if made is None:
        raise FaultError(event.name, "there is no candidate")
    text = _checked(event, made, versioned.digest)
    newest = {"skill": text, "parent": text, "version": versioned.version, "candidate": None}
    best = {"best_skill": text, "best_version": versioned.version} if versioned.best else {}
    return newest | best


def _built(state: RunState, event: Event, said: types.CandidateBuilt) -> str:
    _checked(event, state.parent, said.parent)
    text = said.text
    if text is None:
        try:
            text = patched(state.parent, said.diff)
        except FaultError as error:
            raise FaultError(event.name, str(error)) from error
    return _checked(event, text, said.candidate)


def _chosen(state: RunState, event: Event, said: types.ParentsChosen) -> str:
    pool = {} if state.documents is None else state.documents
    wanted = [member.digest for member in said.parents]
    unknown = [digest for digest in wanted if digest not in pool]
    if unknown:
        raise FaultError(event.name, f"no document so far has digest {unknown[0][:12]}")
    return pool[wanted[0]]


def _checked(event: Event, text: str, digest: str) -> str:
    found = text_digest(text)
    if found != digest:
        raise FaultError(
            event.name,
            f"the text rebuilt from the log has digest {found[:12]}, recorded is {digest[:12]}",
        )
    return text


def _others(state: RunState, event: Event) -> Changes:
    """Return what `event` changes beside the documents."""
    said = event.said
    if isinstance(said, types.RunStarted):
        return {"start": said}
    if isinstance(said, types.RolloutsScored):
        return _rolled_out(state, event, said)
    if isinstance(said, CARRYING):
        return {"patches": {**state.patches, said.patch: event}}
    if isinstance(said, types.MethodChosen):
        return {"measured": {state.digest: state.scores}}
    if isinstance(said, types.ParentsChosen):
        return {"seen": (event,)}
    if isinstance(said, types.CandidateBuilt):
        fate = "no_change" if said.rejected_before is None else "rejected"
        guided = said.source is Source.SLOW_UPDATE
        return {"candidate_scores": {}} | ({"guidance_result": fate} if guided else {})
    if isinstance(said, types.GateJudged):
        return _judged(state, event, said)
    if isinstance(said, types.SkillVersioned):
        return _versioned(state, said)
    if isinstance(said, types.StepEnded):
        accepted = said.result is StepResult.ACCEPTED
        return _begun(state) | {
            "ended": state.ended + Counter([said.result.value]),
            "totals": state.totals + Counter(said.counts),
            "stalled": 0 if accepted else state.stalled + 1,
        }
    return {"meta_skill": said.text} if isinstance(said, types.MetaSkillWritten) else {}


def _begun(state: RunState, *events: Event) -> Changes:
    """Return what changes when a step begins or has ended, which `events` are of already."""
    return {"seen": events} | ({"patches": {}} if state.documents is None else {})


def _versioned(state: RunState, said: types.SkillVersioned) -> Changes:
    scores, pooled = state.candidate_scores, state.documents is not None
    if said.candidate is None or not scores:
        return {}
    changes = {"scores": scores} | ({"best_scores": scores} if said.best else {})
    return changes | ({"measured": {**state.measured, said.digest: scores}} if pooled else {})


def _rolled_out(state: RunState, event: Event, said: types.RolloutsScored) -> Changes:
    purpose, rows, skill = said.purpose, said.items, said.skill
    changes: Changes = {}
    if purpose is Purpose.BASELINE:
        scores = scores_of(rows)
        lost = _with_losses(state, rows)
        return {"scores": scores, "best_scores": scores, "cumulative_loss": lost}
    if purpose is Purpose.SELECTION:
        return {"candidate_scores": scores_of(rows)}
    if purpose is Purpose.TRAIN and state.documents is None:
        changes = _begun(state, event)
        if said.epoch != state.epoch:
            changes |= {"epoch": said.epoch, "epoch_skill": state.skill}
    if purpose is Purpose.TRAIN:
        changes["batches"] = state.batches + 1
    if purpose is Purpose.FITNESS and said.split is None:
        changes["fitness"] = {**state.fitness, skill: scores_of(rows)}
    if purpose in (Purpose.TRAIN, Purpose.DEMONSTRATIONS) or "fitness" in changes:
        known = state.last_soft
        soft = {row.item: row.soft for row in rows if row.outcome is not Outcome.MISSING}
        left = {id: known[id][1] for id in soft if known.get(id, (skill,))[0] != skill}
        changes |= {
            "rolled_out": state.rolled_out | {row.item for row in rows},
            "last_soft": {**known, **{id: (skill, one) for id, one in soft.items()}},
            "earlier_soft": {**state.earlier_soft, **left},
        }
    return changes


def _judged(state: RunState, event: Event, said: types.GateJudged) -> Changes:
    scored = state.told(types.RolloutsScored)
    changes: Changes = {}
    if said.source is Source.SLOW_UPDATE:
        changes["guidance_result"] = said.verdict.value
    if said.verdict is Verdict.REJECTED and said.split is None:
        verdict = Rejection(event.seq, said.current, state.scores)
        changes["rejected"] = {**state.rejected, said.candidate: verdict}
    if scored is not None and scored.purpose is Purpose.SELECTION:
        changes["cumulative_loss"] = _with_losses(state, scored.items)
    return changes


def _with_losses(state: RunState, rows: Iterable[RowScored]) -> dict[str, Fraction]:
    total = dict(state.cumulative_loss)
    for row in rows:
        if row.hard is not None:
            case = case_of(row)
            lost = total.get(case, _NOTHING)
            total[case] = lost if row.hard == 1 else lost + _lacking(row.hard)
    return total


@lru_cache(maxsize=1 << 12)  # scores are few, and fractions slow
def _lacking(hard: float) -> Fraction:
    return 1 - Fraction(hard)

"""The parts of an audit, read off the events of one candidate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from msgspec import to_builtins

from skilltrail.history.ask.audit_record import (
    Basis,
    Flip,
    Judgement,
    Merge,
    Proposal,
    RolloutEvidence,
    Tried,
)
from skilltrail.history.ask.blame import gain_of
from skilltrail.history.ask.line_history import line_histories
from skilltrail.history.log import types
from skilltrail.history.log.candidate_events import CandidateEvents
from skilltrail.history.log.events import Event
from skilltrail.history.log.rows import by_item, means_of
from skilltrail.history.log.run_log import RunLog
from skilltrail.skill.edit import Edit

PROPOSING = (
    types.PatchProposed,
    types.AppendixProposed,
    types.SlowUpdateProposed,
    types.CompactionProposed,
)


def decided_by(rule: str | None) -> str:
    return "model" if rule is None else rule


def budget_reason(said: types.BudgetDecided) -> str:
    read = {"lr": said.lr, "lr_min": said.lr_min, "total_steps": said.total_steps}
    told = [f"{name} {value}" for name, value in read.items() if value is not None]
    return ", ".join([said.schedule, *told, *([said.reason] if said.reason else [])])


def proposal_of(event: Event) -> Proposal:
    said = event.said
    assert isinstance(said, PROPOSING)
    by_kind = event.type.split(".")[0]
    return Proposal(
        patch=said.patch,
        source=said.source if isinstance(said, types.PatchProposed) else by_kind,
        by=decided_by(said.rule),
        items=getattr(said, "items", ()),
        reasoning=said.reason if isinstance(said, types.AppendixProposed) else said.reasoning,
        edits=tuple(map(Edit.of, said.edits)),
    )


def merge_of(event: Event) -> Merge:
    said = event.read(types.PatchMerged)
    return Merge(
        said.patch,
        said.level,
        said.group,
        said.inputs,
        decided_by(said.rule),
        said.reason,
        tuple(map(Edit.of, said.edits)),
        () if said.dropped is None else said.dropped,
    )


def selection_of(candidate: CandidateEvents) -> dict[str, Any]:
    """Return the fields of an audit that tell the edit budget and what it let through."""
    found: dict[str, Any] = {}
    if candidate.budgets:
        budget = candidate.budgets[-1].read(types.BudgetDecided)
        found |= {"budget": budget.budget, "budget_reason": budget_reason(budget)}
    if candidate.selected is not None:
        said = candidate.selected.read(types.EditsSelected)
        found |= {
            "selected": said.selected,
            "selected_by": f"{decided_by(said.rule)}: {said.reason}",
            "left_out": tuple((row.edit, row.reason) for row in said.left_out),
        }
    return found


def outcome_of(log: RunLog, candidate: CandidateEvents) -> dict[str, Any]:
    """Return the fields of an audit that tell the document made and the verdict on it."""
    found: dict[str, Any] = {}
    if candidate.built is not None:
        built = candidate.built.read(types.CandidateBuilt)
        found |= {"faults": built.faults, "diff": built.diff}
    if candidate.gate is not None:
        gate = candidate.gate.read(types.GateJudged)
        found["gate"] = judgement_of(log, candidate, candidate.gate)
        found |= {"tokens_before": gate.tokens_before, "tokens_after": gate.tokens_after}
    return found


def tried_edits(log: RunLog, candidate: CandidateEvents) -> Iterable[Tried]:
    assert candidate.built is not None
    made = candidate.versioned
    after = {} if made is None else line_histories(log, made.read(types.SkillVersioned).version)
    for result in candidate.built.read(types.CandidateBuilt).results:
        edit = log.edit(result.edit)
        descent = tuple(dict.fromkeys(one.id for one in log.ancestry(edit.id)))
        yield Tried(
            edit=edit,
            descent=descent[1:],
            status=result.status.value,
            lines=result.lines,
            detail=result.detail,
            fate=after.get(edit.id),
        )


def cases_of(
    candidate: CandidateEvents, tried: Iterable[Tried], evidence: RolloutEvidence
) -> Iterable[Basis]:
    """Yield the rollouts behind the edits first, then the others that analysts saw."""
    failures: dict[str, str] = {}
    seen: dict[str, None] = {}
    for one in tried:
        seen |= dict.fromkeys(one.edit.items)
    for proposal in candidate.proposals:
        said = proposal.said
        failures |= said.failure_types if isinstance(said, types.PatchProposed) else {}
        seen |= dict.fromkeys(getattr(said, "items", ()))
    rows = {
        row.item: row
        for event in candidate.learned
        for row in event.read(types.RolloutsScored).items
    }
    for item in seen:
        row = rows.get(item)
        if row is None:
            continue
        yield Basis(
            item=item,
            hard=row.hard,
            soft=row.soft,
            reason=row.reason,
            failure_type=failures.get(item),
            key=row.key,
            seen=evidence.look_up(item, row.key),
        )


def judgement_of(log: RunLog, candidate: CandidateEvents, gate: Event) -> Judgement:
    said = gate.read(types.GateJudged)
    judged = (
        () if candidate.judged is None else candidate.judged.read(types.RolloutsScored).items
    )
    before, after = (
        means_of(rows, said.metric, said.mixed_weight)
        for rows in (log.scores_before(gate), by_item(judged))
    )

    def flips(names: Iterable[str]) -> tuple[Flip, ...]:
        return tuple(Flip(item, _float(before, item), _float(after, item)) for item in names)

    told = {
        name: getattr(said, name)
        for name in (
            *("rule", "metric", "before", "after", "after_max", "judged", "total", "forced"),
            *("saved", "reason"),
        )
    }
    return Judgement(
        **told,
        verdict=said.verdict.value,
        gain=gain_of(said),
        won=flips(said.flips.won),
        lost=flips(said.flips.lost),
        statistic=to_builtins(said.statistic),
        cost=to_builtins(said.cost),
        targets=tuple(to_builtins(said.targets or ())),
    )


def _float(means: Mapping[str, Fraction | None], item: str) -> float | None:
    mean = means.get(item)
    return None if mean is None else float(mean)

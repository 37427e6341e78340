"""The parts of an audit, read off the events of one trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skilltrail.history.ask.audit_record import (
    Case,
    Evidence,
    Flip,
    Judgement,
    Merge,
    Proposal,
    Tried,
)
from skilltrail.history.ask.blame import gain_of
from skilltrail.history.ask.line_history import line_histories
from skilltrail.history.log.candidate_events import CandidateEvents
from skilltrail.history.log.events import Event
from skilltrail.history.log.rows import by_item
from skilltrail.history.log.run_log import RunLog
from skilltrail.skill.edit import Edit


def decided_by(data: Mapping[str, Any]) -> str:
    return "model" if data["rule"] is None else str(data["rule"])


def budget_reason(data: Mapping[str, Any]) -> str:
    told = [f"{name} {data[name]}" for name in ("lr", "lr_min", "total_steps") if name in data]
    parts = [data["schedule"], *told, *([data["reason"]] if data["reason"] else [])]
    return ", ".join(parts)


def proposal_of(event: Event) -> Proposal:
    data = event.data
    reasoning = data.get("reasoning", data.get("reason", ""))
    return Proposal(
        patch=data["patch"],
        source=data.get("source", event.type.split(".")[0]),
        by=decided_by(data),
        items=tuple(data.get("items", ())),
        reasoning=reasoning,
        edits=tuple(map(Edit.from_json, data["edits"])),
    )


def merge_of(event: Event) -> Merge:
    data = event.data
    return Merge(
        data["patch"],
        data["level"],
        data["group"],
        tuple(data["inputs"]),
        decided_by(data),
        data["reason"],
        tuple(map(Edit.from_json, data["edits"])),
        tuple(data.get("dropped", ())),
    )


def selection_of(trial: CandidateEvents) -> dict[str, Any]:
    """Return the fields of an audit that tell the edit budget and what it let through."""
    found: dict[str, Any] = {}
    if trial.budgets:
        data = trial.budgets[-1].data
        found |= {"budget": data["budget"], "budget_reason": budget_reason(data)}
    if trial.selected is not None:
        data = trial.selected.data
        found |= {
            "selected": tuple(data["selected"]),
            "selected_by": f"{decided_by(data)}: {data['reason']}",
            "left_out": tuple((row["edit"], row["reason"]) for row in data["left_out"]),
        }
    return found


def outcome_of(story: RunLog, trial: CandidateEvents) -> dict[str, Any]:
    """Return the fields of an audit that tell the document made and the verdict on it."""
    found: dict[str, Any] = {}
    if trial.built is not None:
        data = trial.built.data
        found |= {"faults": tuple(data["faults"]), "diff": data["diff"]}
    if trial.gate is not None:
        found["gate"] = judgement_of(story, trial, trial.gate)
        found |= {name: trial.gate.data[name] for name in ("tokens_before", "tokens_after")}
    return found


def tried_edits(story: RunLog, trial: CandidateEvents) -> Iterable[Tried]:
    assert trial.built is not None
    after = (
        {}
        if trial.versioned is None
        else line_histories(story, trial.versioned.data["version"])
    )
    for result in trial.built.data["results"]:
        edit = story.edit(result["edit"])
        descent = tuple(dict.fromkeys(one.id for one in story.ancestry(edit.id)))
        yield Tried(
            edit=edit,
            descent=descent[1:],
            status=result["status"],
            lines=tuple(result["lines"]),
            detail=result["detail"],
            fate=after.get(edit.id),
        )


def cases_of(
    trial: CandidateEvents, tried: Iterable[Tried], evidence: Evidence
) -> Iterable[Case]:
    """Yield the rollouts behind the edits first, then the others that analysts saw."""
    types: dict[str, str] = {}
    seen: dict[str, None] = {}
    for one in tried:
        seen |= dict.fromkeys(one.edit.items)
    for proposal in trial.proposals:
        types |= proposal.data.get("failure_types", {})
        seen |= dict.fromkeys(proposal.data.get("items", ()))
    rows = {row["item"]: row for event in trial.learned for row in event.data["items"]}
    for item in seen:
        row = rows.get(item)
        if row is None:
            continue
        yield Case(
            item=item,
            hard=row["hard"],
            soft=row["soft"],
            reason=row["reason"],
            failure_type=types.get(item),
            key=row["key"],
            seen=evidence.look_up(item, row["key"]),
        )


def judgement_of(story: RunLog, trial: CandidateEvents, gate: Event) -> Judgement:
    data = gate.data
    before = _metric(story.scores_before(gate), data)
    after = {} if trial.judged is None else _metric(by_item(trial.judged.data["items"]), data)

    def flips(names: Iterable[str]) -> tuple[Flip, ...]:
        return tuple(Flip(item, before.get(item), after.get(item)) for item in names)

    return Judgement(
        verdict=data["verdict"],
        rule=data["rule"],
        metric=data["metric"],
        before=data["before"],
        after=data["after"],
        after_max=data["after_max"],
        gain=gain_of(data),
        judged=data["judged"],
        total=data["total"],
        won=flips(data["flips"]["won"]),
        lost=flips(data["flips"]["lost"]),
        statistic=data["statistic"],
        forced=data["forced"],
        saved=data["saved"],
        reason=data["reason"],
        cost=data.get("cost"),
        targets=tuple(data.get("targets", ())),
    )


def _metric(rows: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, float | None]:
    """Return each item's gate metric, the mean over its repeats."""
    weight = data.get("mixed_weight", 0.5)

    def one(row: Mapping[str, Any]) -> float | None:
        if row["hard"] is None or row["soft"] is None:
            return None
        if data["metric"] == "mixed":
            return float((1 - weight) * row["hard"] + weight * row["soft"])
        return float(row[data["metric"]])

    found: dict[str, float | None] = {}
    for item, some in rows.items():
        values = [value for row in some if (value := one(row)) is not None]
        found[item] = sum(values) / len(values) if values else None
    return found

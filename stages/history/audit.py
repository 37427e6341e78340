"""Audit: why was this accepted? Everything about one candidate, from evidence to aftermath.

All of it is read off the log; only the trajectories themselves (prompt, reply, expected answer)
are facts, looked up through `Evidence` where the store is at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from stages.core.document import split_lines
from stages.core.edit import Edit
from stages.core.errors import UsageError
from stages.history.aftermath import Fate, fates
from stages.history.blame import blame, gain_of
from stages.history.events import Event
from stages.history.rows import by_item
from stages.history.story import Story
from stages.history.trial import Trial, trial_around, trial_of_version


@dataclass(frozen=True)
class Seen:
    """What one rollout sent and got back, shortened. None = not at hand."""

    prompt: str | None = None
    reply: str | None = None
    expected: str | None = None


class Evidence(Protocol):
    """The door to facts."""

    def look_up(self, item: str, key: str | None) -> Seen:
        """Return what is known of a train rollout."""


class LogOnly:
    """Evidence when there is no store: the log names the facts, nothing more."""

    def look_up(self, item: str, key: str | None) -> Seen:
        return Seen()


@dataclass(frozen=True)
class Case:
    """A train rollout that the change was learned from."""

    item: str
    hard: float | None
    soft: float | None
    reason: str
    failure_type: str | None
    key: str | None
    seen: Seen


@dataclass(frozen=True)
class Proposal:
    """One analyst's patch: what it saw, said and proposed."""

    patch: str
    source: str
    by: str
    items: tuple[str, ...]
    reasoning: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Merge:
    """Patches that became one."""

    patch: str
    level: int
    group: str
    inputs: tuple[str, ...]
    by: str
    reason: str
    edits: tuple[Edit, ...]
    dropped: tuple[str, ...]


@dataclass(frozen=True)
class Tried:
    """One edit of the candidate: its words, its descent, how it applied, what came of it."""

    edit: Edit
    descent: tuple[str, ...]
    status: str
    lines: tuple[int, ...]
    detail: str
    fate: Fate | None


@dataclass(frozen=True)
class Flip:
    """A selection item whose score moved."""

    item: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Judgement:
    """The gate's verdict with the items it won and lost."""

    verdict: str
    rule: str
    metric: str
    before: float | None
    after: float | None
    after_max: float | None
    gain: float | None
    judged: int
    total: int
    won: tuple[Flip, ...]
    lost: tuple[Flip, ...]
    statistic: Mapping[str, Any] | None
    forced: bool
    saved: int
    reason: str


@dataclass(frozen=True)
class Audit:
    """All about one candidate.

    Attributes:
        subject: what was asked, in words.
        lines: the numbers and texts of the lines asked about, where it was lines.
        left_out: (edit id, reason) of merged edits that were not selected.
        cases: rollouts behind the proposals, those behind the edits first.
    """

    subject: str
    version: int | None
    parent_version: int | None
    epoch: int | None
    step: int | None
    source: str
    result: str
    lines: tuple[tuple[int, str], ...] = ()
    cases: tuple[Case, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    unusable_replies: tuple[str, ...] = ()
    merges: tuple[Merge, ...] = ()
    budget: int | None = None
    budget_reason: str = ""
    selected: tuple[str, ...] = ()
    selected_by: str = ""
    left_out: tuple[tuple[str, str], ...] = ()
    edits: tuple[Tried, ...] = ()
    faults: tuple[str, ...] = ()
    diff: str = ""
    gate: Judgement | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    notes: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def audit_version(story: Story, number: int, evidence: Evidence) -> Audit:
    """Return the audit of the candidate that became version `number`."""
    return _audit(story, trial_of_version(story, number), f"version {number}", evidence)


def audit_patch(story: Story, patch: str, evidence: Evidence) -> Audit:
    """Return the audit of the candidate that a patch (`p12`) or edit (`12.0`) went into."""
    carrier = patch if patch.startswith("p") else f"p{patch.split('.')[0]}"
    return _audit(story, trial_around(story, story.patch(carrier)), f"patch {patch}", evidence)


def audit_line(story: Story, wanted: int | str, line: int, evidence: Evidence) -> Audit:
    """Return the audit of the change that wrote a line (1-based) of a version.

    Raises:
        UsageError: the version has no such line.
    """
    rows = blame(story, wanted)
    if not 1 <= line <= len(rows):
        raise UsageError(f"line {line}", f"version {wanted} has {len(rows)} lines")
    row = rows[line - 1]
    trial = trial_of_version(story, row.version)
    subject = f"line {line} of {wanted}"
    return _audit(story, trial, subject, evidence, lines=((line, row.text),))


def audit_text(story: Story, text: str, evidence: Evidence) -> list[Audit]:
    """Return one audit per change that wrote lines with `text` in them, oldest version first.

    Raises:
        UsageError: no version ever had such a line.
    """
    wanted: dict[int, dict[str, None]] = {}
    for version in story.versions:
        for row in blame(story, version.number):
            if text in row.text:
                wanted.setdefault(row.version, {})[row.text] = None
    if not wanted:
        raise UsageError(f"text {text!r}", "no version of this run has a line with it")
    found = []
    for number in sorted(wanted):
        lines = tuple(
            (at, line)
            for at, line in enumerate(split_lines(story.versions[number].text), 1)
            if line in wanted[number]
        )
        trial = trial_of_version(story, number)
        found.append(_audit(story, trial, f"text {text!r}", evidence, lines=lines))
    return found


def _audit(
    story: Story,
    trial: Trial,
    subject: str,
    evidence: Evidence,
    lines: tuple[tuple[int, str], ...] = (),
) -> Audit:
    versioned, built, selected, gate = trial.versioned, trial.built, trial.selected, trial.gate
    any_event = next(iter([e for e in (built, selected, versioned, *trial.proposals) if e]))
    version = None if versioned is None else int(versioned.data["version"])
    budget = trial.budgets[-1] if trial.budgets else None
    tried = tuple(_tried(story, trial)) if built is not None else ()
    return Audit(
        subject=subject,
        version=version,
        parent_version=None if not version else version - 1,
        epoch=any_event.data.get("epoch"),
        step=any_event.data.get("step"),
        source=_source(trial),
        result=_result(trial),
        lines=lines,
        cases=tuple(_cases(trial, tried, evidence)),
        proposals=tuple(_proposal(event) for event in trial.proposals),
        unusable_replies=tuple(
            f"{e.data['stage']}: {e.data['message']} ({e.data['then']})"
            for e in trial.rejected_replies
        ),
        merges=tuple(_merge(event) for event in trial.merges),
        budget=None if budget is None else budget.data["budget"],
        budget_reason="" if budget is None else _budget_reason(budget.data),
        selected=() if selected is None else tuple(selected.data["selected"]),
        selected_by=""
        if selected is None
        else f"{_by(selected.data)}: {selected.data['reason']}",
        left_out=()
        if selected is None
        else tuple((row["edit"], row["reason"]) for row in selected.data["left_out"]),
        edits=tried,
        faults=() if built is None else tuple(built.data["faults"]),
        diff="" if built is None else built.data["diff"],
        gate=None if gate is None else _judgement(story, trial, gate),
        tokens_before=None if gate is None else gate.data["tokens_before"],
        tokens_after=None if gate is None else gate.data["tokens_after"],
    )


def _source(trial: Trial) -> str:
    if trial.built is not None:
        return str(trial.built.data["source"])
    return "seed" if trial.versioned is not None and not trial.proposals else "step"


def _result(trial: Trial) -> str:
    if trial.gate is not None:
        return str(trial.gate.data["verdict"])
    if trial.ended is not None:
        return str(trial.ended.data["result"])
    return "seed" if trial.versioned is not None else "unfinished"


def _by(data: Mapping[str, Any]) -> str:
    return "model" if data["rule"] is None else str(data["rule"])


def _chosen_by(data: Mapping[str, Any]) -> str:
    return f"{_by(data)} ({data['reason']})" if data["reason"] else _by(data)


def _budget_reason(data: Mapping[str, Any]) -> str:
    told = [f"{name} {data[name]}" for name in ("lr", "lr_min", "total_steps") if name in data]
    parts = [data["schedule"], *told, *([data["reason"]] if data["reason"] else [])]
    return ", ".join(parts)


def _proposal(event: Event) -> Proposal:
    data = event.data
    reasoning = data.get("reasoning", data.get("reason", ""))
    return Proposal(
        patch=data["patch"],
        source=data.get("source", event.type.split(".")[0]),
        by=_by(data),
        items=tuple(data.get("items", ())),
        reasoning=reasoning,
        edits=tuple(map(Edit.from_json, data["edits"])),
    )


def _merge(event: Event) -> Merge:
    data = event.data
    return Merge(
        data["patch"],
        data["level"],
        data["group"],
        tuple(data["inputs"]),
        _by(data),
        data["reason"],
        tuple(map(Edit.from_json, data["edits"])),
        tuple(data.get("dropped", ())),
    )


def _tried(story: Story, trial: Trial) -> Iterable[Tried]:
    assert trial.built is not None
    after = {} if trial.versioned is None else fates(story, trial.versioned.data["version"])
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


def _cases(trial: Trial, tried: Iterable[Tried], evidence: Evidence) -> Iterable[Case]:
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


def _judgement(story: Story, trial: Trial, gate: Event) -> Judgement:
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

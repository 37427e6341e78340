"""One plain sentence per event: the subject of its commit and a row of `skilltrail log`.

A sentence is a function of the event and of the version that was current, so that commits can
be made again with the same hash. Text from models and data is shown on one line, with control
characters and direction marks made visible, and cut to a length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import to_builtins

from skilltrail.core.hidden import spelled_out
from skilltrail.core.targets import cases_of, targets_in
from skilltrail.history.log import types
from skilltrail.history.log.events import Event
from skilltrail.history.log.terms import in_terms
from skilltrail.history.log.types.parts import Purpose, Verdict

_REASON = 300  # characters of why a reply was refused; commits keep fewer


def sentence(event: Event, version: int | None) -> str:
    """Return what happened; `version` is the skill's when the event was recorded."""
    return SENTENCES[event.type](event.said, version)


def sentences(events: Iterable[Event]) -> Iterator[tuple[Event, str]]:
    """Yield each event with what is shown of it.

    That is its sentence, but for rollouts that the gate stopped early: theirs, which commits
    keep, gives the mean of a part of the items; what is shown is the bound that this sets. On
    several targets, what commits call items are cases: each item on each target. Of a refused
    reply the reason is shown too, and a step's result in the words of `TERMS`.
    """
    version: int | None = None
    selection = 0
    for event in events:
        said = event.said
        words = None
        if isinstance(said, types.RunStarted):
            selection = len(cases_of((i.item for i in said.selection), targets_in(said.target)))
        elif isinstance(said, types.RolloutsScored):
            words = _stopped(said, selection)
            words = _rollouts(said, version, _unit(said)) if words is None else words
        elif isinstance(said, types.GateJudged):
            words = _judged(said, version, _unit(said))
        elif isinstance(said, types.ReplyRejected):
            words = _reply(said, version, _REASON)
        elif isinstance(said, types.StepEnded):
            result, reason = in_terms(said.result), in_terms(visible(said.reason or ""))
            more = f", {reason}" if reason not in ("", result) else ""
            words = f"step {said.step}: {result}{more}"
        yield event, sentence(event, version) if words is None else words
        if isinstance(said, types.SkillVersioned):
            version = said.version


def visible(text: str, most: int = 60) -> str:
    """Return the first `most` characters of `text` as one line that shows what it holds."""
    cut = text[:most]
    shown = "⏎".join(spelled_out(line) for line in cut.split("\n"))
    return f"{shown}…" if len(cut) < len(text) else shown


def score(value: float | None, absent: str = "none") -> str:
    return absent if value is None else f"{value:.3f}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _started(said: types.RunStarted, version: int | None) -> str:
    items = f"{len(said.train)} train and {len(said.selection)} selection items"
    fork = "" if said.parent is None else f", forked from {said.parent[:12]}"
    judge = said.judge
    judged = "" if judge is None else f", judged by {visible(str(judge.model.get('model')))}"
    return f"run: {visible(said.env)}, {items}, seed {said.seed}{judged}{fork}"


def _rollouts(said: types.RolloutsScored, version: int | None, unit: str = "item") -> str:
    asked, done = said.coverage.asked, said.coverage.scored
    gap = "" if asked == done else f", {asked - done} missing"
    means = f"hard {score(said.mean_hard)}, soft {score(said.mean_soft)}"
    return f"rollouts: {said.purpose} on {count(asked, unit)}, {means}{gap}"


def _unit(said: types.RolloutsScored | types.GateJudged) -> str:
    """Return what scores of rollouts, or a verdict on them, count."""
    if isinstance(said, types.GateJudged):
        return "item" if said.targets is None else "case"
    return "item" if all(row.target is None for row in said.items) else "case"


def _stopped(said: types.RolloutsScored, selection: int) -> str | None:
    """Return what is shown of an evaluation on a part of the `selection` items, else None."""
    if said.purpose is not Purpose.SELECTION:
        return None
    seen = len({(row.item, row.target) for row in said.items})
    if seen >= selection:
        return None
    bounds = []
    for name in ("hard", "soft"):
        mean = getattr(said, f"mean_{name}")
        most = selection if mean is None else mean * seen + selection - seen
        bounds.append(f"{name} at most {score(most / selection)}")
    return (
        f"rollouts: selection on {seen} of {count(selection, _unit(said))}, {', '.join(bounds)}"
    )


def _method(said: types.MethodChosen, version: int | None) -> str:
    return f"method: {visible(said.method)}"


def _parents(said: types.ParentsChosen, version: int | None) -> str:
    names = " and ".join(
        one.digest[:12] if one.version is None else f"v{one.version}" for one in said.parents
    )
    pool = "" if said.pool is None else f" of {len(said.pool)}"
    reason = f", {visible(said.reason)}" if said.reason else ""
    return f"parents: {names}{pool} at step {said.step}{reason}"


def _instruction(said: types.InstructionChosen, version: int | None) -> str:
    return f"instruction: {visible(said.operator, 20)}, {visible(said.text)}"


def _budget(said: types.BudgetDecided, version: int | None) -> str:
    if said.budget is None:
        return f"budget: no cap at step {said.step}"
    most = count(said.budget, "edit")
    return f"budget: at most {most} at step {said.step} ({said.schedule})"


def _proposed(said: types.PatchProposed, version: int | None) -> str:
    edits, items = count(len(said.edits), "edit"), count(len(said.items), said.source)
    return f"patch: {said.patch} has {edits} from {items}".replace("successs", "successes")


def _reply(said: types.ReplyRejected, version: int | None, most: int = 60) -> str:
    return f"reply: {visible(said.stage)} unusable, {visible(said.message, most)}"


def _merged(said: types.PatchMerged, version: int | None) -> str:
    inputs = ", ".join(said.inputs[:6]) + (", …" if len(said.inputs) > 6 else "")
    return f"merge: {said.patch} has {count(len(said.edits), 'edit')} from {inputs}"


def _selected(said: types.EditsSelected, version: int | None) -> str:
    chosen, left = len(said.selected), len(said.left_out)
    cap = "no cap" if said.budget is None else f"budget {said.budget}"
    return f"select: {chosen} of {count(chosen + left, 'edit')} ({cap})"


def _candidate(said: types.CandidateBuilt, version: int | None) -> str:
    tally = Counter(result.status.value for result in said.results)
    results = ", ".join(f"{number} {status}" for status, number in sorted(tally.items()))
    made = results if results else "rewritten"
    fault = f", unusable: {visible(said.faults[0])}" if said.faults else ""
    return f"candidate: {made}, {count(said.tokens, 'token')}{fault}"


def _judged(said: types.GateJudged, version: int | None, unit: str = "item") -> str:
    won, lost = len(said.flips.won), len(said.flips.lost)
    if said.after_max is not None:
        after = f"{score(said.before)} → at most {score(said.after_max)}"
        items = f"after {said.judged} of {count(said.total, unit)}"
    else:
        after = f"{score(said.before)} → {score(said.after)}"
        items = f"on {count(said.judged, unit)}"
    parts = [f"{after} {items}", f"+{won} −{lost}"]
    if said.statistic is not None:
        parts.append(f"p={said.statistic.p:.3g}")
    parts += [on_target(to_builtins(one)) for one in said.targets or ()]
    if said.cost is not None:
        parts.append(costs(to_builtins(said.cost)))
    if said.forced:
        parts.append("forced")
    name = ""
    if said.verdict is Verdict.ACCEPTED and version is not None:
        name = f" v{version + 1}"
    return f"gate: {said.verdict}{name} ({', '.join(parts)})"


def on_target(told: Mapping[str, Any]) -> str:
    """Return what a candidate does on one of several targets."""
    most = "at most " if told["after"] is None else ""
    after = told["after_max"] if told["after"] is None else told["after"]
    floor = f", floor {told['floor']:g}" if told["floor"] else ""
    return f"{told['target']} {score(told['before'])} → {most}{score(after)}{floor}"


def costs(told: Mapping[str, Any]) -> str:
    """Return what the agent used on the judged items, before and after."""
    both = [told[side] for side in ("before", "after")]
    tokens = ("?" if one["tokens"] is None else str(one["tokens"]) for one in both)
    return f"agent: {' → '.join(tokens)} tokens, {both[0]['calls']} → {both[1]['calls']} calls"


def _versioned(said: types.SkillVersioned, version: int | None) -> str:
    size = count(said.tokens, "token")
    if said.version == 0:
        return f"skill: v0, the seed, {size}"
    lines = f"+{said.lines_added} −{said.lines_removed} lines"
    best = ", best so far" if said.best else ""
    return f"skill: v{said.version}, {lines}, {size}{best}"


def _step(said: types.StepEnded, version: int | None) -> str:
    reason = f", {visible(said.reason)}" if said.reason else ""
    return f"step {said.step}: {said.result}{reason}"


def _compared(said: types.SlowUpdateCompared, version: int | None) -> str:
    tally = ", ".join(f"{number} {name}" for name, number in sorted(said.counts.items()))
    return f"slow update: epoch {said.epoch} compared, {tally if tally else 'no pairs'}"


def _guided(said: types.SlowUpdateProposed, version: int | None) -> str:
    return f"slow update: {said.patch} writes guidance after epoch {said.epoch}"


def _shortened(said: types.CompactionProposed, version: int | None) -> str:
    return f"compaction: {said.patch} writes a shorter document after epoch {said.epoch}"


def _notes(said: types.AppendixProposed, version: int | None) -> str:
    return f"appendix: {said.patch} writes notes, {visible(said.reason)}"


def _meta(said: types.MetaSkillWritten, version: int | None) -> str:
    return f"meta skill: {count(len(said.text), 'character')} after epoch {said.epoch}"


def _finished(said: types.RunFinished, version: int | None) -> str:
    best = f"best v{said.best.version} at {score(said.best.score)}"
    steps = count(said.steps, "step")
    return f"run: finished ({visible(said.why)}), {best}, {steps}, {said.accepted} accepted"


def _opened(said: types.TestOpened, version: int | None) -> str:
    skills = ", ".join(visible(skill.name, 20) for skill in said.skills)
    asked = "" if said.opened_before is None else ", asked for by a person"
    items = count(len(said.items), "item")
    return f"evaluation: opens {said.split}, {items}, {skills}{asked}"


def _evaluated(said: types.SkillEvaluated, version: int | None) -> str:
    gain = "" if said.gain is None else f", gain {said.gain:+.3f}"
    means = f"hard {score(said.mean_hard)}, soft {score(said.mean_soft)}"
    return f"evaluation: {visible(said.name, 20)} on {said.split}, {means}{gain}"


def _transferred(said: types.SkillTransferred, version: int | None) -> str:
    share = "" if said.share is None else f", {said.share:.0%} of the gain carries over"
    means = f"hard {score(said.mean_hard)}, soft {score(said.mean_soft)}"
    on = f"{visible(said.name, 20)} on target {visible(said.target, 20)}"
    return f"evaluation: {on}, {said.split}, {means}{share}"


def _erased(said: types.TextErased, version: int | None) -> str:
    told = {"event": said.events, "fact": said.facts, "item": said.items}
    lost = [count(len(some), noun) for noun, some in told.items() if some]
    return f"erased: {visible(said.marker, 20)} stands for a text in {', '.join(lost)}"


SENTENCES: Mapping[str, Callable[[Any, int | None], str]] = {
    "run.started": _started,
    "rollouts.scored": _rollouts,
    "method.chosen": _method,
    "parents.chosen": _parents,
    "instruction.chosen": _instruction,
    "budget.decided": _budget,
    "patch.proposed": _proposed,
    "reply.rejected": _reply,
    "patch.merged": _merged,
    "edits.selected": _selected,
    "candidate.built": _candidate,
    "gate.judged": _judged,
    "skill.versioned": _versioned,
    "step.ended": _step,
    "appendix.proposed": _notes,
    "slow_update.compared": _compared,
    "slow_update.proposed": _guided,
    "compaction.proposed": _shortened,
    "meta_skill.written": _meta,
    "run.finished": _finished,
    "test.opened": _opened,
    "skill.evaluated": _evaluated,
    "skill.transferred": _transferred,
    "text.erased": _erased,
}

"""One plain sentence per event: the subject of its commit and a row of `skilltrail log`.

A sentence is a function of the event and of the version that was current, so that commits can
be made again with the same hash. Text from models and data is shown on one line, with control
characters and direction marks made visible, and cut to a length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from skilltrail.core.hidden import spelled_out
from skilltrail.core.targets import case_of
from skilltrail.history.log.events import Event

Data = Mapping[str, Any]

# What logs call things, which keeps their bytes, and what people are told in the field's words.
TERMS = {
    "no_patch": "no edit proposed",
    "nobody proposed an edit": "no edit proposed",
    "cannot win any more": "cannot reach the current score",
    "one half of what lost": "retry: half of the rejected edits",
}


def in_terms(recorded: str) -> str:
    """Return a recorded word or reason as people are told it."""
    for word, term in TERMS.items():
        if recorded.startswith(word):
            return term + recorded[len(word) :]
    return recorded


def sentence(event: Event, version: int | None) -> str:
    """Return what happened; `version` is the skill's when the event was recorded."""
    return SENTENCES[event.type](event.data, version)


def told(events: Iterable[Event], version: int | None = None) -> Iterator[tuple[Event, str]]:
    """Yield each event with what is shown of it; `version` is the skill's before the first.

    That is its sentence, but for rollouts that the gate stopped early: theirs, which commits
    keep, gives the mean of a part of the items; what is shown is the bound that this sets. On
    several targets, what commits call items are cases: each item on each target.
    """
    selection = 0
    for event in events:
        if event.type == "run.started":
            several = len(event.data["target"].get("targets", ()))
            selection = len(event.data["selection"]) * max(1, several)
        words = _stopped(event.data, selection) if event.type == "rollouts.scored" else None
        if words is None and (counted := _COUNTED.get(event.type)) is not None:
            words = counted(event.data, version, _unit(event.data))
        yield event, sentence(event, version) if words is None else words
        if event.type == "skill.versioned":
            version = event.data["version"]


def visible(text: str, most: int = 60) -> str:
    """Return the first `most` characters of `text` as one line that shows what it holds."""
    cut = text[:most]
    shown = "⏎".join(spelled_out(line) for line in cut.split("\n"))
    return f"{shown}…" if len(cut) < len(text) else shown


def score(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _started(data: Data, version: int | None) -> str:
    items = f"{len(data['train'])} train and {len(data['selection'])} selection items"
    fork = "" if data["parent"] is None else f", forked from {data['parent'][:12]}"
    judge = data.get("judge")
    judged = "" if judge is None else f", judged by {visible(str(judge['model'].get('model')))}"
    return f"run: {visible(data['env'])}, {items}, seed {data['seed']}{judged}{fork}"


def _rollouts(data: Data, version: int | None, unit: str = "item") -> str:
    asked, done = data["coverage"]["asked"], data["coverage"]["scored"]
    gap = "" if asked == done else f", {asked - done} missing"
    means = f"hard {score(data['mean_hard'])}, soft {score(data['mean_soft'])}"
    return f"rollouts: {data['purpose']} on {count(asked, unit)}, {means}{gap}"


def _unit(data: Data) -> str:
    """Return what scores of rollouts, or a verdict on them, count."""
    several = "targets" in data or any("target" in row for row in data.get("items", ()))
    return "case" if several else "item"


def _stopped(data: Data, selection: int) -> str | None:
    """Return what is shown of an evaluation on a part of the `selection` items, else None."""
    seen = len({case_of(row) for row in data["items"]})
    if data["purpose"] != "selection" or seen >= selection:
        return None
    bounds = []
    for name in ("hard", "soft"):
        mean = data[f"mean_{name}"]
        most = selection if mean is None else mean * seen + selection - seen
        bounds.append(f"{name} at most {score(most / selection)}")
    return (
        f"rollouts: selection on {seen} of {count(selection, _unit(data))}, {', '.join(bounds)}"
    )


def _method(data: Data, version: int | None) -> str:
    return f"method: {visible(data['method'])}"


def _parents(data: Data, version: int | None) -> str:
    names = " and ".join(
        f"v{one['version']}" if "version" in one else one["digest"][:12]
        for one in data["parents"]
    )
    pool = f" of {len(data['pool'])}" if "pool" in data else ""
    reason = f", {visible(data['reason'])}" if data["reason"] else ""
    return f"parents: {names}{pool} at step {data['step']}{reason}"


def _instruction(data: Data, version: int | None) -> str:
    return f"instruction: {visible(data['operator'], 20)}, {visible(data['text'])}"


def _budget(data: Data, version: int | None) -> str:
    if data["budget"] is None:
        return f"budget: no cap at step {data['step']}"
    most = count(data["budget"], "edit")
    return f"budget: at most {most} at step {data['step']} ({data['schedule']})"


def _proposed(data: Data, version: int | None) -> str:
    edits, items = count(len(data["edits"]), "edit"), count(len(data["items"]), data["source"])
    return f"patch: {data['patch']} has {edits} from {items}".replace("successs", "successes")


def _reply(data: Data, version: int | None) -> str:
    return f"reply: {visible(data['stage'])} unusable, {visible(data['message'])}"


def _merged(data: Data, version: int | None) -> str:
    inputs = ", ".join(data["inputs"][:6]) + (", …" if len(data["inputs"]) > 6 else "")
    return f"merge: {data['patch']} has {count(len(data['edits']), 'edit')} from {inputs}"


def _selected(data: Data, version: int | None) -> str:
    chosen, left = len(data["selected"]), len(data["left_out"])
    cap = "no cap" if data["budget"] is None else f"budget {data['budget']}"
    return f"select: {chosen} of {count(chosen + left, 'edit')} ({cap})"


def _candidate(data: Data, version: int | None) -> str:
    tally = Counter(result["status"] for result in data["results"])
    results = ", ".join(f"{number} {status}" for status, number in sorted(tally.items()))
    made = results if results else "rewritten"
    fault = f", unusable: {visible(data['faults'][0])}" if data["faults"] else ""
    return f"candidate: {made}, {count(data['tokens'], 'token')}{fault}"


def _judged(data: Data, version: int | None, unit: str = "item") -> str:
    won, lost = len(data["flips"]["won"]), len(data["flips"]["lost"])
    if data["after_max"] is not None:
        after = f"{score(data['before'])} → at most {score(data['after_max'])}"
        items = f"after {data['judged']} of {count(data['total'], unit)}"
    else:
        after = f"{score(data['before'])} → {score(data['after'])}"
        items = f"on {count(data['judged'], unit)}"
    parts = [f"{after} {items}", f"+{won} −{lost}"]
    if data["statistic"] is not None:
        parts.append(f"p={data['statistic']['p']:.3g}")
    parts += [on_target(one) for one in data.get("targets", ())]
    if "cost" in data:
        parts.append(costs(data["cost"]))
    if data["forced"]:
        parts.append("forced")
    name = ""
    if data["verdict"] == "accepted" and version is not None:
        name = f" v{version + 1}"
    return f"gate: {data['verdict']}{name} ({', '.join(parts)})"


def on_target(told: Data) -> str:
    """Return what a candidate does on one of several targets."""
    most = "at most " if told["after"] is None else ""
    after = told["after_max"] if told["after"] is None else told["after"]
    floor = f", floor {told['floor']:g}" if told["floor"] else ""
    return f"{told['target']} {score(told['before'])} → {most}{score(after)}{floor}"


def costs(told: Data) -> str:
    """Return what the agent used on the judged items, before and after."""
    both = [told[side] for side in ("before", "after")]
    tokens = ("?" if one["tokens"] is None else str(one["tokens"]) for one in both)
    calls = (str(one["calls"]) for one in both)
    return f"agent: {' → '.join(tokens)} tokens, {' → '.join(calls)} calls"


def _versioned(data: Data, version: int | None) -> str:
    size = count(data["tokens"], "token")
    if data["version"] == 0:
        return f"skill: v0, the seed, {size}"
    lines = f"+{data['lines_added']} −{data['lines_removed']} lines"
    best = ", best so far" if data["best"] else ""
    return f"skill: v{data['version']}, {lines}, {size}{best}"


def _step(data: Data, version: int | None) -> str:
    reason = f", {visible(data['reason'])}" if data["reason"] else ""
    return f"step {data['step']}: {data['result']}{reason}"


def _compared(data: Data, version: int | None) -> str:
    tally = ", ".join(f"{number} {name}" for name, number in sorted(data["counts"].items()))
    return f"slow update: epoch {data['epoch']} compared, {tally if tally else 'no pairs'}"


def _guided(data: Data, version: int | None) -> str:
    return f"slow update: {data['patch']} writes guidance after epoch {data['epoch']}"


def _shortened(data: Data, version: int | None) -> str:
    return f"compaction: {data['patch']} writes a shorter document after epoch {data['epoch']}"


def _notes(data: Data, version: int | None) -> str:
    return f"appendix: {data['patch']} writes notes, {visible(data['reason'])}"


def _meta(data: Data, version: int | None) -> str:
    return f"meta skill: {count(len(data['text']), 'character')} after epoch {data['epoch']}"


def _finished(data: Data, version: int | None) -> str:
    best = f"best v{data['best']['version']} at {score(data['best']['score'])}"
    steps = count(data["steps"], "step")
    return (
        f"run: finished ({visible(data['why'])}), {best}, {steps}, {data['accepted']} accepted"
    )


def _opened(data: Data, version: int | None) -> str:
    skills = ", ".join(visible(skill["name"], 20) for skill in data["skills"])
    asked = ", asked for by a person" if "opened_before" in data else ""
    items = count(len(data["items"]), "item")
    return f"evaluation: opens {data['split']}, {items}, {skills}{asked}"


def _evaluated(data: Data, version: int | None) -> str:
    gain = "" if data["gain"] is None else f", gain {data['gain']:+.3f}"
    means = f"hard {score(data['mean_hard'])}, soft {score(data['mean_soft'])}"
    return f"evaluation: {visible(data['name'], 20)} on {data['split']}, {means}{gain}"


def _transferred(data: Data, version: int | None) -> str:
    share = "" if data["share"] is None else f", {data['share']:.0%} of the gain carries over"
    means = f"hard {score(data['mean_hard'])}, soft {score(data['mean_soft'])}"
    on = f"{visible(data['name'], 20)} on target {visible(data['target'], 20)}"
    return f"evaluation: {on}, {data['split']}, {means}{share}"


def _erased(data: Data, version: int | None) -> str:
    lost = [
        count(len(data[name]), name[:-1]) for name in ("events", "facts", "items") if data[name]
    ]
    return f"erased: {visible(data['marker'], 20)} stands for a text in {', '.join(lost)}"


_COUNTED = {"rollouts.scored": _rollouts, "gate.judged": _judged}
SENTENCES: Mapping[str, Callable[[Data, int | None], str]] = {
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

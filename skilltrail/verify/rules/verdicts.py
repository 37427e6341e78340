"""Checks on the gate's verdict and what follows from it: version, step, run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.score import Outcome, Score
from skilltrail.core.tokens import TAG as COUNTER
from skilltrail.core.tokens import count_tokens
from skilltrail.history.log.course import Course
from skilltrail.history.log.events import Event
from skilltrail.history.log.rows import Row, Rows, by_item
from skilltrail.method.evaluate_candidate import moves_best
from skilltrail.method.gate import (
    ORDER,
    RULES,
    GateRule,
    Verdict,
    gate_order,
    judge_all,
    recorded,
)
from skilltrail.method.rollout import mean_score
from skilltrail.skill.apply import TAG as APPLY
from skilltrail.skill.edit import EditStatus
from skilltrail.skill.rewrite import TAG as REWRITE
from skilltrail.verify.result import Fault, Tags, differing
from skilltrail.verify.rules.candidates import built_again

# Earlier rules, by which old logs went: they are told as not recomputed.
OWN_MEANS = "means_of_all_scored/1"  # means over what each skill scored, not over pairs
SCORE_ALONE = "best_by_score/1"


def check_verdict(event: Event, course: Course, tags: Tags) -> Iterator[Fault]:
    """The verdict, judged again from the rows, item by item in gate order."""
    data = event.data
    scored = course.latest("rollouts.scored")
    built = course.latest("candidate.built")
    if scored is None or scored.data["purpose"] != "selection" or built is None:
        yield Fault.of(event, "evidence", "none", "a candidate and its selection rollouts")
        return
    yield from differing(event, {"candidate": built.data["candidate"]})
    if course.broken is None:
        yield from differing(event, {"current": text_digest(course.newest)})
    known = [f"{name}/1" for name in RULES]
    if not tags.knows(data["rule"], *known):
        return
    if not tags.knows(data["order"], ORDER):
        return
    order, verdict = judged_again(data, course, scored)
    items = list(by_item(scored.data["items"]))
    if items != order[: len(items)]:
        yield Fault.of(event, "order", items, order[: len(items)])
        return
    if verdict is None:
        yield Fault.of(event, "judged", len(items), "as many as the gate looks at")
        return
    right = recorded(verdict, len(order))
    if "compared" in right and "compared" not in data and not tags.knows(OWN_MEANS):
        for name in ("compared", "before", "after", "after_max"):
            del right[name]
    yield from differing(event, right)
    if len(items) != len(verdict.judged):
        yield Fault.of(event, "early stop", len(items), len(verdict.judged))


def judged_again(
    data: Mapping[str, Any], course: Course, scored: Event
) -> tuple[list[str], Verdict | None]:
    """Return the gate order and the verdict; None when rows end before the gate is decided."""
    rule = rule_of(data)
    current = scores_of(course.rows)
    selection = course.ids("selection")
    if set(current) != set(selection):
        return selection, None
    order = gate_order(selection, current, rule, course.shortfall)
    candidate = scores_of(by_item(scored.data["items"]))
    # Items beyond the recorded rows are never looked at when the early stop was right.
    unknown = {id: Score.missing("not recorded") for id in order if id not in candidate}
    tokens = {name: data[name] for name in ("tokens_before", "tokens_after")}
    verdict = judge_all(rule, order, current, unknown | candidate, **tokens)
    if any(id in unknown for id in verdict.judged):
        return order, None
    return order, verdict


def rule_of(data: Mapping[str, Any]) -> GateRule:
    """Return the gate's settings as the event recorded them."""
    names = {field.name for field in fields(GateRule)} - {"rule"}
    settings = {name: data[name] for name in names if name in data}
    return GateRule(rule=data["rule"].removesuffix("/1"), **settings)


def scores_of(rows: Rows) -> dict[str, Score]:
    """Return one score per item: its row's, or the mean over its repeats."""
    return {id: mean_score([score_of(row) for row in some]) for id, some in rows.items()}


def score_of(row: Row) -> Score:
    """Return a row's score; one that contradicts itself (a fault of its own) is missing."""
    hard, soft = row["hard"], row["soft"]
    if row["outcome"] == Outcome.SCORED.value and hard is not None and soft is not None:
        return Score.scored(hard, soft, row["reason"])
    return Score.missing(row["reason"])


def check_version(event: Event, course: Course, tags: Tags) -> Iterator[Fault]:
    data = event.data
    if data["version"] == 0:
        yield from _check_seed(event, course, tags)
        return
    built, judged = course.latest("candidate.built"), course.latest("gate.judged")
    if built is None or judged is None or judged.data["verdict"] != "accepted":
        yield Fault.of(event, "gate", data["gate"], "an accepted candidate of this step")
        return
    results = built.data["results"]
    applied = [r["edit"] for r in results if r["status"] == EditStatus.APPLIED.value]
    yield from differing(
        event,
        {
            "version": -1 if course.version is None else course.version + 1,
            "digest": built.data["candidate"],
            "parent": built.data["parent"],
            "candidate": built.seq,
            "gate": judged.seq,
            "edits": applied,
            "not_applied": [r["edit"] for r in results if r["edit"] not in applied],
            "tokens": built.data["tokens"],
        },
    )
    if course.broken is None and built.data["rule"] in (APPLY, REWRITE):
        candidate = built_again(built, course)
        moved = {"lines_added": candidate.added, "lines_removed": candidate.removed}
        yield from differing(event, moved)
    scored = course.latest("rollouts.scored")
    if scored is not None:
        gate = judged.data
        best = moves_best(
            rule_of(gate),
            scores_of(course.best_rows),
            scores_of(by_item(scored.data["items"])),
            shorter=gate["tokens_after"] < gate["tokens_before"],
        )
        # Before cost could move best, an acceptance at an equal score left it where it was.
        on_cost = best and gate["after"] == gate["before"] and not data["best"]
        if not on_cost or tags.knows(SCORE_ALONE):
            yield from differing(event, {"best": best})


def _check_seed(event: Event, course: Course, tags: Tags) -> Iterator[Fault]:
    """The seed skill is version 0, made by no edit and the best so far."""
    nothing: dict[str, Any] = dict.fromkeys(("parent", "patch", "candidate", "gate"))
    nothing |= {"edits": [], "not_applied": [], "lines_added": 0, "lines_removed": 0}
    yield from differing(event, nothing | {"best": True})
    if course.broken is None and tags.knows(course.start.get("counter"), COUNTER):
        yield from differing(event, {"tokens": count_tokens(course.skill)})


def check_step(event: Event, course: Course, tags: Tags) -> Iterator[Fault]:
    judged, built = course.latest("gate.judged"), course.latest("candidate.built")
    if judged is not None:
        right = judged.data["verdict"]
    else:
        right = "no_patch" if built is None else "no_change"
    yield from differing(event, {"result": right, "version": course.version})
    if (right == "accepted") != (course.latest("skill.versioned") is not None):
        yield Fault.of(event, "version", "none", "a skill.versioned event for the acceptance")


def check_finish(event: Event, course: Course, tags: Tags) -> Iterator[Fault]:
    data = event.data
    ended = course.ended
    verdicts = {name: ended[name] for name in ("accepted", "rejected", "indecisive")}
    yield from differing(event, {"steps": sum(ended.values()), **verdicts})
    for name, number in data["totals"].items():
        if course.totals[name] != number:
            yield Fault.of(event, f"totals.{name}", number, course.totals[name])
    if course.broken is None:
        for name, text in (("best", course.best), ("last", course.newest)):
            if data[name]["digest"] != text_digest(text):
                yield Fault.of(event, name, data[name]["digest"], text_digest(text))

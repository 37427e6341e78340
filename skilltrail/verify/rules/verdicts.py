"""Checks on the gate's verdict and what follows from it: version, step, run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.score import Score
from skilltrail.core.tokens import TAG as COUNTER
from skilltrail.core.tokens import count_tokens
from skilltrail.history.log.events import Event
from skilltrail.history.log.run_state import RunState
from skilltrail.method.evaluate_candidate import moves_best
from skilltrail.method.gate import (
    ORDER,
    RULES,
    Verdict,
    gate_order,
    judge_all,
    on_cost,
    recorded,
)
from skilltrail.skill.apply import TAG as APPLY
from skilltrail.skill.edit import EditStatus
from skilltrail.skill.rewrite import TAG as REWRITE
from skilltrail.verify.result import Fault, Tags, differing
from skilltrail.verify.rules.candidates import built_again
from skilltrail.verify.rules.minibatches import check_minibatch
from skilltrail.verify.rules.settings import cases, rule_of

# Earlier rules, by which old logs went: they are told as not recomputed.
OWN_MEANS = "means_of_all_scored/1"  # means over what each skill scored, not over pairs
SCORE_ALONE = "best_by_score/1"


def check_verdict(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """The verdict, judged again from the rows, item by item in gate order."""
    data = event.data
    if data.get("split") == "train":
        yield from check_minibatch(event, state, tags)
        return
    scored = state.latest("rollouts.scored")
    built = state.latest("candidate.built")
    if scored is None or scored.data["purpose"] != "selection" or built is None:
        yield Fault.of(event, "evidence", "none", "a candidate and its selection rollouts")
        return
    yield from differing(event, {"candidate": built.data["candidate"]})
    if state.broken is None:
        # A pool's candidate may be judged against what it was made of.
        texts = [state.skill, *([state.parent] if state.documents is not None else [])]
        if data["current"] not in map(text_digest, texts):
            yield Fault.of(event, "current", data["current"], state.digest)
    known = [f"{name}/1" for name in RULES]
    if not tags.knows(data["rule"], *known):
        return
    if not tags.knows(data["order"], ORDER):
        return
    order, verdict = judged_again(data, state)
    items = list(state.candidate_scores)
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


def judged_again(data: Mapping[str, Any], state: RunState) -> tuple[list[str], Verdict | None]:
    """Return the gate order and the verdict; None when rows end before the gate is decided."""
    rule = rule_of(data, state)
    current = state.measured.get(data["current"], state.scores)
    candidate = state.candidate_scores
    selection = cases(state)
    if set(current) != set(selection):
        return selection, None
    order = gate_order(selection, current, rule, state.shortfall)
    # Items beyond the recorded rows are never looked at when the early stop was right.
    unknown = {id: Score.missing("not recorded") for id in order if id not in candidate}
    tokens = {name: data[name] for name in ("tokens_before", "tokens_after")}
    verdict = judge_all(rule, order, current, {**unknown, **candidate}, **tokens)
    if any(id in unknown for id in verdict.judged):
        return order, None
    return order, verdict


def check_version(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    data = event.data
    if data["version"] == 0:
        yield from _check_seed(event, state, tags)
        return
    built, judged = state.latest("candidate.built"), state.latest("gate.judged")
    if built is None or judged is None or judged.data["verdict"] != "accepted":
        yield Fault.of(event, "gate", data["gate"], "an accepted candidate of this step")
        return
    results = built.data["results"]
    applied = [r["edit"] for r in results if r["status"] == EditStatus.APPLIED.value]
    yield from differing(
        event,
        {
            "version": -1 if state.version is None else state.version + 1,
            "digest": built.data["candidate"],
            "parent": built.data["parent"],
            "candidate": built.seq,
            "gate": judged.seq,
            "edits": applied,
            "not_applied": [r["edit"] for r in results if r["edit"] not in applied],
            "tokens": built.data["tokens"],
        },
    )
    if state.broken is None and built.data["rule"] in (APPLY, REWRITE):
        candidate = built_again(built, state)
        moved = {"lines_added": candidate.added, "lines_removed": candidate.removed}
        yield from differing(event, moved)
    if state.candidate_scores:
        gate = judged.data
        best = moves_best(
            rule_of(gate, state),
            state.best_scores,
            state.candidate_scores,
            cheaper=on_cost(gate),
        )
        # Before cost could move best, an acceptance at an equal score left it where it was.
        at_a_tie = best and gate["after"] == gate["before"] and not data["best"]
        if not at_a_tie or tags.knows(SCORE_ALONE):
            yield from differing(event, {"best": best})


def _check_seed(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """The seed skill is version 0, made by no edit and the best so far."""
    nothing: dict[str, Any] = dict.fromkeys(("parent", "patch", "candidate", "gate"))
    nothing |= {"edits": [], "not_applied": [], "lines_added": 0, "lines_removed": 0}
    yield from differing(event, nothing | {"best": True})
    if state.broken is None and tags.knows(state.start.get("counter"), COUNTER):
        yield from differing(event, {"tokens": count_tokens(state.parent)})


def check_step(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    judged, built = state.latest("gate.judged"), state.latest("candidate.built")
    if judged is not None:
        right = judged.data["verdict"]
    else:
        right = "no_patch" if built is None else "no_change"
        scored = state.latest("rollouts.scored")
        if built is not None and scored is not None and scored.seq > built.seq:
            right = "measured"  # and no gate asked
    yield from differing(event, {"result": right, "version": state.version})
    if (right == "accepted") != (state.latest("skill.versioned") is not None):
        yield Fault.of(event, "version", "none", "a skill.versioned event for the acceptance")


def check_finish(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    data = event.data
    ended = state.ended
    verdicts = {name: ended[name] for name in ("accepted", "rejected", "indecisive")}
    yield from differing(event, {"steps": sum(ended.values()), **verdicts})
    for name, number in data["totals"].items():
        if state.totals[name] != number:
            yield Fault.of(event, f"totals.{name}", number, state.totals[name])
    if state.broken is None:
        for name, text in (("best", state.best_skill), ("last", state.skill)):
            if data[name]["digest"] != text_digest(text):
                yield Fault.of(event, name, data[name]["digest"], text_digest(text))

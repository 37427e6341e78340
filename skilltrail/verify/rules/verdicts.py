"""Checks on the gate's verdict and what follows from it: version, step, run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.score import Score
from skilltrail.core.tokens import count_tokens
from skilltrail.history.log import types
from skilltrail.history.log.events import Event
from skilltrail.history.log.run_state import RunState
from skilltrail.history.log.types.parts import Purpose, StepResult, Verdict
from skilltrail.method.evaluate_candidate import moves_best
from skilltrail.method.gate import (
    ORDER,
    RULES,
    GateVerdict,
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
from skilltrail.verify.rules.settings import cases, knows_counter, rule_of

# Earlier rules, by which old logs went: they are told as not recomputed.
OWN_MEANS = "means_of_all_scored/1"  # means over what each skill scored, not over pairs
SCORE_ALONE = "best_by_score/1"


def check_verdict(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """The verdict, judged again from the rows, item by item in gate order."""
    said = event.read(types.GateJudged)
    if said.split == "train":
        yield from check_minibatch(event, state, tags)
        return
    scored, built = state.told(types.RolloutsScored), state.told(types.CandidateBuilt)
    if scored is None or scored.purpose is not Purpose.SELECTION or built is None:
        yield Fault.of(event, "evidence", "none", "a candidate and its selection rollouts")
        return
    yield from differing(event, {"candidate": built.candidate})
    if state.broken is None:
        # A pool's candidate may be judged against what it was made of.
        texts = [state.skill, *([state.parent] if state.documents is not None else [])]
        if said.current not in map(text_digest, texts):
            yield Fault.of(event, "current", said.current, state.digest)
    known = [f"{name}/1" for name in RULES]
    if not tags.knows(said.rule, *known):
        return
    if not tags.knows(said.order, ORDER):
        return
    order, verdict = judged_again(said, state)
    items = list(state.candidate_scores)
    if items != order[: len(items)]:
        yield Fault.of(event, "order", items, order[: len(items)])
        return
    if verdict is None:
        yield Fault.of(event, "judged", len(items), "as many as the gate looks at")
        return
    right = recorded(verdict, len(order))
    if "compared" in right and said.compared is None and not tags.knows(OWN_MEANS):
        for name in ("compared", "before", "after", "after_max"):
            del right[name]
    yield from differing(event, right)
    if len(items) != len(verdict.judged):
        yield Fault.of(event, "early stop", len(items), len(verdict.judged))


def judged_again(
    said: types.GateJudged, state: RunState
) -> tuple[list[str], GateVerdict | None]:
    """Return the gate order and the verdict; None when rows end before the gate is decided."""
    rule = rule_of(said, state)
    current = state.measured.get(said.current, state.scores)
    candidate = state.candidate_scores
    selection = cases(state)
    if set(current) != set(selection):
        return selection, None
    order = gate_order(selection, current, rule, state.cumulative_loss)
    # Items beyond the recorded rows are never looked at when the early stop was right.
    unknown = {id: Score.missing("not recorded") for id in order if id not in candidate}
    verdict = judge_all(
        rule,
        order,
        current,
        {**unknown, **candidate},
        tokens_before=said.tokens_before,
        tokens_after=said.tokens_after,
    )
    if any(id in unknown for id in verdict.judged):
        return order, None
    return order, verdict


def check_version(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    said = event.read(types.SkillVersioned)
    if said.version == 0:
        yield from _check_seed(event, state, tags)
        return
    made, judged = state.latest(types.CandidateBuilt), state.latest(types.GateJudged)
    gate = state.told(types.GateJudged)
    if made is None or judged is None or gate is None or gate.verdict is not Verdict.ACCEPTED:
        yield Fault.of(event, "gate", said.gate, "an accepted candidate of this step")
        return
    built = made.read(types.CandidateBuilt)
    applied = [r.edit for r in built.results if r.status is EditStatus.APPLIED]
    yield from differing(
        event,
        {
            "version": -1 if state.version is None else state.version + 1,
            "digest": built.candidate,
            "parent": built.parent,
            "candidate": made.seq,
            "gate": judged.seq,
            "edits": applied,
            "not_applied": [r.edit for r in built.results if r.edit not in applied],
            "tokens": built.tokens,
        },
    )
    if state.broken is None and built.rule in (APPLY, REWRITE):
        candidate = built_again(made, state)
        moved = {"lines_added": candidate.added, "lines_removed": candidate.removed}
        yield from differing(event, moved)
    if state.candidate_scores:
        best = moves_best(
            rule_of(gate, state),
            state.best_scores,
            state.candidate_scores,
            cheaper=on_cost(gate),
        )
        # Before cost could move best, an acceptance at an equal score left it where it was.
        at_a_tie = best and gate.after == gate.before and not said.best
        if not at_a_tie or tags.knows(SCORE_ALONE):
            yield from differing(event, {"best": best})


def _check_seed(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """The seed skill is version 0, made by no edit and the best so far."""
    nothing: dict[str, Any] = dict.fromkeys(("parent", "patch", "candidate", "gate"))
    nothing |= {"edits": [], "not_applied": [], "lines_added": 0, "lines_removed": 0}
    yield from differing(event, nothing | {"best": True})
    if state.broken is None and knows_counter(state, tags):
        yield from differing(event, {"tokens": count_tokens(state.parent)})


def check_step(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    judged, built = state.told(types.GateJudged), state.latest(types.CandidateBuilt)
    if judged is not None:
        right = StepResult(judged.verdict)
    else:
        right = StepResult.NO_PATCH if built is None else StepResult.NO_CHANGE
        scored = state.latest(types.RolloutsScored)
        if built is not None and scored is not None and scored.seq > built.seq:
            right = StepResult.MEASURED  # and no gate asked
    yield from differing(event, {"result": right, "version": state.version})
    if (right is StepResult.ACCEPTED) != (state.latest(types.SkillVersioned) is not None):
        yield Fault.of(event, "version", "none", "a skill.versioned event for the acceptance")


def check_finish(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    said, ended = event.read(types.RunFinished), state.ended
    verdicts = {one.value: ended[one] for one in Verdict}
    yield from differing(event, {"steps": sum(ended.values()), **verdicts})
    for name, number in said.totals.items():
        if state.totals[name] != number:
            yield Fault.of(event, f"totals.{name}", number, state.totals[name])
    if state.broken is None:
        ends = (("best", said.best, state.best_skill), ("last", said.last, state.skill))
        for name, one, text in ends:
            if one.digest != text_digest(text):
                yield Fault.of(event, name, one.digest, text_digest(text))

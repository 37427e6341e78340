"""GEPA: reflective mutation of documents drawn from a per-item Pareto front.

Source: arXiv 2507.19457, algorithms 1 and 2, and the public package `gepa`.

    the pool is the seed document, measured on the selection split
    for each minibatch of train items, in epochs of seeded order:
        parent = drawn from the pool's per-item Pareto front, by how many items it is best on
        roll out the minibatch with the parent; none failed: nothing to learn, go on
        reflect on it, which gives a candidate
        roll out the same minibatch with the candidate
        keep it only if its sum is higher; then measure it in full, and it joins the pool
        after each that joined, while merges are left:
            two members of the front, neither made of the other, with a common ancestor:
            the better one takes over what the other changed since then, and joins if it wins
    the result is the member with the highest mean

Departures. Reflection is by our analysts and gives edits, not a new instruction. The paper's
merge swaps modules of a program; a document is one module, so ours carries over changed lines,
takes the latest common ancestor (the package draws one), and lets the gate judge the result
against the better parent on the selection split, with its early stop (the package: five items,
ties win). The last minibatch of an epoch may be short (the package fills it up). A candidate
equal to a document of the pool is not measured again.

Two documents are merged by what one changed since an ancestor, as edits of the other: the first
stays, the second's changes are applied to it. What the first has taken out already is not taken
out again; what is new stands where it stood, or at the end where the line before it is not
there any more.
"""

from __future__ import annotations

import difflib
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from skilltrail.history.log.types.parts import Purpose
from skilltrail.method.aggregate import aggregate
from skilltrail.method.evaluate_candidate import evaluate_candidate, record_version
from skilltrail.method.loop import end_step, first_record
from skilltrail.method.reflect import reflect
from skilltrail.method.rollout import Rollout, scored
from skilltrail.method.run import Run, State, view_of
from skilltrail.method.schedule import Step, plan_epoch
from skilltrail.methods.draws import Draws
from skilltrail.methods.minibatch import consumed, judge_minibatch, roll_out
from skilltrail.methods.pareto import lots, values_of
from skilltrail.methods.pool import Known, Pool, ancestors, begin, grown
from skilltrail.methods.steps import CandidateTried, build, choose_parents, select_all
from skilltrail.optimizers.protocol import Observation
from skilltrail.skill.alignment import comparable
from skilltrail.skill.document import split_lines
from skilltrail.skill.edit import Edit, Patch
from skilltrail.skill.folder import files_of


def changes(ancestor: str, descendant: str, onto: str, said: str) -> list[Edit]:
    """Return the edits of `onto` that do what `descendant` did to `ancestor`; `said` is why."""
    before, after, there = files_of(ancestor), files_of(descendant), files_of(onto)
    return [
        replace(edit, file=path)
        for path in {**there, **after}
        for edit in _changes(
            split_lines(before.get(path, "")),
            split_lines(after.get(path, "")),
            split_lines(there.get(path, "")),
            said,
        )
    ]


def _changes(
    old: Sequence[str], new: Sequence[str], onto: Sequence[str], said: str
) -> Iterator[Edit]:
    lines = comparable(old, new, autojunk=False)
    matcher = difflib.SequenceMatcher(None, *lines, autojunk=False)
    for kind, start, end, at, until in matcher.get_opcodes():
        if kind == "equal":
            continue
        gone, come = "\n".join(old[start:end]), "\n".join(new[at:until])
        if gone.strip():
            yield Edit("delete", gone, reason=said)
        if not come.strip():
            continue
        before = old[start - 1] if 0 < start < len(old) else ""
        if before.strip() and onto.count(before) == 1:
            yield Edit("insert_after", before, come, reason=said)
        else:
            yield Edit("append", content=come, reason=said)


PARETO, MERGE = "pareto/1", "merge/1"


async def gepa(
    run: Run, state: State, draws: Draws | None = None
) -> AsyncGenerator[State, None]:
    """Yield the state after each mutation and each merge."""
    draws = Draws(run.params.seed) if draws is None else draws
    pool, merges, number = begin(state), run.params.methods.gepa.merges, 0
    merged: set[tuple[int, int]] = set()
    for epoch in range(1, run.params.epochs + 1):
        for batch in minibatches(run, epoch):
            number += 1
            size = len(pool)
            state, pool = await mutate(run, state, pool, replace(batch, step=number), draws)
            yield state
            pair = mergeable(run, pool, merged, draws, number) if len(pool) > size else None
            if pair is not None and merges:
                merges, number = merges - 1, number + 1
                merged.add(pair)
                state, pool = await merge(run, state, pool, Step(epoch, number, ()), pair)
                yield state


def minibatches(run: Run, epoch: int) -> list[Step]:
    """Return the minibatches of one epoch."""
    ids, size = [item.id for item in run.train], run.params.methods.gepa.minibatch
    return plan_epoch(ids, seed=run.params.seed, epoch=epoch, batch_size=size, accumulation=1)


def draw_parent(run: Run, pool: Pool, step: Step, draws: Draws) -> Known:
    """Draw a member of the front and record the draw."""
    weights = lots([values_of(run.gate_rule, one.scores) for one in pool])
    places = list(weights)
    parent = pool[places[draws.weighted(list(weights.values()), step.step, "parent")]]
    members = [one.member(run.gate_rule, weights.get(at)) for at, one in enumerate(pool)]
    said = f"{weights[parent.version]} of {sum(weights.values())} lots"
    read = consumed(run.gate_rule)
    choose_parents(run, step, [members[parent.version]], PARETO, said, members, **read)
    return parent


async def mutate(
    run: Run, state: State, pool: Pool, step: Step, draws: Draws
) -> tuple[State, Pool]:
    """Change a member of the front after a minibatch, and keep what is better on it."""
    parent = draw_parent(run, pool, step, draws)
    state, rollouts, seen = await roll_out(
        run, state, step, parent.text, run.params.methods.gepa.minibatch
    )
    values = [run.gate_rule.value(rollout.score) for rollout in rollouts]
    record = first_record(step, [])
    if all(value == 1 for value in values):
        after = end_step(run, state, record, "no item of the minibatch failed")
        return after, grown(pool, state, after, (parent.version,))
    tried = await propose(run, state, parent, step, seen)
    if tried is None or (why := unusable(pool, tried)):
        why = "nobody proposed an edit" if tried is None else why
        after = end_step(run, state, record if tried is None else tried.record, why)
        return after, grown(pool, state, after, (parent.version,))
    after = await keep(run, state, parent, step, tried, rollouts)
    return after, grown(pool, state, after, (parent.version,))


def unusable(pool: Pool, tried: CandidateTried) -> str:
    """Return why a candidate goes no further, "" where it does."""
    if not tried.built.usable:
        return tried.built.reason
    same = [one.version for one in pool if one.text == tried.built.candidate.text]
    return f"the same text as v{same[0]}" if same else ""


async def propose(
    run: Run, state: State, parent: Known, step: Step, seen: tuple[Observation, ...]
) -> CandidateTried | None:
    """Reflect on the minibatch; return the candidate of all that was proposed, or None."""
    view = replace(
        view_of(run, state, step, None, seen),
        skill=parent.text,
        history=parent.history,
        update_mode="patch",
    )
    patches = await reflect(run, view)
    whole = await aggregate(run, view, patches)
    if whole is None or not whole.edits:
        return None
    return await select_all(run, state, step, parent.text, whole, patches)


async def keep(
    run: Run,
    state: State,
    parent: Known,
    step: Step,
    tried: CandidateTried,
    before: list[Rollout],
) -> State:
    """Let the minibatch judge a candidate; one that it lets through is measured in full."""
    text = tried.built.candidate.text
    gate, record = await judge_minibatch(run, step, tried, parent.text, before)
    if record.verdict != "accepted":
        return end_step(run, state, record, "")
    rollouts = await run.rollouts.all(run.selection, text, run.params.gate.repeats)
    run.tell(scored(rollouts, text, Purpose.SELECTION, **step.where))
    state = run.follow(state)
    record_version(run, state, tried.built, gate)
    return end_step(run, run.follow(state), record, "")


def mergeable(
    run: Run, pool: Pool, merged: set[tuple[int, int]], draws: Draws, step: int
) -> tuple[int, int] | None:
    """Draw a pair of the front that may be merged, the better one first; None of none."""
    front = sorted(lots([values_of(run.gate_rule, one.scores) for one in pool]))
    pairs = {
        f"{a} {b}": (a, b)
        for a, b in combinations(front, 2)
        if (a, b) not in merged and (b, a) not in merged
        if a not in ancestors(pool, b) and b not in ancestors(pool, a)
    }
    if not pairs:
        return None
    a, b = pairs[draws.order(list(pairs), step, "merge")[0]]
    means = [run.gate_rule.mean(pool[at].scores) for at in (a, b)]
    assert means[0] is not None
    assert means[1] is not None
    return (a, b) if means[0] >= means[1] else (b, a)


async def merge(
    run: Run, state: State, pool: Pool, step: Step, pair: tuple[int, int]
) -> tuple[State, Pool]:
    """Carry what the second of a pair changed over to the first; the gate judges the result."""
    first, second = pool[pair[0]], pool[pair[1]]
    shared = max(ancestors(pool, first.version) & ancestors(pool, second.version))
    members = [one.member(run.gate_rule) for one in (first, second)]
    read = consumed(run.gate_rule)
    choose_parents(run, step, members, MERGE, f"both made of v{shared}", **read)
    said = f"what v{second.version} changed since v{shared}"
    edits = changes(pool[shared].text, second.text, first.text, said)
    patch = Patch("success", (), tuple(edits), said)
    tried = await build(run, state, step, first.text, patch)
    if why := unusable(pool, tried):
        after = end_step(run, state, tried.record, why)
        return after, grown(pool, state, after, pair)
    against = (first.text, first.scores)
    after, record = await evaluate_candidate(
        run, state, tried.built, tried.record, against=against
    )
    after = end_step(run, after, record, "")
    return after, grown(pool, state, after, pair)

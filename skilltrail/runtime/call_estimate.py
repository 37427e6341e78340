"""How many calls a run makes, at least, likely and at most: known from its params before any
is made.

At most: every question is put twice (a reply that cannot be used is asked for once more), and
one about trajectories with ever less of them where a context cannot hold them. A call that is
made again after a failure of the line is in none of these numbers. At least: what is recorded
costs nothing, and a candidate is rejected early. Likely: every question once, and gates that
stop where those of the shipped reference run did (five gates, 204 of 300 rollouts).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from skilltrail.params.fields import Params
from skilltrail.params.methods import reads

_JUDGED_SHARE = 2 / 3
_ASKED_TWICE = 2
_SHRUNK = 3 + _ASKED_TWICE  # see `SHRINKS` of the optimizer `llm`


@dataclass(frozen=True)
class Size:
    """Items of the three splits, after limits."""

    train: int
    selection: int
    test: int


class Calls(NamedTuple):
    """How often a phase calls a role; of a target, and of those transferred to, rollouts."""

    phase: str
    role: str
    fewest: int
    likely: int
    most: int


def steps_of(params: Params, train: int) -> int:
    """Return the number of steps of a run over `train` items, at most."""
    own = params.methods
    if params.method == "bootstrap":
        return 2 + own.bootstrap.candidates
    if params.method == "gepa":
        return params.epochs * math.ceil(train / own.gepa.minibatch) + own.gepa.merges
    if params.method == "random_search":
        return own.random_search.candidates
    if params.method == "mipro":
        asked = own.mipro
        fulls = asked.trials // asked.full_every + 1
        return asked.sets + asked.proposals - 2 + asked.trials + fulls
    if params.method == "opro":
        return own.opro.rounds * own.opro.proposals
    if params.method == "promptbreeder":
        size, generations = own.promptbreeder.population, own.promptbreeder.generations
        return size + generations * (size // 2)
    if params.method == "textgrad":
        return params.epochs * math.ceil(train / own.textgrad.batch)
    return params.epochs * math.ceil(train / (params.batch_size * params.accumulation))


def call_ranges(params: Params, size: Size) -> list[Calls]:
    """Return the calls of every phase."""
    rows = [*_rollouts(params, size), *_evaluations(params, size)]
    if params.judge.backend != "none":
        rows += _judgements(rows)
    if params.optimizer.backend != "rules":
        rows += _questions(params, size)
    return [row for row in rows if row.most]


def _rollouts(params: Params, size: Size) -> list[Calls]:
    """Return the rollouts of training by phase; together no more than `stop.calls`."""
    by_loop = params.method == "skillopt"
    rows = _of_the_loop(params, size) if by_loop else _of_a_rival(params, size)
    if params.panel:
        return _on_each(params, rows, size)
    left, capped = params.stop.calls, []
    for row in rows if left else ():
        ends = [min(count, left) for count in row[2:]]
        capped.append(Calls(row.phase, row.role, *ends))
        left -= ends[2]
    return capped if params.stop.calls else rows


def _on_each(params: Params, rows: Sequence[Calls], size: Size) -> list[Calls]:
    """Return the rows of several targets: each does all selection items, and train items in
    turn. How `stop.calls` is shared among them, nobody knows before."""
    several = len(params.panel)
    limit = params.stop.calls if params.stop.calls else sum(row.most for row in rows) + 1
    found = []
    for row in rows:
        ends = list(row[2:])
        if row.phase in ("train rollouts", "comparison"):
            both = 1 if row.phase == "train rollouts" else 2  # skills that do each item
            share = params.epochs * both * math.ceil(size.train / several)
            likely, most = math.ceil(row.likely / several), min(row.most, share)
            ends = [row.fewest // several if row.fewest == size.train else 0, likely, most]
        found += [
            Calls(row.phase, role, *(min(count, limit) for count in ends))
            for role in params.target_roles
        ]
    return found


def _of_a_rival(params: Params, size: Size) -> list[Calls]:
    gate, batches, again, shown = size.selection * params.gate.repeats, 0, 0, 0
    steps, own, fitness = steps_of(params, size.train), params.methods, 0
    if params.method == "bootstrap" and params.methods.bootstrap.max_bootstrapped:
        shown = size.train
    elif params.method == "gepa":
        batches = again = params.epochs * size.train
    elif params.method == "mipro":
        shown = size.train if own.mipro.max_bootstrapped else 0
        fitness = own.mipro.trials * min(size.selection, own.mipro.minibatch)
        steps = own.mipro.trials // own.mipro.full_every + 1  # that come to the gate
    elif params.method == "textgrad":
        batches = params.epochs * size.train
    elif params.method in ("opro", "promptbreeder"):
        fitness = (1 + steps) * min(size.train, getattr(own, params.method).sample)
    return [
        Calls("baseline", "target", gate, gate, gate),
        Calls("train rollouts", "target", 0, batches, batches),
        Calls("minibatches again", "target", 0, again, again),
        Calls("fitness", "target", 0, fitness, fitness),
        Calls("demonstrations", "target", 0, shown, shown),
        _gates("gate", steps, gate),
    ]


def _of_the_loop(params: Params, size: Size) -> list[Calls]:
    steps, gate = steps_of(params, size.train), size.selection * params.gate.repeats
    boundaries = params.epochs - 1
    all_train = size.train * params.epochs
    sure = _sure_steps(params, size.train) * params.batch_size * params.accumulation
    least = min(size.train, sure)
    compared, extra = 2 * min(params.slow_update.samples, size.train), 0
    if params.slow_update.pairs == "changed":
        extra = min(params.slow_update.max_extra, 2 * size.train - compared)
    rows = [
        Calls("baseline", "target", gate, gate, gate),
        Calls("train rollouts", "target", least, all_train, all_train),
        _gates("gate", steps, gate),
    ]
    if params.has_slow_update or params.has_meta_skill:
        most = boundaries * (compared + extra)
        rows.append(Calls("comparison", "target", 0, boundaries * compared, most))
    if params.has_slow_update:
        rows.append(_gates("slow update", boundaries, gate))
    if params.compaction:
        rows.append(_gates("compaction", params.epochs, gate))
    return rows


def _sure_steps(params: Params, train: int) -> int:
    """Return how many steps of the loop there are at least: a gate may give the full score, or
    nothing for so long that patience ends, and `stop.calls` may end the first."""
    if params.stop.calls:
        return 0
    steps = steps_of(params, train)
    if params.use_gate:
        return 1
    return min(steps, params.patience) if params.patience else steps


def _gates(phase: str, count: int, rollouts: int) -> Calls:
    return Calls(
        phase, "target", 0, count * math.ceil(rollouts * _JUDGED_SHARE), count * rollouts
    )


def _evaluations(params: Params, size: Size) -> list[Calls]:
    asked, sizes = params.evaluate, vars(size)
    if not asked.enabled:
        return []
    items = sum(sizes.values()) if asked.split == "all" else sizes[asked.split]
    fresh = size.test if asked.split in ("test", "all") else 0  # others may be recorded
    named = len(asked.skills)
    # Seed, best and last may be one text, and best and last mostly are.
    low, likely, high = (min(named, 1), named, named) if named else (1, 2, 3)
    at_home = [
        Calls("evaluate", role, low * fresh, likely * items, high * items)
        for role in params.target_roles
    ]
    elsewhere = [
        Calls("evaluate", transfer_role(name), low * items, likely * items, high * items)
        for name in asked.roles
    ]
    return [*at_home, *elsewhere]


def transfer_role(name: str) -> str:
    """Return what messages call a role of `evaluate.targets`."""
    return f"evaluate.targets.{name}"


def _judgements(rollouts: list[Calls]) -> list[Calls]:
    """Return the judge's part of each phase: none where rules score all of it. Equal answers
    to an item are judged once."""
    likely: dict[str, int] = {}
    most: dict[str, int] = {}
    for row in rollouts:
        likely[row.phase] = likely.get(row.phase, 0) + row.likely
        most[row.phase] = most.get(row.phase, 0) + _ASKED_TWICE * row.most
    return [Calls(phase, "judge", 0, likely[phase], most[phase]) for phase in most]


def _questions(params: Params, size: Size) -> list[Calls]:
    if not reads(params.method, "optimizer"):
        return []
    if params.method != "skillopt":
        return _questions_of_a_rival(params, size)
    steps, boundaries = steps_of(params, size.train), params.epochs - 1
    pooled = min(size.train, params.batch_size * params.accumulation)
    groups = [pooled]
    if params.reflect.per_batch:
        starts = range(0, pooled, params.batch_size)
        groups = [min(params.batch_size, pooled - at) for at in starts]
    analysts = sum(math.ceil(group / params.reflect.minibatch_size) for group in groups)
    if params.reflect.success != "never":
        # both sides may have a minibatch that is not full
        analysts += sum(group > 1 for group in groups)
    merges = 1 + max(
        _merges(failed, params.merge_batch_size)
        + _merges(analysts - failed, params.merge_batch_size)
        for failed in range(analysts + 1)
    )
    mode, schedule = params.update_mode, params.lr_schedule
    whole, rewritten = mode == "full_rewrite_minibatch", mode == "rewrite_from_suggestions"
    notes = params.skill_aware.enabled and params.skill_aware.consolidate_over > 0
    memories = max(0, params.epochs - params.meta_skill.from_epoch + 1)
    always = params.reflect.success == "always"
    sure = _sure_steps(params, size.train) if always else 0
    asked = (  # phase, fewest, how often, most calls of one question
        ("reflect", sure, steps * analysts, _SHRUNK),
        ("merge", 0, steps * merges, _ASKED_TWICE),
        ("budget", 0, steps * (schedule == "autonomous" and not whole), _ASKED_TWICE),
        ("rank", 0, steps * (schedule != "none" and not whole), _ASKED_TWICE),
        (
            "rewrite",
            0,
            steps * rewritten,
            _ASKED_TWICE,
        ),
        ("consolidate", 0, steps * notes, _ASKED_TWICE),
        ("slow update", 0, boundaries * params.has_slow_update, _SHRUNK),
        ("meta skill", 0, memories * params.has_meta_skill, _SHRUNK),
        ("compaction", 0, params.epochs * params.compaction, _ASKED_TWICE),
    )
    return [
        Calls(phase, "optimizer", fewest, times, each * times)
        for phase, fewest, times, each in asked
    ]


def _questions_of_a_rival(params: Params, size: Size) -> list[Calls]:
    """Return those of a method that asks: for texts and documents, or, as GEPA does, an analyst
    of each side a minibatch and their merge."""
    steps, own = steps_of(params, size.train), params.methods
    if params.method == "textgrad":
        asked = steps * (1 + own.textgrad.batch)
        return [Calls("compose", "optimizer", 0, asked, _SHRUNK * asked)]
    if params.method == "mipro":
        asked = own.mipro.proposals
        return [Calls("compose", "optimizer", 0, asked, _SHRUNK * asked)]
    if params.method == "opro":
        return [Calls("compose", "optimizer", steps, steps, _SHRUNK * steps)]
    if params.method == "promptbreeder":
        return [Calls("compose", "optimizer", 0, steps, _SHRUNK * 2 * steps)]
    steps = params.epochs * math.ceil(size.train / params.methods.gepa.minibatch)
    each = math.ceil(params.methods.gepa.minibatch / params.reflect.minibatch_size)
    analysts = each + (params.reflect.success != "never")
    merges = 1 + 2 * _merges(analysts, params.merge_batch_size)
    return [
        Calls("reflect", "optimizer", 0, steps * analysts, _SHRUNK * steps * analysts),
        Calls("merge", "optimizer", 0, steps * merges, _ASKED_TWICE * steps * merges),
    ]


def _merges(patches: int, size: int) -> int:
    """Return how many groups are merged until of so many patches one is left."""
    groups = 0
    while patches > 1:
        patches = math.ceil(patches / size)
        groups += patches
    return groups


def most_rollouts(params: Params, size: Size) -> int:
    """Return how many rollouts of the target a training makes at most."""
    return sum(row.most for row in _rollouts(params, size))

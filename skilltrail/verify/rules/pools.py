"""Checks on what methods with a pool decide: which documents a step works on."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import to_builtins
from msgspec.structs import replace

from skilltrail.history.log.events import Event
from skilltrail.history.log.run_state import RunState
from skilltrail.history.log.types.proposals import ParentsChosen
from skilltrail.methods.draws import Draws
from skilltrail.methods.gepa import MERGE, PARETO
from skilltrail.methods.opro import RANKED
from skilltrail.methods.pareto import lots, values_of
from skilltrail.methods.promptbreeder import CROSSOVER, TOURNAMENT
from skilltrail.methods.textgrad import NEWEST
from skilltrail.methods.tpe import FAMILY
from skilltrail.verify.result import Fault, Tags, differing
from skilltrail.verify.rules.settings import rule_of

SEED = "seed/1"  # every candidate is made of the seed


def check_parents(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """The parents are of the pool, with their scores, and those that the rule chooses.

    That each is a document of this log, rebuilding it tells. Which pair is merged, the loop run
    again tells.
    """
    said, start = event.read(ParentsChosen), state.start
    parents = [member.digest for member in said.parents]
    known = (SEED, NEWEST, PARETO, MERGE, RANKED, TOURNAMENT, CROSSOVER)
    searched = said.rule.startswith(FAMILY)  # the loop run again searches again
    if searched or not tags.knows(said.rule, *known) or start is None:
        return
    if said.rule in (SEED, NEWEST):
        right = start.seed_skill.digest if said.rule == SEED else state.digest
        if parents != [right]:
            yield Fault.of(event, "parents", parents, [right])
    elif said.rule == PARETO:
        yield from _check_draw(event, said, state, Draws(start.seed))
    elif said.rule in (RANKED, TOURNAMENT, CROSSOVER):
        yield from _check_fittest(event, said, state, Draws(start.seed))


def _check_draw(
    event: Event, said: ParentsChosen, state: RunState, draws: Draws
) -> Iterator[Fault]:
    """The pool's members have the lots that their scores give, and the draw is the seed's."""
    rule, pool = rule_of(said, state), said.pool or ()
    if [member.digest for member in pool] != list(state.measured):
        right = f"the {len(state.measured)} versions so far"
        yield Fault.of(event, "pool", len(pool), right)
        return
    weights = lots([values_of(rule, scores) for scores in state.measured.values()])
    told = {at: member.weight for at, member in enumerate(pool) if member.weight is not None}
    if told != weights:
        yield Fault.of(event, "lots", told, weights)
        return
    at = draws.weighted(list(weights.values()), said.step, "parent")
    yield from differing(event, {"parents": [to_builtins(pool[list(weights)[at]])]})


def _check_fittest(
    event: Event, said: ParentsChosen, state: RunState, draws: Draws
) -> Iterator[Fault]:
    """The pool's members have the fitness that was measured, and the right one was chosen.

    Who is in the pool, and who meets whom, the loop run again tells.
    """
    rule, pool = rule_of(said, state), said.pool or ()
    scores: list[float] = []
    for member in pool:
        mean = rule.mean(state.fitness.get(member.digest, {}))
        scores.append(0.0 if mean is None else float(mean))
        if member.score != scores[-1]:
            yield Fault.of(event, "fitness", member.score, scores[-1])
            return
    if said.rule == RANKED:
        if scores != sorted(scores):
            yield Fault.of(event, "pool", scores, sorted(scores))
        chosen = len(pool) - 1
    elif said.rule == TOURNAMENT:
        chosen = scores.index(max(scores))
    else:
        chosen = draws.weighted(
            [0 if one.weight is None else one.weight for one in pool], said.step, "other"
        )
    right = to_builtins(replace(pool[chosen], weight=None))
    yield from differing(event, {"parents": [right]})

"""Checks on what methods with a pool decide: which documents a step works on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skilltrail.history.log.events import Event
from skilltrail.history.log.run_state import RunState
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
    data = event.data
    parents = [member["digest"] for member in data["parents"]]
    known = (SEED, NEWEST, PARETO, MERGE, RANKED, TOURNAMENT, CROSSOVER)
    searched = data["rule"].startswith(FAMILY)  # the loop run again searches again
    if searched or not tags.knows(data["rule"], *known) or not state.start:
        return
    if data["rule"] == SEED:
        seed = state.start["seed_skill"]["digest"]
        if parents != [seed]:
            yield Fault.of(event, "parents", parents, [seed])
    elif data["rule"] == NEWEST:
        if parents != [state.digest]:
            yield Fault.of(event, "parents", parents, [state.digest])
    elif data["rule"] == PARETO:
        yield from _check_draw(event, state)
    elif data["rule"] in (RANKED, TOURNAMENT, CROSSOVER):
        yield from _check_fittest(event, state)


def _check_draw(event: Event, state: RunState) -> Iterator[Fault]:
    """The pool's members have the lots that their scores give, and the draw is the seed's."""
    data, rule = event.data, rule_of(event.data, state)
    pool = data.get("pool", [])
    if [member["digest"] for member in pool] != list(state.measured):
        right = f"the {len(state.measured)} versions so far"
        yield Fault.of(event, "pool", len(pool), right)
        return
    weights = lots([values_of(rule, scores) for scores in state.measured.values()])
    told = {at: m["weight"] for at, m in enumerate(pool) if "weight" in m}
    if told != weights:
        yield Fault.of(event, "lots", told, weights)
        return
    draws, places = Draws(state.start["seed"]), list(weights)
    drawn = places[draws.weighted(list(weights.values()), data["step"], "parent")]
    yield from differing(event, {"parents": [pool[drawn]]})


def _check_fittest(event: Event, state: RunState) -> Iterator[Fault]:
    """The pool's members have the fitness that was measured, and the right one was chosen.

    Who is in the pool, and who meets whom, the loop run again tells.
    """
    data, rule = event.data, rule_of(event.data, state)
    pool = data.get("pool", [])
    for member in pool:
        mean = rule.mean(state.fitness.get(member["digest"], {}))
        right = 0.0 if mean is None else float(mean)
        if member.get("score") != right:
            yield Fault.of(event, "fitness", member.get("score"), right)
            return
    scores = [member["score"] for member in pool]
    if data["rule"] == RANKED:
        if scores != sorted(scores):
            yield Fault.of(event, "pool", scores, sorted(scores))
        chosen = len(pool) - 1
    elif data["rule"] == TOURNAMENT:
        chosen = scores.index(max(scores))
    else:
        lots = [member["weight"] for member in pool]
        draws = Draws(state.start["seed"])
        chosen = draws.weighted(lots, data["step"], "other")
    yield from differing(event, {"parents": [_unweighted(pool[chosen])]})


def _unweighted(member: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in member.items() if name != "weight"}

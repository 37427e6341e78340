"""Checks on what methods with a pool decide: which documents a step works on."""

from __future__ import annotations

from collections.abc import Iterator

from skilltrail.history.log.events import Event
from skilltrail.history.log.run_state import RunState
from skilltrail.verify.result import Fault, Tags

SEED = "seed/1"  # every candidate is made of the seed


def check_parents(event: Event, state: RunState, tags: Tags) -> Iterator[Fault]:
    """The parents are of the pool, and those that the rule chooses.

    That each is a document of this log, rebuilding it tells.
    """
    data = event.data
    parents = [member["digest"] for member in data["parents"]]
    if not tags.knows(data["rule"], SEED):
        return
    if data["rule"] == SEED and state.start:
        seed = state.start["seed_skill"]["digest"]
        if parents != [seed]:
            yield Fault.of(event, "parents", parents, [seed])

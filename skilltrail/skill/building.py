"""Candidates built in a child process where what they are built of is bulk (`core.child`).

Finding places, applying and comparing take time that grows with document and edits: the child
keeps other work and Ctrl-C going, and is held to a deadline.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable

from skilltrail.core.child import Child, TimeUp, off_the_loop
from skilltrail.core.errors import SkilltrailError
from skilltrail.skill.candidate import Candidate

_BULK_BYTES = 30_000  # of a document and its edits: some hundredths of a second
_CHILD = Child("skilltrail.skill.building", cpu_s=60)


async def built(make: Callable[[], Candidate], name: str) -> Candidate:
    """Return what `make` (which can be pickled) comes to; its diff and faults are worked out.

    Raises:
        SkilltrailError: it takes longer than allowed; `name` says which candidate it is.
    """
    asked = pickle.dumps(make)
    if len(asked) <= _BULK_BYTES:
        return worked_out(make())
    try:
        said = await off_the_loop(_CHILD.stop, _CHILD.call, asked)
    except TimeUp as error:
        remedy = "Set max_skill_tokens, or a lower optimizer.max_tokens, and run again"
        raise SkilltrailError(f"Building {name}", str(error), remedy) from error
    found: Candidate = pickle.loads(said)
    return found


def answer(request: bytes) -> bytes:
    """Return what the child is asked for."""
    return pickle.dumps(worked_out(pickle.loads(request)()))


def worked_out(candidate: Candidate) -> Candidate:
    """Return the candidate; what is kept of it once it was asked for is kept now."""
    _ = candidate.diff, candidate.faults
    return candidate

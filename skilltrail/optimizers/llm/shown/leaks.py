"""Whether an answer came out of the document instead of the task. Pure."""

from __future__ import annotations

import re

from skilltrail.core.canon import texts_in
from skilltrail.optimizers.protocol import Observation

LEAKED_NOTE = "this answer stands in the document and not in the task (`leaked`)"
_LEAST_CHARS = 3


def leaks(seen: Observation, skill: str) -> bool:
    """Return whether a failed run's answer stands in `skill` and in no text of the task."""
    answer = " ".join(seen.trajectory.answer.split()).casefold().strip(" .")
    if len(answer) < _LEAST_CHARS or seen.score.hard is None or seen.score.hard >= 1:
        return False
    whole = re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)")
    if not whole.search(" ".join(skill.split()).casefold()):
        return False
    return not any(answer in " ".join(t.split()).casefold() for t in texts_in(seen.item.input))

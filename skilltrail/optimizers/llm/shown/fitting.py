"""Runs made to fit a question: whole where they fit, else cut to one length. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from skilltrail.optimizers.llm.options import LlmOptions
from skilltrail.optimizers.llm.shown.room import LEAST_CHARS, level, room_chars
from skilltrail.optimizers.llm.shown.runs import Shown

T = TypeVar("T")
_FENCE_CHARS = 80  # of the lines around a run
Show = Callable[[T, Sequence[str], int | None], Shown]


def fitted(
    options: LlmOptions, stage: str, fixed: str, runs: Sequence[T], show: Show[T], shrink: int
) -> tuple[list[Shown], int | None]:
    """Return the runs as text, and the length that longer ones were cut to (None = none was).

    Args:
        stage: whose reply limit counts.
        fixed: what the question says besides.
        shrink: how often a model refused the question as too long: each time half is left.
    """
    room = room_chars(options.context_tokens, options.max_tokens_of(stage), fixed)
    whole = [show(run, options.show, None) for run in runs]
    lengths = [len(one.text) + _FENCE_CHARS for one in whole]
    limit = level(lengths, room)
    if options.trajectory_chars is not None:
        own = options.trajectory_chars
        limit = own if limit is None else min(limit, own)
    if shrink:
        longest = max(lengths, default=LEAST_CHARS)
        limit = max(LEAST_CHARS, (longest if limit is None else limit) >> shrink)
    if limit is None or max(lengths, default=0) <= limit:
        return whole, None
    return [
        one if len(one.text) <= limit else show(run, options.show, limit)
        for one, run in zip(whole, runs, strict=True)
    ], limit

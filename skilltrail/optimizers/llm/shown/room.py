"""How much of each run a request can hold. Pure.

The context is what params state (`optimizer.context_tokens`). What the prompt says anyway and
room for the reply come off; the rest is shared among the runs so that short ones stay whole and
long ones are cut to one length. Tokens are counted by the fixed offline counter, which is a
little short for some models: a margin is kept, and a request that a model refuses all the same
is asked again with half as much.
"""

from __future__ import annotations

from collections.abc import Sequence

from skilltrail.core.tokens import count_tokens

CHARS_PER_TOKEN = 3
LEAST_CHARS = 200
MARGIN = 0.85
_REPLY_TOKENS = 4096
_REPLY_SHARE = 4  # the most of the context that is kept for a reply where params name no limit


def reply_tokens(context_tokens: int, max_tokens: int | None) -> int:
    """Return how many tokens are kept for the reply."""
    most = context_tokens // _REPLY_SHARE
    return min(_REPLY_TOKENS, most) if max_tokens is None else min(max_tokens, 2 * most)


def request_tokens(context_tokens: int, max_tokens: int | None) -> int:
    """Return how many tokens of the offline counter a request may have."""
    return int((context_tokens - reply_tokens(context_tokens, max_tokens)) * MARGIN)


def room_chars(context_tokens: int, max_tokens: int | None, fixed: str) -> int:
    """Return how many characters of runs fit beside `fixed`, at least 0."""
    left = request_tokens(context_tokens, max_tokens) - count_tokens(fixed)
    return max(0, left * CHARS_PER_TOKEN)


def level(lengths: Sequence[int], total: int) -> int | None:
    """Return the length that longer texts are cut to so that all fit into `total`.

    None when all fit whole; never below `LEAST_CHARS`.
    """
    if sum(lengths) <= total:
        return None
    left, ordered = total, sorted(lengths)
    for at, length in enumerate(ordered):
        share = left // (len(ordered) - at)
        if length > share:
            return max(share, LEAST_CHARS)
        left -= length
    return None

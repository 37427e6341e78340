"""The official score of OfficeQA: 1 when a direct answer holds the expected value, else 0.

Source: the publisher's `reward.py` (Apache 2.0), as its behaviour is published; the code here
is our own, and agrees with it on the vectors of `tests/vectors`. A direct answer is one line of
at most 250 characters with exactly as many numbers as the expected one; years mentioned beside
it do not count. A gold that lists plain numbers in square brackets wants them in order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from skilltrail.envs.kit.answers import tagged
from skilltrail.envs.kit.numbers import (
    Number,
    agrees,
    entry_value,
    is_year,
    numbers_in,
    spaced,
    words_in,
)

MAX_CHARS = 250
_MARKUP = re.compile(r"<[^>]*>")
_LIST = re.compile(r"\[([^\[\]]+)\]")


def score_answer(gold: str, predicted: str, tolerance: float = 0.0) -> float:
    """Return 1.0 or 0.0.

    Args:
        gold: the expected answer.
        predicted: the reply; the last closed `<FINAL_ANSWER>` pair counts, else all of it.
        tolerance: largest error allowed, as a share of the expected number, in [0, 1].
    """
    inside = tagged(predicted, "FINAL_ANSWER")
    said = predicted if inside is None else inside
    return float(fault(gold, said) is None and _holds(gold, said, tolerance))


def fault(gold: str, said: str) -> str | None:
    """Return why `said` is no direct answer, as one word, or None when it is one."""
    said = said.strip()
    if not said or "unable to determine" in said.lower():
        return "empty"
    if sum(bool(line.strip()) for line in said.splitlines()) > 1 or len(said) > MAX_CHARS:
        return "verbose"
    wanted, found = numbers_in(gold), numbers_in(said)
    if not wanted:
        return "wrong_form" if found else None
    surplus = len(_direct(gold, wanted, found)) - len(wanted)
    if surplus and not (_is_list(gold, wanted) and _segments(said, [None] * len(wanted), 0.0)):
        return "verbose" if surplus > 0 else "wrong_form"
    return "markup" if _MARKUP.search(said) else None


def bare_text(text: str) -> str:
    """Return a text answer as it is compared: lower case, outer quotes and (…) removed."""
    bare = text.strip().lower().strip('"').strip("'")
    return " ".join(re.sub(r"\([^)]*\)", "", bare).split())


def _holds(gold: str, said: str, tolerance: float) -> bool:
    """Return whether a direct answer holds the gold's value."""
    wanted, found = numbers_in(gold), numbers_in(said)
    if not wanted:
        return bare_text(gold) == bare_text(said)
    if _is_list(gold, wanted):
        pairs = list(zip(wanted, _direct(gold, wanted, found), strict=False))
        in_order = len(pairs) == len(wanted) and all(agrees(g, f, tolerance) for g, f in pairs)
        return _segments(said, wanted, tolerance) or in_order
    found = _direct(gold, wanted, found, is_strict=len(wanted) == 1)
    each = all(any(agrees(one, other, tolerance) for other in found) for one in wanted)
    return each and _words_agree(gold, said)


def _direct(
    gold: str, wanted: list[Number], found: list[Number], *, is_strict: bool = True
) -> list[Number]:
    """Return `found` without years, unless the gold is one, or one number among words."""
    meant = any(is_year(one.value) for one in wanted)
    if meant or (is_strict and len(wanted) == 1 and words_in(gold)):
        return found
    return [one for one in found if not is_year(one.value)]


def _words_agree(gold: str, said: str) -> bool:
    """Return whether the gold's words (a month, say) stand in `said`, or are all it says."""
    wanted, found = words_in(gold), words_in(said)
    return not wanted or (bool(found) and (wanted in found or found in wanted))


def _is_list(gold: str, wanted: list[Number]) -> bool:
    """Return whether the gold is one list of plain numbers in square brackets."""
    values = [Number(one.value) for one in wanted]
    return _body(gold) is not None and len(wanted) > 1 and _segments(gold, values, 0.0)


def _body(text: str) -> str | None:
    """Return what stands in the only square brackets, or None: no digit stands outside."""
    plain = spaced(text)
    found = _LIST.findall(plain)
    outside = _LIST.sub("", plain, count=1)
    return found[0] if len(found) == 1 and not re.search(r"\d", outside) else None


def _segments(text: str, wanted: Sequence[Number | None], tolerance: float) -> bool:
    """Return whether `text` can be cut at its commas into these numbers, in order.

    `8,152,260` may be cut as the gold `[8, 152260]` needs it. None stands for any number.
    """
    if len(wanted) < 2:
        return False
    body = _body(text)
    pieces = (spaced(text) if body is None else body).split(",")
    ends = {0}
    for one in wanted:
        ends = {
            stop
            for start in ends
            for stop in range(start + 1, len(pieces) + 1)
            if (value := entry_value(",".join(pieces[start:stop]))) is not None
            and (one is None or agrees(one, Number(value), tolerance))
        }
    return len(pieces) in ends

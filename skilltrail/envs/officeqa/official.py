"""The official score of OfficeQA: 1 when a direct answer holds the expected value, else 0.

Source: the publisher's `reward.py` (Apache 2.0), as its behaviour is published; the code here
is our own. A direct answer is one line of at most 250 characters with exactly as many numbers
as the expected one; years mentioned beside it do not count. Lists in square brackets must agree
in length and order.
"""

from __future__ import annotations

import re

from skilltrail.envs.kit.answers import tagged
from skilltrail.envs.kit.numbers import Number, agrees, is_year, numbers_in, words_in

MAX_CHARS = 250
_MARKUP = re.compile(r"</?[A-Za-z][^<>]*>")
_LIST = re.compile(r"\[(.*)\]", re.DOTALL)


def score_answer(gold: str, predicted: str, tolerance: float = 0.0) -> float:
    """Return 1.0 or 0.0.

    Args:
        gold: the expected answer.
        predicted: the reply; the last closed `<FINAL_ANSWER>` pair counts, else all of it.
        tolerance: largest error allowed, as a share of the expected number, in [0, 1].
    """
    inside = tagged(predicted, "FINAL_ANSWER")
    said = (predicted if inside is None else inside).strip()
    if fault(gold, said) is not None:
        return 0.0
    listed = _LIST.fullmatch(gold.strip())
    if listed is not None:
        return float(_lists_agree(_entries(listed[1]), said, tolerance))
    wanted = numbers_in(gold)
    if not wanted:
        return float(bare_text(gold) == bare_text(said))
    found = _without_years(gold, wanted, said)
    each = all(any(agrees(one, other, tolerance) for other in found) for one in wanted)
    return float(each and _words_agree(gold, said))


def fault(gold: str, said: str) -> str | None:
    """Return why `said` is no direct answer, as one word, or None when it is one."""
    if not said or "unable to determine" in said.lower():
        return "empty"
    if sum(bool(line.strip()) for line in said.splitlines()) > 1:
        return "verbose"
    if len(said) > MAX_CHARS:
        return "verbose"
    if _MARKUP.search(said):
        return "markup"
    if _LIST.fullmatch(gold.strip()):
        return None
    wanted = numbers_in(gold)
    if not wanted:
        return "wrong_form" if numbers_in(said) else None
    found = _without_years(gold, wanted, said)
    if len(found) != len(wanted):
        return "verbose" if len(found) > len(wanted) else "wrong_form"
    return None


def bare_text(text: str) -> str:
    """Return a text answer as it is compared: lower case, outer quotes and (…) removed."""
    bare = re.sub(r"\([^)]*\)", " ", text.strip().lower().strip("\"'"))
    return " ".join(bare.split())


def _without_years(gold: str, wanted: list[Number], said: str) -> list[Number]:
    """Return the numbers of `said`, years left out unless the gold is about years or words."""
    found = numbers_in(said)
    if words_in(gold) or any(is_year(one.value) for one in wanted):
        return found
    return [one for one in found if not is_year(one.value)]


def _words_agree(gold: str, said: str) -> bool:
    """Return whether the gold's words (a month, say) stand in `said`, or are all it says."""
    wanted, found = words_in(gold), words_in(said)
    return not wanted or (bool(found) and (wanted in found or found in wanted))


def _entries(inside: str) -> list[str]:
    """Return the entries of a list; where blanks follow commas, a bare comma parts no entry."""
    parts = re.split(r",\s+" if re.search(r",\s", inside) else ",", inside)
    return [part.strip() for part in parts if part.strip()]


def _lists_agree(wanted: list[str], said: str, tolerance: float) -> bool:
    """Return whether `said` lists the same entries in the same order.

    `8,152,260` may be cut as the gold `[8, 152260]` needs it: groups of three digits after a
    comma without a blank belong to the entry before or begin one of their own.
    """
    listed = _LIST.fullmatch(said)
    inside = said if listed is None else listed[1]
    pieces = [piece for piece in re.split(r"(?<=,)", inside) if piece.strip(" ,")]
    ends = {0}
    for entry in wanted:
        ends = {
            stop
            for start in ends
            for stop in range(start + 1, len(pieces) + 1)
            if _is_one(pieces[start:stop])
            and _entry_agrees(entry, "".join(pieces[start:stop]).strip(" ,"), tolerance)
        }
    return len(pieces) in ends and bool(wanted)


def _is_one(pieces: list[str]) -> bool:
    """Return whether pieces can be read as one entry: digits in groups of three."""
    return all(re.fullmatch(r"\d{3}(?:\.\d+)?\s*,?\s*", piece) for piece in pieces[1:])


def _entry_agrees(wanted: str, said: str, tolerance: float) -> bool:
    gold, found = numbers_in(wanted), numbers_in(said)
    if len(gold) != 1 or len(found) != 1:
        return bare_text(wanted.strip("'\"")) == bare_text(said.strip("'\""))
    return agrees(gold[0], found[0], tolerance) and _words_agree(wanted, said)

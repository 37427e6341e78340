"""How often the gate would take noise for progress: one skill compared with itself (A/A).

Two measurements of one skill differ by chance alone, so each item's pair may be swapped freely.
Every swapping is a comparison in which an acceptance is false; over many of them the share of
acceptances is the gate's false-accept rate on this split. Source: the argument of Fisher's
randomisation test (The Design of Experiments, 1935).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from skilltrail.core.score import Score
from skilltrail.history.log.types.parts import Verdict
from skilltrail.method.gate import GateRule, judge_all

COMPARISONS = 200


def false_accept_rate(
    rule: GateRule,
    ids: Sequence[str],
    one: Mapping[str, Score],
    two: Mapping[str, Score],
    comparisons: int = COMPARISONS,
) -> float:
    """Return the share of swappings of `one` and `two` that the gate accepts, in [0, 1].

    The swappings follow from their number and the ids, so the rate is the same every time.
    """
    accepted = 0
    for number in range(comparisons):
        swapped = {id for id in ids if _swaps(number, id)}
        before = {id: two[id] if id in swapped else one[id] for id in ids}
        after = {id: one[id] if id in swapped else two[id] for id in ids}
        accepted += judge_all(rule, ids, before, after).verdict is Verdict.ACCEPTED
    return accepted / comparisons


def _swaps(number: int, id: str) -> bool:
    return bool(hashlib.sha256(f"noise/1\n{number}\n{id}".encode()).digest()[0] & 1)

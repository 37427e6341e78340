"""ANLS, the score of DocVQA: 1 minus the normalised edit distance, 0 from a half on.

Source: Biten et al., "Scene Text Visual Question Answering" (2019), equation 1, as DocVQA's
evaluation uses it: threshold 0.5, capitals and white space folded, punctuation kept, lengths in
code points, the best gold counts.
"""

from __future__ import annotations

from collections.abc import Sequence

THRESHOLD = 0.5


def anls(prediction: str, golds: Sequence[str]) -> float:
    """Return the ANLS of one question in [0, 1]; without golds the empty answer is right."""
    said = folded(prediction)
    return max(_similarity(said, folded(gold)) for gold in (golds or [""]))


def folded(text: str) -> str:
    """Return `text` as it is compared: lower case, white space single and none at the ends."""
    return " ".join(text.lower().split())


def edit_distance(one: str, other: str) -> int:
    """Return Levenshtein's distance: fewest insertions, deletions and replacements."""
    if len(one) < len(other):
        one, other = other, one
    row = list(range(len(other) + 1))
    for i, sign in enumerate(one, start=1):
        diagonal, row[0] = row[0], i
        for j, wanted in enumerate(other, start=1):
            best = min(row[j] + 1, row[j - 1] + 1, diagonal + (sign != wanted))
            diagonal, row[j] = row[j], best
    return row[-1]


def _similarity(said: str, gold: str) -> float:
    longest = max(len(said), len(gold))
    if longest == 0:
        return 1.0
    # The distance is at least the difference of the lengths: a long reply costs no time.
    if abs(len(said) - len(gold)) / longest >= THRESHOLD:
        return 0.0
    distance = edit_distance(said, gold) / longest
    return 1.0 - distance if distance < THRESHOLD else 0.0

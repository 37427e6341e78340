"""ANLS, the score of DocVQA: 1 minus the normalised edit distance, 0 from a half on.

Source: Biten et al., "Scene Text Visual Question Answering" (2019), equation 1, as SkillOpt's
environment has it: threshold 0.5, capitals and white space folded, punctuation kept, lengths in
code points, the best gold counts. The competition's script (`script_anls`) differs twice: a
similarity of exactly 0.5 counts, and lengths are those of the answers before white space is
folded, in capitals.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

THRESHOLD = 0.5


def anls(prediction: str, golds: Sequence[str]) -> float:
    """Return the ANLS of one question in [0, 1]; without golds the empty answer is right."""
    said = folded(prediction)
    best = max(_similarity(said, folded(gold)) for gold in (golds if golds else [""]))
    return best if best > THRESHOLD else 0.0


def script_anls(prediction: str, golds: Sequence[str]) -> float:
    """Return the ANLS that the competition's script computes; without golds 0."""
    said, length = folded(prediction), len(prediction.upper())
    each = [_similarity(said, folded(g), max(len(g.upper()), length)) for g in golds]
    best = max(each, default=0.0)
    return best if best >= THRESHOLD else 0.0


def folded(text: str) -> str:
    """Return `text` as it is compared: lower case, white space single and none at the ends."""
    return " ".join(text.lower().split())


def edit_distance(one: str, other: str) -> int:
    """Return Levenshtein's distance: fewest insertions, deletions and replacements."""
    longer, shorter = sorted((one, other), key=len, reverse=True)
    signs = np.fromiter(map(ord, longer), np.int64, len(longer))
    steps = np.arange(len(longer) + 1)
    row = steps
    for i, sign in enumerate(shorter, start=1):
        kept = np.minimum(row[1:] + 1, row[:-1] + (signs != ord(sign)))
        # What is best with insertions: the smallest value so far, a step dearer each place.
        row = np.minimum.accumulate(np.concatenate(([i], kept)) - steps) + steps
    return int(row[-1])


def _similarity(said: str, gold: str, length: int | None = None) -> float:
    """Return 1 minus the distance as a share of `length` (of the longer text)."""
    length = max(len(said), len(gold)) if length is None else length
    if length == 0 or said == gold:
        return 1.0
    # The distance is at least the difference of the lengths: a long reply costs no time.
    least = abs(len(said) - len(gold)) / length
    return 0.0 if 1 - least < THRESHOLD else 1.0 - edit_distance(said, gold) / length

"""SQuAD v1.1 exact match and token F1: the scores of extractive question answering.

Source: the official `evaluate-v1.1.py` of SQuAD (Rajpurkar et al., 2016). Answers are compared
after `normalize`; the best of several golds counts. Kept as published: when nothing is left of
both texts after normalising, F1 is 0 (they share no token) while exact match is 1.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_KEPT, _LONGEST_KEPT_CHARS = 1024, 8000  # a text is asked for many times over


def normalize(text: str) -> str:
    """Return `text` in lower case, without ASCII punctuation, articles and double blanks.

    Punctuation is deleted with nothing in its place ("well-known" is one word); quotes and
    dashes beyond ASCII and accents stay.
    """
    known = len(text) <= _LONGEST_KEPT_CHARS
    return _normalized(text) if known else _normalized.__wrapped__(text)


@lru_cache(maxsize=_KEPT)
def _normalized(text: str) -> str:
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def tokens(text: str) -> list[str]:
    """Return the words of the normalised text, in order."""
    return normalize(text).split()


def exact_match(prediction: str, golds: Iterable[str]) -> float:
    """Return 1.0 when the normalised prediction equals any normalised gold, else 0.0."""
    found = normalize(prediction)
    return float(any(found == normalize(gold) for gold in golds))


def token_f1(prediction: str, golds: Iterable[str]) -> float:
    """Return the best F1 over bags of tokens, in [0, 1]."""
    found = Counter(tokens(prediction))
    return max((_f1(found, Counter(tokens(gold))) for gold in golds), default=0.0)


def _f1(found: Counter[str], gold: Counter[str]) -> float:
    common = (found & gold).total()
    if common == 0:
        return 0.0
    precision, recall = common / found.total(), common / gold.total()
    return 2 * precision * recall / (precision + recall)

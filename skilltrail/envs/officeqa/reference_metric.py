"""The metric of SkillOpt's own OfficeQA environment: exact match and token F1 after a clean-up.

It is *not* the official one: `$1,234.50` is not `1234.5`, and `543 million` is `543 billion`.
Kept under its own names so that published numbers can be compared.
"""

from __future__ import annotations

import re
import string
from collections import Counter

_DROPPED = str.maketrans("", "", "".join(set(string.punctuation) - set(".-%")))
_WORDS = re.compile(r"\b(?:millions?|billions?|dollars?|nominal)\b")


def normalize(text: str) -> str:
    """Return `text` in lower case without punctuation (but . - %) and without unit words."""
    return " ".join(_WORDS.sub(" ", text.lower().translate(_DROPPED)).split())


def reference_em(prediction: str, gold: str) -> float:
    """Return 1.0 when both texts are equal after `normalize`, else 0.0."""
    return float(normalize(prediction) == normalize(gold))


def reference_f1(prediction: str, gold: str) -> float:
    """Return the F1 over bags of tokens in [0, 1]; two empty texts agree."""
    said, wanted = (Counter(normalize(text).split()) for text in (prediction, gold))
    if not said or not wanted:
        return float(said == wanted)
    common = (said & wanted).total()
    return 2 * common / (said.total() + wanted.total())

"""Multiple choice: shuffling by seed and id, and reading a label out of an answer.

Source of the reading rule: SkillOpt's environment for LiveMathematicianBench. It is strict
(`(B)`, `**B**` and `Option B` name no label); `lenient_label` also reads those, and its scores
cannot be compared with published ones.
"""

from __future__ import annotations

import hashlib
import random
import re
import string
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

LABELS = string.ascii_uppercase
_WRAPPED = re.compile(r"\\boxed\{([^{}]*)\}")
_PHRASE = re.compile(r"\b(?:option|choice|answer|answer is)\W+([A-Z])\b", re.IGNORECASE)
_AROUND = "*$_`()[]{} .:\n\t"


def shuffled(values: Sequence[T], seed: int, id: str) -> list[T]:
    """Return `values` in an order fixed by seed and id.

    The generator is seeded with the first 16 hex digits of sha256("<seed>:<id>").
    """
    hashed = hashlib.sha256(f"{seed}:{id}".encode("utf-8", "replace")).hexdigest()
    order = list(values)
    random.Random(int(hashed[:16], 16)).shuffle(order)
    return order


def read_label(answer: str, choices: Mapping[str, str]) -> str | None:
    """Return the label that an answer names, or None.

    In this order: the whole answer is a label (capitals or not, trailing `.`, `)` or `:`
    dropped), it is the whole text of a choice, or its first word is a label.

    Args:
        choices: label -> text.
    """
    said = answer.strip()
    whole = said.upper().rstrip(".):").strip()
    if whole in choices:
        return whole
    for label, text in choices.items():
        if said.casefold() == text.strip().casefold():
            return label
    first = whole.split(maxsplit=1)[0].rstrip(".):") if whole else ""
    return first if first in choices else None


def lenient_label(answer: str, choices: Mapping[str, str]) -> str | None:
    """Return the label as `read_label`, also out of brackets, asterisks, boxes and phrases.

    What the strict rule reads it reads the same, so no lenient score is below the strict one.
    """
    found = read_label(answer, choices)
    if found is not None:
        return found
    plain = _WRAPPED.sub(r"\1", answer).strip(_AROUND)
    bare = {label: text.strip(_AROUND) for label, text in choices.items()}
    found = read_label(plain, bare)
    if found is not None:
        return found
    labels = {label.upper() for label in _PHRASE.findall(plain)} & set(choices)
    return labels.pop() if len(labels) == 1 else None

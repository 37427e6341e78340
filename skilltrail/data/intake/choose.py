"""Which environment and scorer fit the records, with the reason in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skilltrail.envs.kit.numbers import entry_value, numbers_in
from skilltrail.envs.kit.qa_scoring import normalize

Record = Mapping[str, Any]
_SHORT_WORDS = 6  # an answer of at most so many words is one that can be matched exactly
_MOST_LABELS = 12
_MOSTLY = 0.8


@dataclass(frozen=True)
class Choice:
    """An environment, its scorer (None = its own) and why; `metric` is what the gate reads."""

    env: str
    scorer: str | None
    why: str
    metric: str = "hard"


def choose(records: Sequence[Record], env: str | None, scorer: str | None) -> Choice:
    """Return what fits; `env` and `scorer` are what a person has said already."""
    if scorer is not None or env == "qa":
        chosen = _qa(records) if scorer is None else Choice("qa", scorer, "asked for")
        return Choice("qa", chosen.scorer, chosen.why, chosen.metric)
    if env is not None:
        return Choice(env, None, "asked for")
    whole = [one for one in records if "checks" in one or "scorer" in one or "choices" in one]
    if not whole and _extractive(records):
        korean = _share(records, lambda one: any(_hangul(text) for text in one["answers"]))
        name = "korqa" if korean > 0.5 else "textqa"
        share = _share(records, _inside)
        why = f"{share:.0%} of the answers stand word for word in their context"
        told = "KorQuAD's rules" if name == "korqa" else "SQuAD's rules"
        return Choice(name, None, f"{why}: exact match and token F1 by {told}")
    return _qa(records)


def _qa(records: Sequence[Record]) -> Choice:
    if any("scorer" in one for one in records):
        return Choice("qa", None, "the rows name their scorers")
    if all("choices" in one for one in records):
        return Choice("qa", "choice", "every row has choices")
    if any("choices" in one or "checks" in one for one in records):
        return Choice("qa", None, "each row is scored by its own checks, choices or answers")
    answers = [text for one in records for text in one["answers"]]
    if all(_is_number(text) for text in answers):
        return Choice("qa", "number", "every answer is one number")
    labels = Counter(normalize(text) for text in answers)
    if len(labels) <= _MOST_LABELS and 3 * len(labels) <= len(answers):
        names = ", ".join(sorted(labels)[:4]) + (", …" if len(labels) > 4 else "")
        return Choice("qa", "exact", f"{len(labels)} labels ({names}): equal after normalising")
    short = sum(len(text.split()) <= _SHORT_WORDS for text in answers) / len(answers)
    if short >= _MOSTLY:
        return Choice("qa", "exact", "answers are short: equal after normalising counts")
    why = (
        f"{1 - short:.0%} of the answers are long: word overlap (F1) counts, and the gate "
        "reads it; a judge (docs/models/judge.md) tells more"
    )
    return Choice("qa", "f1", why, "soft")


def _extractive(records: Sequence[Record]) -> bool:
    return all(one.get("context") for one in records) and (
        _share(records, _inside) >= _MOSTLY
        and _share(records, lambda one: len(one["answers"][0].split()) <= 2 * _SHORT_WORDS)
        >= _MOSTLY
    )


def _inside(record: Record) -> bool:
    text = record["context"].casefold()
    return any(answer.casefold() in text for answer in record["answers"])


def _share(records: Sequence[Record], holds: Any) -> float:
    return float(sum(map(holds, records)) / len(records))


def _hangul(text: str) -> bool:
    return any("\uac00" <= sign <= "\ud7a3" for sign in text)


def _is_number(text: str) -> bool:
    return len(numbers_in(text)) == 1 and entry_value(text) is not None

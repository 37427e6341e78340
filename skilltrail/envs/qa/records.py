"""The record of a plain question, and what it declares about its scoring.

    {"id": "7", "question": "What does the lamp cost?", "context": "Lamp 12.50, rope 3.20",
     "answers": ["12.50"], "scorer": "number", "tolerance": 0.01}

Needed are an id, a question, and `answers` (or `answer`) or `checks`; all else is optional. For
the scorer `judge` answers are so too: the first is shown to the judge as a reference.
Without a scorer, `choices` mean `choice`, `checks` mean `checks`, anything else `exact`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from skilltrail.envs.kit.choices import LABELS
from skilltrail.envs.kit.fields import accepted, optional_text, shown
from skilltrail.envs.kit.numbers import numbers_in
from skilltrail.envs.protocol import Where
from skilltrail.envs.qa.checks import compile_pattern, read_checks
from skilltrail.envs.qa.scorers import HTTP, JUDGE, SCORERS

AUTO = "auto"


def scorer_of(record: Mapping[str, Any], chosen: str, where: Where) -> str:
    """Return the record's scorer: its own, else the one that params choose, else by its fields.

    Raises:
        DataError: there is no such scorer.
    """
    named = optional_text(record, "scorer", where)
    if named is None:
        named = chosen
    if named == AUTO:
        by_field = [
            name
            for field, name in (("choices", "choice"), ("checks", "checks"))
            if record.get(field) is not None
        ]
        return by_field[0] if by_field else "exact"
    known = (*SCORERS, JUDGE, HTTP)
    if named not in known:
        near = difflib.get_close_matches(named, known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise where.error("scorer", shown(named), f"{hint}There are {', '.join(known)}")
    return named


def choices_of(record: Mapping[str, Any], where: Where) -> dict[str, str] | None:
    """Return label -> text of a multiple-choice record, or None.

    `choices` is a list of texts, labelled A, B, … in order, or an object of labels and texts.
    """
    found = record.get("choices")
    if found is None:
        return None
    if isinstance(found, Mapping):
        labelled = {str(label).strip().upper(): text for label, text in found.items()}
    elif isinstance(found, list):
        labelled = dict(zip(LABELS, found, strict=False))
    else:
        labelled = {}
    if not 2 <= len(labelled) == len(found) or not all(map(_is_text, labelled.values())):
        raise where.error("choices", shown(found), "Give 2 to 26 texts")
    return labelled


def gold_of(
    record: Mapping[str, Any],
    scorer: str,
    choices: Mapping[str, str] | None,
    tolerance: float,
    where: Where,
) -> dict[str, Any]:
    """Return what the scorer compares with, checked so that scoring cannot fail.

    Raises:
        DataError: a field does not fit the scorer.
    """
    gold: dict[str, Any] = {"scorer": scorer}
    if scorer == "checks":
        return gold | {"checks": read_checks(record.get("checks"), where)}
    field = "answers" if record.get("answers") is not None else "answer"
    if scorer in (JUDGE, HTTP) and record.get(field) is None:
        return gold | {"answers": []}
    answers = _answers(record, field, where)
    gold["answers"] = answers
    if scorer == "choice":
        gold |= _choice_gold(answers, choices, field, where)
    elif scorer == "number":
        wrong = next((one for one in answers if len(numbers_in(one)) != 1), None)
        if wrong is not None:
            raise where.error(field, shown(wrong), "The scorer `number` needs one number in it")
        gold["tolerance"] = _tolerance(record, tolerance, where)
    elif scorer == "regex":
        for pattern in answers:
            compile_pattern(pattern, field, where)
    return gold


def _choice_gold(
    answers: list[str], choices: Mapping[str, str] | None, field: str, where: Where
) -> dict[str, Any]:
    """Return the labels of the right choices; an answer is a label or the text of a choice."""
    if choices is None:
        raise where.error("choices", "nothing", "The scorer `choice` needs a list of choices")
    by_text = {text.strip(): label for label, text in choices.items()}
    labels = [
        answer.strip().upper()
        if answer.strip().upper() in choices
        else by_text.get(answer.strip())
        for answer in answers
    ]
    if None in labels:
        raise where.error(field, shown(answers), f"Name one of the labels {', '.join(choices)}")
    return {"answers": labels, "choices": dict(choices)}


def _tolerance(record: Mapping[str, Any], default: float, where: Where) -> float:
    found = record.get("tolerance", default)
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found <= 1:
        raise where.error("tolerance", shown(found), "Give a share from 0 to 1, as in 0.01")
    return float(found)


def _answers(record: Mapping[str, Any], field: str, where: Where) -> list[str]:
    """Return the accepted answers; numbers count as their digits."""
    found = record.get(field)
    listed = found if isinstance(found, list) else [found] if _is_number(found) else None
    if listed is not None:
        plain = [format(one, ".15g") if _is_number(one) else one for one in listed]
        record = {**record, field: plain}
    return accepted(record, field, where)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())

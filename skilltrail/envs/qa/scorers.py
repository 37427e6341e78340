"""What a record may declare as its scorer; each is a pure function of gold and answer.

exact     equal after SQuAD's normalising (capitals, punctuation, articles)
f1        the same for hard; soft is the F1 over words
contains  an accepted answer stands in the reply, as whole words
number    exactly one number, within `tolerance` (a share of the expected one)
choice    the label of the right choice (`skilltrail.envs.kit.choices`)
regex     a pattern is found in the answer
checks    every check passes; soft is the share that does (`skilltrail.envs.qa.checks`)

`judge` is none of them: a model scores by a rubric (`skilltrail.models.judge`); nor is `http`:
a web service of one's own does (`skilltrail.envs.kit.http_scorer`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from skilltrail.core.score import Score
from skilltrail.envs.kit.choices import read_label
from skilltrail.envs.kit.numbers import agrees, numbers_in
from skilltrail.envs.kit.qa_scoring import exact_match, normalize, token_f1
from skilltrail.envs.qa.checks import is_format_only, passed

Gold = Mapping[str, Any]


def exact(gold: Gold, answer: str) -> Score:
    hard = exact_match(answer, gold["answers"])
    return Score.scored(hard, reason=_reason(hard, gold, answer))


def f1(gold: Gold, answer: str) -> Score:
    hard = exact_match(answer, gold["answers"])
    return Score.scored(hard, token_f1(answer, gold["answers"]), _reason(hard, gold, answer))


def contains(gold: Gold, answer: str) -> Score:
    right = any(_holds(answer, one) for one in gold["answers"])
    return Score.scored(float(right), reason="correct" if right else _wrong(answer))


def number(gold: Gold, answer: str) -> Score:
    found = numbers_in(answer)
    if len(found) != 1:
        many = "verbose" if found else "wrong_form"
        return Score.scored(0.0, reason=many if answer.strip() else "empty")
    wanted = [numbers_in(one)[0] for one in gold["answers"]]
    right = any(agrees(one, found[0], gold["tolerance"]) for one in wanted)
    return Score.scored(float(right), reason="correct" if right else "wrong")


def choice(gold: Gold, answer: str) -> Score:
    label = read_label(answer, gold["choices"])
    right = label is not None and label in gold["answers"]
    if right or label is not None:
        return Score.scored(float(right), reason="correct" if right else "wrong")
    return Score.scored(0.0, reason="wrong_form" if answer.strip() else "empty")


def regex(gold: Gold, answer: str) -> Score:
    right = any(re.search(pattern, answer) for pattern in gold["answers"])
    return Score.scored(float(right), reason="correct" if right else _wrong(answer))


def checks(gold: Gold, answer: str) -> Score:
    results = [(check, passed(check, answer)) for check in gold["checks"]]
    failed = [check for check, result in results if not result]
    if not failed:
        return Score.scored(1.0, reason="correct")
    soft = 1 - len(failed) / len(results)
    if not answer.strip():
        return Score.scored(0.0, soft, "empty")
    return Score.scored(0.0, soft, "format" if all(map(is_format_only, failed)) else "content")


SCORERS: Mapping[str, Callable[[Gold, str], Score]] = {
    "exact": exact,
    "f1": f1,
    "contains": contains,
    "number": number,
    "choice": choice,
    "regex": regex,
    "checks": checks,
}
JUDGE = "judge"
HTTP = "http"
WHOLE = ("checks", JUDGE, HTTP)  # these read the whole reply


def _holds(answer: str, wanted: str) -> bool:
    """Return whether the words of `wanted` stand in a row in `answer`."""
    bare = normalize(wanted)
    return bool(bare) and f" {bare} " in f" {normalize(answer)} "


def _wrong(answer: str) -> str:
    return "wrong" if answer.strip() else "empty"


def _reason(hard: float, gold: Gold, answer: str) -> str:
    if hard:
        return "correct"
    return "verbose" if any(_holds(answer, one) for one in gold["answers"]) else _wrong(answer)

"""Why an answer is wrong: one word per rollout, by comparing forms and never by meaning.

The word is the score's `reason`; `rules.yaml` says which failure type it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from skilltrail.envs.kit.qa_scoring import normalize

REASONS = (
    "correct",
    "empty",
    "truncated",
    "verbose",
    "partial",
    "wrong_unit",
    "wrong_form",
    "echo",
    "invented",
    "wrong_span",
)

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_CODE = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])\S+")
_CALENDAR = re.compile(
    r"\b(jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec|january|february|march|april|june|july"
    r"|august|september|october|november|december"
    r"|(mon|tues|wednes|thurs|fri|satur|sun)days?)\b",
    re.IGNORECASE,
)


def reason_of(
    answer: str, golds: Sequence[str], context: str, question: str, *, truncated: bool
) -> str:
    """Return the reason of one answer, of `REASONS`."""
    said, wanted = normalize(answer), [normalize(gold) for gold in golds]
    if said in wanted:
        return "correct"
    if not said:
        return "empty"
    if any(_within(gold, said) for gold in wanted):
        return "verbose"
    if truncated:
        return "truncated"
    asked, text = normalize(question), normalize(context)
    copied = _within(said, text)
    # The question, or six or more words of the context.
    if said == asked or _within(said, asked) or (copied and said.count(" ") >= 5):
        return "echo"
    if any(_same_number(answer, gold) for gold in golds):
        return "wrong_unit"
    if any(_within(said, gold) for gold in wanted):
        return "partial"
    if all(form(answer) != form(gold) for gold in golds):
        return "wrong_form"
    return "wrong_span" if copied else "invented"


def form(text: str) -> str:
    """Return what kind of thing a text looks like: its outward form only.

    One of `date`, `number`, `quantity` (a number with words or signs), `code` (letters and
    digits in one word), `name` (capitalised words) and `words`.
    """
    text = text.strip().rstrip(".")
    words = text.split()
    if _CALENDAR.search(text):
        return "date"
    if _NUMBER.fullmatch(text):
        return "number"
    if len(words) <= 2 and any(_CODE.fullmatch(word) for word in words):
        return "code"
    if _NUMBER.search(text):
        return "quantity"
    if words and all(word[:1].isupper() for word in words if len(word) > 3):
        return "name" if words[0][:1].isupper() else "words"
    return "words"


def question_words(question: str) -> frozenset[str]:
    """Return the words of a question in lower case, without names and numbers.

    A name is a capitalised word that does not open the question.
    """
    words: list[str] = re.findall(r"[^\W_]+", question)
    return frozenset(
        word.lower()
        for at, word in enumerate(words)
        if word.isalpha() and (at == 0 or not word[0].isupper())
    )


def _within(part: str, whole: str) -> bool:
    """Return whether the words of `part` stand in a row in `whole`, which has more words."""
    return 0 < len(part) < len(whole) and f" {part} " in f" {whole} "


def _same_number(answer: str, gold: str) -> bool:
    found, wanted = _NUMBER.search(answer), _NUMBER.search(gold)
    return found is not None and wanted is not None and found[0] == wanted[0]

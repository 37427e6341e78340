"""What an edit copies from train items: long passages, names with numbers, expected answers.

A rule that repeats an item helps with that item only, and puts its answer where the target
reads it. Three signs are looked for in the text of the train items the optimizer has seen:

    passage   `_PASSAGE` words in a row, in any case
    details   `_DETAILS` words in a row with two or more that name something (a capital inside
              a sentence, or a digit), written the same way, or naming something there too
    answer    an item's expected answer that is no label: no other item has it, in any case,
              and the items have not few answers for many of them

What several items share is the tasks' own vocabulary and no sign; nor is what the skill has
already. Worked examples are exempt: the caller does not ask about them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from skilltrail.core.canon import texts_in
from skilltrail.core.item import Item

TAG = "copied/2"
_PASSAGE = 8
_DETAILS = 3
_COMMON = 3  # so many items make a phrase the tasks' own
_LEAST_ANSWER_CHARS = 4
_NOWHERE: frozenset[int] = frozenset()
_LABELS = frozenset(["true", "false", "none", "null", "unknown", "unanswerable", "neither"])
_WORD = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff]|[^\W_]+(?:[.,'’:][^\W_]+)*")
_SENTENCE_START = re.compile(r"(?:^|[.!?:]\s|\n)[\s>*+\-#\d.)\"'“(\[]*$")


@dataclass(frozen=True)
class Words:
    """A text as words: joined with single blanks, one at each end, as written and folded.

    `details` are its runs of words that name something, folded.
    """

    written: str
    folded: str
    details: frozenset[str]

    @staticmethod
    def of(text: str) -> Words:
        joined = f" {' '.join(_WORD.findall(text))} "
        details = frozenset(phrase.casefold() for phrase in _details(text))
        return Words(joined, joined.casefold(), details)

    def has_passage(self, phrase: str) -> bool:
        """Return whether these words, folded, stand here in any case."""
        return phrase in self.folded

    def has_details(self, phrase: str) -> bool:
        """Return whether these words stand here as written, or as such that name something."""
        return phrase in self.written or phrase.casefold() in self.details


class TrainTexts:
    """The texts of train items, to look for copies in."""

    def __init__(self, items: Iterable[Item]) -> None:
        # In order of id, so that the item a refusal names does not depend on the pool's order.
        self._items = sorted(items, key=lambda item: item.id)

    def copied(self, content: str, skill: str) -> str | None:
        """Return what `content` copies from an item and not from `skill`, or None."""
        own, new = _words_of(skill), Words.of(content)
        for phrase in _passages(content):
            if not own.has_passage(phrase) and (at := self._holder(Words.has_passage, phrase)):
                return f"copies_item: {quoted(phrase)} stands in train item {quoted(at)}"
        for phrase in _details(content):
            if not own.has_details(phrase) and (at := self._holder(Words.has_details, phrase)):
                return f"copies_item: {quoted(phrase)} stands in train item {quoted(at)}"
        for answer, at in self._answers:
            if answer in new.folded and answer not in own.folded:
                return f"copies_answer: the expected answer of train item {quoted(at)}"
        return None

    def _holder(self, has: Callable[[Words, str], bool], phrase: str) -> str | None:
        """Return the id of the first item whose words have `phrase`, when few items' do."""
        holders: list[str] = []
        # Only items that have all of its words, so that long texts are not read for each.
        with_word = [self._places.get(word, _NOWHERE) for word in phrase.casefold().split()]
        for place in sorted(frozenset.intersection(*with_word)):
            id, words = self._words[place]
            if has(words, phrase):
                holders.append(id)
                if len(holders) >= _COMMON:
                    return None
        return holders[0] if holders else None

    @cached_property
    def _places(self) -> dict[str, frozenset[int]]:
        """Each word, folded, with the numbers of the items that have it."""
        places: dict[str, set[int]] = {}
        for number, (_, words) in enumerate(self._words):
            for word in set(words.folded.split()):
                places.setdefault(word, set()).add(number)
        return {word: frozenset(numbers) for word, numbers in places.items()}

    @cached_property
    def _words(self) -> list[tuple[str, Words]]:
        return [
            (item.id, _words_of("\n".join(texts_in([item.input, item.gold]))))
            for item in self._items
        ]

    @cached_property
    def _answers(self) -> list[tuple[str, str]]:
        """Each telling expected answer, folded, with the one item that has it."""
        owners: dict[str, list[str]] = {}
        telling: set[str] = set()
        for item in self._items:
            answers = {Words.of(text) for text in texts_in(item.gold)}
            telling |= {words.folded for words in answers if _telling(words)}
            for answer in {words.folded for words in answers}:
                owners.setdefault(answer, []).append(item.id)
        if len(owners) * _COMMON <= len(self._items):
            return []  # a label that came once yet is a label
        return sorted((answer, owners[answer][0]) for answer in telling
                      if len(owners[answer]) == 1)  # fmt: skip


def _passages(content: str) -> Iterator[str]:
    words = _WORD.findall(content.casefold())
    for at in range(len(words) - _PASSAGE + 1):
        yield f" {' '.join(words[at : at + _PASSAGE])} "


def _details(content: str) -> Iterator[str]:
    found = list(_WORD.finditer(content))
    names = [_names_something(content, word) for word in found]
    words = [word[0] for word in found]
    for at in range(len(words) - _DETAILS + 1):
        if sum(names[at : at + _DETAILS]) >= 2:
            yield f" {' '.join(words[at : at + _DETAILS])} "


def _names_something(content: str, word: re.Match[str]) -> bool:
    text = word[0]
    if any(char.isdigit() for char in text):
        return True
    if not text[0].isupper() or len(text) == 1:
        return False
    before = content[max(0, word.start() - 40) : word.start()]
    return _SENTENCE_START.search(before) is None


def _telling(answer: Words) -> bool:
    """Return whether an answer gives its item away: a name, a number, or a long phrase."""
    words = answer.written.split()
    chars = sum(map(len, words))
    if chars < _LEAST_ANSWER_CHARS or answer.folded.strip() in _LABELS:
        return False
    if any(word[0].isupper() or any(map(str.isdigit, word)) for word in words):
        return True
    return (len(words) >= 3 and chars >= 10) or chars >= 14


@lru_cache(maxsize=16384)
def _words_of(text: str) -> Words:
    return Words.of(text)


def quoted(text: str) -> str:
    """Return a text in quotes. Not repr: what it escapes differs between Python versions."""
    return json.dumps(text.strip(), ensure_ascii=False)

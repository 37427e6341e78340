"""Records of JSON and JSON-lines text, each with the line it begins on.

Stricter than the standard decoder where that would lose or invent data: no NaN or infinity, no
key twice in one object.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from skilltrail.core.canon import finite, refuse_constant, unique_keys
from skilltrail.core.errors import DataError
from skilltrail.data import squad
from skilltrail.data.record import Record, record_of
from skilltrail.envs.protocol import Where

_DECODER = json.JSONDecoder(
    parse_constant=refuse_constant, parse_float=finite, object_pairs_hook=unique_keys
)


class _Scanner:
    """A JSON text and a position in it, so that each value knows the line it begins on."""

    def __init__(self, text: str, name: str, line: int = 1) -> None:
        self.text, self.name = text, name
        self.position, self._first_line = 0, line
        self._counted, self._newlines = 0, 0

    def peek(self) -> str:
        """Return the next character that is not blank, or "" at the end."""
        while self.position < len(self.text) and self.text[self.position] in " \t\r\n":
            self.position += 1
        return self.text[self.position : self.position + 1]

    @property
    def line(self) -> int:
        self._newlines += self.text.count("\n", self._counted, self.position)
        self._counted = self.position
        return self._first_line + self._newlines

    def take(self, wanted: str) -> str:
        """Step over the next character, which must be one of `wanted`, and return it."""
        found = self.peek()
        if not found or found not in wanted:
            raise self.error(f"expected {' or '.join(wanted)}, found {found or 'the end'}")
        self.position += 1
        return found

    def value(self) -> Any:
        """Return the value that begins here and step over it."""
        self.peek()
        line = self.line
        try:
            value, self.position = _DECODER.raw_decode(self.text, self.position)
        except json.JSONDecodeError as error:
            self.position = error.pos
            raise self.error(error.msg) from error
        except (ValueError, RecursionError) as error:
            found = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise DataError(
                f"{self.name}, line {line}", found, "Correct the record that begins there"
            ) from error
        return value

    def error(self, found: str) -> DataError:
        return DataError(
            f"{self.name}, line {self.line}", f"not valid JSON: {found}", "Correct this line"
        )


def json_records(text: str, name: str) -> Iterator[Record]:
    scanner = _Scanner(text, name)
    opening = scanner.peek()
    if opening == "[":
        yield from _array(scanner)
    elif opening == "{":
        yield from _wrapped_array(scanner)
    else:
        raise _not_an_array(name, "a single value")
    if scanner.peek():
        raise DataError(
            f"{name}, line {scanner.line}",
            "more text after the end of the JSON value",
            "Use the suffix .jsonl if every line is a record of its own",
        )


def _array(scanner: _Scanner) -> Iterator[Record]:
    scanner.take("[")
    if scanner.peek() == "]":
        scanner.take("]")
        return
    while True:
        scanner.peek()
        where = Where(scanner.name, scanner.line)
        value = scanner.value()
        if squad.is_article(value):
            for question in squad.questions(value, where):
                yield record_of(question, where)
        else:
            yield record_of(value, where)
        if scanner.take(",]") == "]":
            return


def _wrapped_array(scanner: _Scanner) -> Iterator[Record]:
    """Yield the records of the array under `data`; other keys describe the set."""
    scanner.take("{")
    found = False
    closed = scanner.peek() == "}"
    while not closed:
        if scanner.peek() != '"':
            scanner.take('"')
        key = scanner.value()
        scanner.take(":")
        if key == "data" and scanner.peek() == "[":
            found = True
            yield from _array(scanner)
        else:
            scanner.value()
        closed = scanner.take(",}") == "}"
    if not found:
        raise _not_an_array(scanner.name, "an object without a `data` array")


def _not_an_array(name: str, found: str) -> DataError:
    return DataError(
        f"{name}, line 1",
        f"expected a JSON array of objects, found {found}",
        "Put the records in [ ], or use the suffix .jsonl if every line is a record of its own",
    )


def jsonl_records(text: str, name: str) -> Iterator[Record]:
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removeprefix("\ufeff")  # files that begin so were put together
        scanner = _Scanner(line, name, number)
        if not scanner.peek():
            continue
        if scanner.peek() == "[":
            raise DataError(
                f"{name}, line {number}",
                "expected an object, found the start of an array",
                "Use the suffix .json if the file is one JSON array",
            )
        value = scanner.value()
        if scanner.peek():
            raise scanner.error("more text after the record")
        yield record_of(value, Where(name, number))

"""Two lists of lines made cheap to compare, whatever they hold.

`difflib` looks at every pair of equal lines again in each part that it cuts: texts in which
common lines stand between strange ones take the cube of their length. Where that would take
long, only lines that stand once in both, in the same order, and what is equal around them count
as the same. The bound counts lines, so the same texts give the same pairs on any machine.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

MOST_LOOKS = 30_000_000  # at pairs of equal lines: some seconds


class Line(str):
    """A line that equals another one only where both were paired."""

    __slots__ = ("pair",)
    pair: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Line) and self.pair == other.pair

    def __hash__(self) -> int:
        return self.pair


def comparable(
    old: Sequence[str], new: Sequence[str], *, autojunk: bool = True
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the lines themselves, or such as `difflib` compares in time.

    `autojunk` is the matcher's own. Characters of a text will do as lines.
    """
    if _looks(old, new, autojunk) <= MOST_LOOKS:
        return old, new
    pairs = _pairs(old, new)
    sides = ({pair[side]: n for n, pair in enumerate(pairs)} for side in (0, 1))
    return _named(old, next(sides), 0), _named(new, next(sides), 1)


def _looks(old: Sequence[str], new: Sequence[str], autojunk: bool) -> int:
    """Return how many pairs of equal lines may be looked at, at most.

    With `autojunk` a line that stands in more than a hundredth of 200 lines and more is looked
    at by nobody.
    """
    counts = Counter(new)
    most = len(new) // 100 + 1 if autojunk and len(new) >= 200 else len(new)
    equal = sum(n for line in old if (n := counts[line]) <= most)
    return equal * min(len(old), len(new))


def _pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return pairs of places that rise on both sides: lines that stand once on each, as many
    as are in order, and equal ones before and after each."""
    here, there = Counter(old), Counter(new)
    places = {line: at for at, line in enumerate(new) if there[line] == 1}
    once = [
        (a, places[line]) for a, line in enumerate(old) if here[line] == 1 and line in places
    ]
    pairs: list[tuple[int, int]] = []
    a = b = 0  # what stands before is settled
    for at, to in [*_rising(once), (len(old), len(new))]:
        while a < at and b < to and old[a] == new[b]:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        back = 0
        while at - back > a and to - back > b and old[at - back - 1] == new[to - back - 1]:
            back += 1
        pairs += [(at - n, to - n) for n in range(back, 0, -1)]
        if at < len(old):
            pairs.append((at, to))
        a, b = at + 1, to + 1
    return pairs


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part of `pairs` in which the second places rise, too."""
    ends: list[int] = []  # the least last place of a part of each length
    last: list[int] = []  # and which pair has it
    before: list[int | None] = []
    for number, (_, place) in enumerate(pairs):
        at = bisect_left(ends, place)
        before.append(last[at - 1] if at else None)
        ends[at : at + 1], last[at : at + 1] = [place], [number]
    found: list[tuple[int, int]] = []
    end = last[-1] if last else None
    while end is not None:
        found.append(pairs[end])
        end = before[end]
    return found[::-1]


def _named(lines: Sequence[str], paired: dict[int, int], side: int) -> list[Line]:
    """Return the lines with the number of their pair, or one that nothing else has."""
    named = []
    for at, line in enumerate(lines):
        one = Line(line)
        one.pair = 2 * at + side + 1 if at not in paired else -1 - paired[at]
        named.append(one)
    return named

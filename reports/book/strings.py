"""A table of texts, each stored once and cut to what the page has room for."""

from __future__ import annotations

from stages.core.canon import clean

# Longest text in characters, tried in turn until all texts together fit.
LEVELS = (20_000, 6_000, 2_000, 800, 300, 120, 48)
ROOM_CHARS = 5_000_000
WHOLE_CHARS = 200_000


class Strings:
    """Texts by number. `keep` is for what must stay whole (skill lines), `add` for the rest."""

    def __init__(self, room_chars: int = ROOM_CHARS) -> None:
        self._room_chars = room_chars
        self._index: dict[str, int] = {}
        self._texts: list[str] = []
        self._whole: set[int] = set()

    def add(self, text: str) -> int:
        """Return the number of `text`, which may be cut in the end."""
        number = self._index.get(text)
        if number is None:
            number = self._index[text] = len(self._texts)
            self._texts.append(clean(text))
        return number

    def keep(self, text: str) -> int:
        """Return the number of `text`, which is cut only beyond `WHOLE_CHARS`."""
        number = self.add(text)
        self._whole.add(number)
        return number

    def finish(self) -> tuple[list[str], int]:
        """Return the texts, cut, and the longest length that none was cut below."""
        cuttable = [len(t) for n, t in enumerate(self._texts) if n not in self._whole]
        longest = LEVELS[-1]
        for level in LEVELS:
            if sum(min(length, level) for length in cuttable) <= self._room_chars:
                longest = level
                break
        return [
            cut(text, WHOLE_CHARS if number in self._whole else longest)
            for number, text in enumerate(self._texts)
        ], longest


def cut(text: str, most: int) -> str:
    """Return `text`; its middle is a remark when it is longer than `most` characters."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = most - head
    return f"{text[:head]}\n[… {len(text) - most:,} characters left out …]\n{text[-tail:]}"

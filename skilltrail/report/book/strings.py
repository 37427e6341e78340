"""A table of texts, each stored once and cut to what the page has room for."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from skilltrail.core.canon import clean

# Longest text in characters, tried in turn until all texts together fit.
LEVELS = (20_000, 6_000, 2_000, 800, 300, 120, 48)
LEFT_OUT = "…"
WHOLE_CHARS = 200_000
SHORT_CHARS = 120  # a text cut to fewer has no room to say how much is left out
_ESCAPED = re.compile(
    r"[<>&]"
)  # six characters each where `skilltrail.report.page.inert` writes them


class Strings:
    """Texts by number. `keep` is for what must stay whole (skill lines), `add` for the rest."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self._texts: list[str] = []
        self._whole: set[int] = set()
        self._order: dict[int, None] = {}  # numbers, the one used last at the end

    def add(self, text: str) -> int:
        """Return the number of `text`, which may be cut in the end."""
        number = self._index.get(text)
        if number is None:
            number = self._index[text] = len(self._texts)
            self._texts.append(clean(text))
        self._order.pop(number, None)
        self._order[number] = None
        return number

    def keep(self, text: str) -> int:
        """Return the number of `text`, which is cut only beyond `WHOLE_CHARS`."""
        number = self.add(text)
        self._whole.add(number)
        return number

    def finish(self, room_bytes: int) -> tuple[list[str], int]:
        """Return the texts, cut to fit in `room_bytes`, and the length that none was cut below.

        The length is 0 where these did not fit either, and the earliest were left out.
        """
        for longest in LEVELS:
            texts = [
                cut(text, WHOLE_CHARS if number in self._whole else longest)
                for number, text in enumerate(self._texts)
            ]
            if sum(map(written_bytes, texts)) <= room_bytes:
                return texts, longest
        return self._latest(texts, room_bytes), 0

    def _latest(self, texts: Sequence[str], room_bytes: int) -> list[str]:
        """Return the texts, those not used for longest left out until the rest fits."""
        sizes = [written_bytes(text) for text in texts]
        over = sum(sizes) - room_bytes
        left = list(texts)
        for number in self._order:
            saved = sizes[number] - written_bytes(LEFT_OUT)
            if over > 0 and saved > 0 and number not in self._whole:
                left[number] = LEFT_OUT
                over -= saved
        return left


def written_bytes(text: str) -> int:
    """Return what a text takes in the page, with its quotes and a comma."""
    written = json.dumps(text, ensure_ascii=False).encode()
    return len(written) + 5 * len(_ESCAPED.findall(text)) + 1


def cut(text: str, most: int) -> str:
    """Return `text`; its middle is a remark when it is longer than `most` characters."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = text[len(text) - (most - head) :]
    if most < SHORT_CHARS:
        return f"{text[:head]}{LEFT_OUT}{tail}"
    return f"{text[:head]}\n[… {len(text) - most:,} characters left out …]\n{tail}"

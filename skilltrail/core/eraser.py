"""Taking a text out of everything that may hold it, in whatever spelling.

A secret or a person's datum reaches recorded files as it is, and inside JSON strings, inside
JSON that is itself a string (tool arguments), in a URL or in HTML. Each of its characters is
looked for in all these spellings. What is encoded as a whole (base64, compression) or cut into
parts is not found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from html import escape
from typing import Any

from skilltrail.core.errors import UsageError

MARKER = "(erased)"
LEAST_CHARS, MOST_CHARS = 4, 4096
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_NEWLINE = r"(\r?\n|(?:\\+r)?\\+n|\\+u000[aA]|%0[aA])"
_SHORT = {"\t": "t", "\r": "r", "\b": "b", "\f": "f"}


class Eraser:
    """Replaces a text by `MARKER`; its line ends stay, so that no line number moves.

    Raises:
        UsageError: the text is too short to be told from others, too long, or the marker's own.
    """

    def __init__(self, text: str) -> None:
        wanted = text.strip("\r\n")
        if not LEAST_CHARS <= len(wanted) <= MOST_CHARS or not wanted.strip():
            raise UsageError(
                "The text to erase",
                f"it has {len(wanted)} characters",
                f"Give {LEAST_CHARS} to {MOST_CHARS} of them",
            )
        if wanted in MARKER:
            raise UsageError("The text to erase", f"stands in the marker {MARKER} itself")
        forms = [wanted, *(unicodedata.normalize(form, wanted) for form in ("NFC", "NFD"))]
        pattern = "|".join(map(_spellings, dict.fromkeys(forms)))
        self._text = re.compile(pattern)
        self._bytes = re.compile(pattern.encode())

    def text(self, text: str) -> str:
        """Return `text` without it."""
        return self._text.sub(lambda match: _marked(match[0]), text)

    def data(self, data: bytes) -> bytes:
        """Return the bytes of a file without it."""
        return self._bytes.sub(
            lambda match: _marked(match[0].decode("utf-8", "replace")).encode(), data
        )

    def holds(self, data: bytes) -> bool:
        return self._bytes.search(data) is not None

    def value(self, value: Any) -> Any:
        """Return a JSON value without it, keys included; digests are no texts."""
        if isinstance(value, str):
            return value if _DIGEST.match(value) else self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.value(one) for one in value]
        return value

    def refuse_words(self, words: Iterable[str]) -> None:
        """Refuse to erase what the records themselves are written in.

        Raises:
            UsageError: one of `words` holds the text.
        """
        found = next((word for word in words if self._text.search(word)), None)
        if found is not None:
            raise UsageError(
                "The text to erase",
                f"it stands in {found!r}, a word of the records' own form",
                "Give more of the text around it",
            )


def _marked(found: str) -> str:
    """Return what stands in place of `found`: a marker for each line of it."""
    parts = re.split(_NEWLINE, found)
    return "".join(
        part if at % 2 else (MARKER if part else "") for at, part in enumerate(parts)
    )


def _spellings(text: str) -> str:
    """Return a pattern that matches `text` in every spelling.

    Anything but ASCII stands in it as bytes do, so that it serves for bytes after encoding.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    newline = "(?:" + _NEWLINE[1:]
    return newline.join("".join(map(_spelling, line)) for line in lines)


def _spelling(char: str) -> str:
    found = [re.escape(char)]
    units = char.encode("utf-16-be")
    pairs = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    found.append("".join(rf"\\+u(?i:{pair})" for pair in pairs))
    found.append("".join(f"%(?i:{byte:02x})" for byte in char.encode()))
    if char == "\\":
        found[0] = r"\\+"
    elif char in "\"'/":
        found[0] = rf"\\*{re.escape(char)}"
    elif char in _SHORT:
        found.append(rf"\\+{_SHORT[char]}")
    if escape(char) != char:
        found.append(re.escape(escape(char)))
        found.append(f"&#(?:0*{ord(char)}|[xX]0*(?i:{ord(char):x}));")
    return f"(?:{'|'.join(found)})"

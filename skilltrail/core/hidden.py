"""Characters that do not show, move the cursor or turn the direction of text, spelled out.

A person sees `\\u{1b}` where a terminal escape stands. The notation is the same in sentences,
audits, blame, diffs, pages and whatever else is printed.
"""

from __future__ import annotations

import json
import re

# A fixed list, not Unicode categories: those differ between Python versions, and with them the
# commits whose messages hold such text. Controls, then whatever Unicode 16 calls default-
# ignorable (selectors of variants and tags among them), bidirectional controls, format
# controls of single scripts, separators of lines, and a Braille cell without dots.
_RANGES = (
    (0x00, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C),
    (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F), (0x2028, 0x202E),
    (0x2060, 0x206F), (0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0D), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
_PICTURES = "©®‼⁉™ℹ←-⇿⌀-➿⤀-⥿⬀-⯿〰〽㊗㊙\U0001f000-\U0001faff"
_LETTERS = "\u0620-\u06d3\u0750-\u077f\u08a0-\u08c9\u0900-\u0dff"  # scripts that join or part


def _pattern(keep: str) -> str:
    """Return a pattern that Python and a browser read alike: classes of plain characters."""
    ranges = "".join(f"{chr(low)}-{chr(high)}" for low, high in _RANGES)
    kept = f"(?![{keep}])" if keep else ""
    # One selector after a picture (or in a keycap) is how a text or a picture is asked for.
    return f"{kept}[{ranges}]|(?<![{_PICTURES}])[\ufe0e\ufe0f](?!\u20e3)"


HIDDEN = re.compile(_pattern(""))
# For blocks of text, where a line feed and a tab do what they are for.
UNSEEN_PATTERN = _pattern("\n\t")
UNSEEN = re.compile(UNSEEN_PATTERN)
_JOINED = re.compile(
    f"(?<=[{_LETTERS}])[\u200c\u200d](?=[{_LETTERS}])|(?<=[{_PICTURES}\ufe0f])\u200d(?=[{_PICTURES}])"
)


def is_plain(text: str) -> bool:
    """True for printable ASCII, line feeds and tabs: nothing hides there, said in no time."""
    return text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()


def spelled_out(text: str, which: re.Pattern[str] = HIDDEN) -> str:
    """Return `text` with each character that `which` finds as its number in hexadecimal."""
    if text.isascii() and text.isprintable():
        return text
    return which.sub(lambda match: f"\\u{{{ord(match[0]):x}}}", text)


def spelled_block(text: str) -> str:
    """Return `text` with lines and tabs kept and other hidden characters spelled out."""
    text = text.replace("\r\n", "\n")
    return text if is_plain(text) else spelled_out(text, UNSEEN)


def escaped_json(text: str) -> str:
    """Return a JSON text in which no hidden character stands: it says the same."""
    return UNSEEN.sub(lambda match: json.dumps(match[0])[1:-1], text)


def unseen_codes(line: str) -> tuple[str, ...]:
    """Return the hidden characters of a document's line (without its end), as `U+200B`.

    Each once. A joiner within a word of a script that needs it, or within a picture made of
    several, is none.
    """
    found = UNSEEN.findall(_JOINED.sub("", line))
    return tuple(dict.fromkeys(f"U+{ord(char):04X}" for char in found))

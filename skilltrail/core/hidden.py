"""Characters that do not show, move the cursor or turn the direction of text, spelled out.

A person sees `\\u{1b}` where a terminal escape stands. The notation is the same in sentences,
audits, blame and whatever else is printed.
"""

from __future__ import annotations

import re

# A fixed list, not Unicode categories: those differ between Python versions, and with them the
# commits whose messages hold such text.
HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)


def spelled_out(text: str, which: re.Pattern[str] = HIDDEN) -> str:
    """Return `text` with each character that `which` finds as its number in hexadecimal."""
    return which.sub(lambda match: f"\\u{{{ord(match[0]):x}}}", text)

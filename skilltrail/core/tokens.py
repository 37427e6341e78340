"""The fixed, offline measure of a skill's size: counter `count/1`.

An estimate of what a subword tokenizer would count, the same on every machine and for every
model, so that "shorter" and a size limit mean one thing. It reads code points only (no Unicode
tables, which differ between Python versions):

    ASCII letters         one per 8 letters or part of it, per word
    ASCII digits          one per 3
    U+0080 to U+2E7F      one per 3 (accented Latin, Greek, Cyrillic, Arabic, symbols, …)
    from U+2E80 on        one each (Chinese, Japanese, Korean, emoji)
    other visible ASCII   one per 4 of the same character in a row
    line ends             one per run; blanks and tabs are free
"""

from __future__ import annotations

import re

TAG = "count/1"

_TOKEN = re.compile(
    r"[A-Za-z]{1,8}|[0-9]{1,3}|[\u0080-\u2e7f]{1,3}|[\u2e80-\U0010ffff]"
    r"|\n(?:[ \t\r]*\n)*|([!-~])\1{0,3}"
)


def count_tokens(text: str) -> int:
    """Return the size of `text` in tokens of `TAG` (0 for text without a visible sign)."""
    if not text.strip(" \t\r\n"):
        return 0
    return len(_TOKEN.findall(text))

"""Keys in every form that a reply, an error or a tool may give them, before they are kept.

`docs/security.md` lists what is hidden and what is not; this is the list it stands for.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest

from skilltrail.models.environ import redactor

Figure = Callable[[str, int, int], None]
KEY = 'plain/looking+9f21"c0é'  # no key's shape: known from the environment alone
SHORT = "a1b2c3"
SHAPED = "sk-proj-abcdefghijklmnop123456"
ENVIRON = {"LAB_KEY": KEY, "PIN_TOKEN": SHORT}
RAW = KEY.encode()

FORMS: dict[str, tuple[str, str]] = {
    "as it is": (KEY, KEY),
    "within a sentence": (f"The key is {KEY}.", KEY),
    "twice": (f"{KEY} {KEY}", KEY),
    "glued to letters": (f"x{KEY}y", KEY),
    "base64": (base64.b64encode(RAW).decode(), "cGxhaW4vbG9va2lu"),
    "base64 of more than the key": (base64.b64encode(b"x" + RAW).decode(), "YWluL2xvb2tpbmcr"),
    "base64 for URLs": (f"t={base64.urlsafe_b64encode(RAW).decode()}", "cGxhaW4vbG9va2lu"),
    "hexadecimal": (RAW.hex(), RAW.hex()),
    "hexadecimal, capitals": (RAW.hex().upper(), RAW.hex().upper()),
    "percent": (f"https://x/?q={quote(KEY, safe='')}", quote(KEY, safe="")),
    "JSON in a text": (json.dumps({"k": KEY}), "looking+9f21"),
    "a key's shape, not in the environment": (f"use {SHAPED}", SHAPED),
    "user and password in a URL": ("https://me:hunter22@host/x", "hunter22"),
    "an access key in a query": ("https://h/x?sig=abcdefgh1234", "abcdefgh1234"),
    "an AWS key": ("AKIAABCDEFGHIJKLMNOP", "AKIAABCDEFGHIJKLMNOP"),
    "a private key": ("-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----", "MIIE"),
    "a JSON web token": ("eyJhbGciOiJI.eyJzdWIiOiIx.abc", "eyJzdWIiOiIx"),
}
# Said in docs/security.md: out of reach of a search for texts.
NOT_HIDDEN: dict[str, tuple[str, str]] = {
    "under eight characters": (f"it is {SHORT}", SHORT),
    "reversed": (KEY[::-1], KEY[::-1]),
    "a part of it": (KEY[:12], KEY[:12]),
    "spaced out": (" ".join(KEY), " ".join(KEY)),
    "base64 of base64": (
        base64.b64encode(base64.b64encode(RAW)).decode(), "Y0d4aGFXNHZiRzl2YTJs"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_key_that_a_reply_repeats_is_not_kept(name: str, figure: Figure) -> None:
    text, telling = FORMS[name]
    assert telling in text
    hidden = redactor(ENVIRON)
    kept = json.dumps(hidden.sure_value({"reply": [text]}), ensure_ascii=False)
    assert telling not in kept
    assert telling not in hidden.text(text)
    figure("forms of planted keys hidden", 1, 1)


@pytest.mark.parametrize("name", NOT_HIDDEN)
def test_what_is_not_hidden_is_what_the_docs_say(name: str) -> None:
    text, telling = NOT_HIDDEN[name]
    assert telling in redactor(ENVIRON).sure(text)


def test_a_short_key_is_hidden_where_no_data_stands() -> None:
    """In messages and journals; in data it would hide ordinary words."""
    assert SHORT not in redactor(ENVIRON).text(f"bad key {SHORT}")

"""From a reply to the command that is sent to the game.

Source: the reading rule of SkillOpt's ALFWorld environment. The command is the text of the
first `<action>` pair, in lower case; without one the reply's last 30 characters are sent. A
reply counts as well formed when it also has a `<think>` pair and no CJK character; that is
recorded and changes nothing.
"""

from __future__ import annotations

import re

_ACTION = re.compile(r"<action>(.*?)</action>", re.IGNORECASE | re.DOTALL)
_THINK = re.compile(r"<think>.*?</think>", re.IGNORECASE | re.DOTALL)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_TAIL_CHARS = 30


def command_in(reply: str) -> str:
    """Return the command of a chat reply."""
    match = _ACTION.search(reply)
    text = match[1] if match is not None else reply[-_TAIL_CHARS:]
    return " ".join(text.lower().split())


def first_line(reply: str) -> str:
    """Return the command of a plain completion: its first line that is not blank."""
    line = next((line for line in reply.split("\n") if line.strip()), "")
    return " ".join(line.lstrip("> ").lower().split())


def is_well_formed(reply: str) -> bool:
    """Return whether a chat reply keeps the form that was asked for."""
    return bool(_ACTION.search(reply) and _THINK.search(reply)) and not _CJK.search(reply)

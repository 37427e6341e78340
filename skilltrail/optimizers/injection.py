"""What may not enter a skill unless the tasks themselves contain it: addresses, commands, keys.

Nor may, whatever the tasks contain, a character that nobody sees.

A trajectory holds text that anyone may have written (tool output, pages, files). A rule that
carries such text's web address, shell command or credential would make an agent act on it in
every later task, so it is refused, whoever proposes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import zip_longest

from skilltrail.core.hidden import unseen_codes
from skilltrail.core.redact import Redactor
from skilltrail.skill.risk_patterns import COMMAND, COMMENT, LINK, PATH
from skilltrail.skill.risks import plain

_TRAILING = ".,;:!?*_"
_SHOWN_CHARS = 80
_SHOWN_CODES = 5


class TaskText:
    """The text of the tasks and of the current skill: what stands there may be said."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(texts)

    def __contains__(self, text: str) -> bool:
        return text.casefold() in self._folded

    @cached_property
    def _folded(self) -> str:
        return plain("\n".join(self._texts)).casefold()


def foreign_text(content: str, tasks: TaskText) -> str | None:
    """Return why `content` is refused, or None."""
    shown = plain(content)
    for code, found in _finds(shown):
        if found not in tasks:
            return f"{code}: {_quoted(found)} does not stand in the tasks"
    if codes := unseen_codes(content.replace("\r\n", "\n")):
        return f"invisible: the text holds {', '.join(codes[:_SHOWN_CODES])}, which nobody sees"
    # Nothing of a credential is shown, not even in a reason.
    hidden = Redactor().text(shown)
    lines = zip_longest(shown.split("\n"), hidden.split("\n"), fillvalue="")
    for line, safe in lines if hidden != shown else ():
        if line != safe and line.strip() not in tasks:
            return "credential: the text holds what looks like a password, key or token"
    return None


def _finds(text: str) -> Iterator[tuple[str, str]]:
    for found in LINK.finditer(text):
        yield "web_address", found[0].rstrip(_TRAILING)
    for found in COMMAND.finditer(text):
        yield "shell_command", found[0].strip().rstrip(_TRAILING)
    for found in PATH.finditer(text):
        yield "private_path", found[0].rstrip(_TRAILING)
    for found in COMMENT.finditer(text):
        yield "comment", found[0]


def _quoted(text: str) -> str:
    shown = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
    return json.dumps(shown, ensure_ascii=False)

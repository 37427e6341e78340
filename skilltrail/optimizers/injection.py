"""What may not enter a skill unless the tasks themselves contain it: addresses, commands, keys.

Nor may, whatever the tasks contain, a character that nobody sees.

A trajectory holds text that anyone may have written (tool output, pages, files). A rule that
carries such text's web address, shell command or credential would make an agent act on it in
every later task, so it is refused, whoever proposes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import zip_longest

from skilltrail.core.hidden import unseen_codes
from skilltrail.core.redact import Redactor
from skilltrail.skill.match import clipped
from skilltrail.skill.risk_patterns import COMMAND, COMMENT, LINK, PATH
from skilltrail.skill.risks import plain

_TRAILING = ".,;:!?*_"
_SHOWN_CHARS = 80
_SHOWN_CODES = 5
_FILE = r"(?!/)(?!~)[\w./-]+"
_PYTHON = re.compile(
    rf"python3?\s+(?:{_FILE}\.py|-m\s+(?:unittest|pytest|py_compile|json\.tool)\b[\w\s./=-]*)"
)
_SHELL = re.compile(rf"{_PYTHON.pattern}|(?:ba|z|da|k)?sh\s+{_FILE}\.sh|node\s+{_FILE}\.js")


class TaskText:
    """The text of the tasks and of the current skill: what stands there may be said."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(texts)

    def __contains__(self, text: str) -> bool:
        return text.casefold() in self._folded

    @cached_property
    def _folded(self) -> str:
        return plain("\n".join(self._texts)).casefold()


def foreign_text(content: str, tasks: TaskText, agent: tuple[str, ...] = ()) -> str | None:
    """Return why `content` is refused, or None; `agent` is what the agent can do."""
    shown = plain(content)
    for code, found in _finds(shown):
        if found not in tasks and not (code == "shell_command" and may_run(found, agent)):
            return f"{code}: {clipped(found, _SHOWN_CHARS)} does not stand in the tasks"
    if codes := unseen_codes(content.replace("\r\n", "\n")):
        return f"invisible: the text holds {', '.join(codes[:_SHOWN_CODES])}, which nobody sees"
    # Nothing of a credential is shown, not even in a reason.
    hidden = Redactor().text(shown)
    lines = zip_longest(shown.split("\n"), hidden.split("\n"), fillvalue="")
    for line, safe in lines if hidden != shown else ():
        if line != safe and line.strip() not in tasks:
            return "credential: the text holds what looks like a password, key or token"
    return None


def may_run(command: str, agent: tuple[str, ...]) -> bool:
    """Return whether an agent that can do `agent` may be told this command.

    Programs of its own work folder and their tests; nothing that fetches, installs, deletes,
    raises rights, reaches another place or carries a program in its words.
    """
    if not {"python", "shell"} & set(agent) or ".." in command:
        return False
    allowed = _PYTHON if "shell" not in agent else _SHELL
    return allowed.fullmatch(command) is not None


def procedures(content: str, tasks: TaskText, agent: tuple[str, ...]) -> list[str]:
    """Return the commands in `content` that pass only because of what the agent can do."""
    found = [text for code, text in _finds(plain(content)) if code == "shell_command"]
    return [text for text in found if text not in tasks and may_run(text, agent)]


def _finds(text: str) -> Iterator[tuple[str, str]]:
    for found in LINK.finditer(text):
        yield "web_address", found[0].rstrip(_TRAILING)
    for found in COMMAND.finditer(text):
        yield "shell_command", found[0].strip().rstrip(_TRAILING)
    for found in PATH.finditer(text):
        yield "private_path", found[0].rstrip(_TRAILING)
    for found in COMMENT.finditer(text):
        yield "comment", found[0]

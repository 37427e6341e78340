"""What may not enter a skill unless the tasks themselves contain it: addresses, commands, keys.

Nor may, whatever the tasks contain, a character that nobody sees.

A trajectory holds text that anyone may have written (tool output, pages, files). A rule that
carries such text's web address, shell command or credential would make an agent act on it in
every later task, so it is refused, whoever proposes it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import zip_longest

from skilltrail.core.hidden import UNSEEN, unseen_codes
from skilltrail.core.redact import Redactor

_TLDS = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|dev|app|co|me|tv|cc|xyz|site|online|shop|top|club"
    "|cloud|link|page|sh|to|ly|gg|invalid|test|example|local|onion|de|uk|fr|nl|eu|ru|cn|jp|kr|in"
    "|br|us|ca|ch|it|es|pl|se"
)
_PATH = r"""[^\s<>"'`)\]]*"""
_ADDRESS = re.compile(
    rf"""
      \b[a-z][a-z0-9+-]{{0,40}}://{_PATH}                     # any scheme
    | \b(?:mailto|javascript|vbscript):[^\s]{_PATH}
    | \bdata:\w+/{_PATH}
    | \bwww\.{_PATH}
    | (?<![\w:/])//(?:[\w-]+\.)+[a-z]\w*{_PATH}
    | (?<![\w.+-])[\w.+-]{{1,64}}@[\w-]+(?:\.[\w-]+)+       # mail
    | (?<![\w.@/-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+   # a bare host
        (?-i:{_TLDS})(?::\d+)?(?:/{_PATH})?(?![\w-]|\.\w)
    | (?-i:(?<![\w.@/-])(?:[A-Z0-9-]+\.)+(?:COM|ORG|INFO|INVALID|EXAMPLE)\b)
    | (?<![\w.@/-])(?:[a-z0-9-]+\.)+[a-z]{{2,}}/[^\s?`]{{0,200}}\?{_PATH}
    | (?<![\w.])(?:\d{{1,3}}\.){{3}}\d{{1,3}}(?::\d+)?(?:/{_PATH})?(?![\w.])
    """,
    re.IGNORECASE | re.VERBOSE,
)
_COMMAND = re.compile(
    r"""
      \b(?i:curl|wget)\s+(?:-|["']?\$|\S*[./:]\S)[^\n`]*
    | \b(?:sudo|doas)\s+[a-z./][^\n`]*
    | \brm\s+-[a-z]+[^\n`]*
    | \b(?:chmod|chown)\s+(?:[+0-7]|-R|\w+:)[^\n`]*
    | \b(?:pip3?|pipx|npm|npx|yarn|pnpm|apt|apt-get|brew|yum|dnf|conda|cargo|gem)\s+
        (?:-\S+\s+)*(?:install|uninstall|add|remove|update|upgrade|exec)\s+[^\n`]*
    | \bgit\s+(?:clone|push|pull|fetch|remote|config|reset|checkout|rm)\b[^\n`]*
    | \b(?:ssh|scp|rsync|sftp|telnet)\s+\S*[@:]\S*[^\n`]*
    | \b(?:nc|ncat|netcat)\s+(?:-|\S+\s+\d+)[^\n`]*
    | \b(?:ba|z|da|k|fi)?sh\s+-c\b[^\n`]*
    | \|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\s*(?:-|`|(?m:$))
    | \b(?:python3?|perl|ruby|node|php)\s+-(?:c|e|m)\b[^\n`]*
    | \b(?:python3?|perl|ruby|node|php|(?:ba|z|da|k)?sh|source)\s+
        [\w./~-]+\.(?:py|pl|rb|js|php|sh)\b[^\n`]*
    | \b(?:powershell|pwsh)(?:\.exe)?\s+-[^\n`]*
    | \b(?:Invoke-(?:WebRequest|Expression|RestMethod)|Start-Process|iwr|iex)\s[^\n`]*
    | \b(?:os\.system|os\.popen|subprocess\.\w+|shell_exec|child_process\.\w+)\s*\([^\n`]*
    | \b(?:docker|podman|kubectl)\s+(?:run|exec|pull|push|apply|delete)\b[^\n`]*
    | \b(?:crontab|mkfs[\w.]{0,20}|launchctl|systemctl|schtasks|reg)\s+
        (?:-|add|delete|enable|start)[^\n`]*
    | \bbase64\s+(?:-d|-D|--decode)[^\n`]*
    | \bdd\s+if=[^\n`]*
    | (?<![\w-])
        (?:cat|ls|cp|mv|ln|tee|sed|awk|tar|find|grep|touch|mkdir|head|tail|xargs|openssl)
        \s+(?:-[a-zA-Z-]|~/|/\w|\.\.?/)[^\n`]*
    | \becho\s[^\n`>]{0,200}>\s*\S[^\n`]*
    | `[^`\n|]*\|\s*(?:grep|base64|xargs|tee|curl|nc|awk|sed|sort|head|tail|sh)\b[^`\n]*
    | \b(?:eval|bash|sh|source)\s+["']?(?:\$[({]|<\()[^\n`]*
    | \b(?:eval|exec|__import__)\s*\([^\n`]*
    | (?m:^[ \t>*-]*`?\$\s[a-z./]{2,}(?:[ \t][^\n$`]*)?`?$)   # a line with a shell prompt
    | (?m:^[ \t]*(?:```|~~~)[ \t]*(?:ba|z|c|k|fi|power)?sh(?:ell(?:-session|script)?)?\b[^\n]*)
    | (?m:^[ \t]*(?:```|~~~)[ \t]*(?:console|ps1|bat|cmd|batch)\b[^\n]*)
    """,
    re.VERBOSE,
)
_TRAILING = ".,;:!?*_"
_SHOWN_CHARS = 80
_PIECE = 1024
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
    for found in _ADDRESS.finditer(text):
        yield "web_address", found[0].rstrip(_TRAILING)
    for found in _COMMAND.finditer(text):
        yield "shell_command", found[0].strip().rstrip(_TRAILING)


def plain(text: str) -> str:
    """Return `text` with look-alike and invisible signs made plain."""
    # Piece by piece: putting many accents of one letter in order takes the square of them.
    pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
    folded = "".join(unicodedata.normalize("NFKC", piece) for piece in pieces)
    shown = UNSEEN.sub("", folded)
    return re.sub(r"\bhxxp", "http", shown, flags=re.IGNORECASE).replace("[.]", ".")


def _quoted(text: str) -> str:
    shown = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
    return json.dumps(shown, ensure_ascii=False)

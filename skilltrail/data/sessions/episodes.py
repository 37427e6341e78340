"""Episodes of a session whose outcome can be checked: what was asked, and what was right.

corrected   the person said that a reply was wrong, and let the next one stand
tests       tests failed, and the same command passed before the reply
committed   the work was committed in the end, and nothing was taken back
repeated    the same request stands in several sessions

The rules read words and exit codes; what they find is proposed and never trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skilltrail.data.sessions.read import RecordedSession, SessionEntry, Speaker

# How people say that a reply was not what they wanted: English, German, French, Spanish,
# Portuguese, Italian, Russian, Korean, Japanese, Chinese.
_CORRECTION = re.compile(
    r"""(?ix)^\W*(?:
      no[,.!\s] | nope\b | wrong\b | incorrect\b | not\s(?:quite|what|right|correct)\b
    | that(?:'|\u2019)?s\s(?:not|wrong|incorrect)\b | that\sis\s(?:not|wrong|incorrect)\b
    | this\sis\s(?:not|wrong) | you\s(?:forgot|missed|misread|got\b.{0,20}\bwrong)\b
    | i\s(?:said|asked|meant)\b | actually[,\s] | it\sshould\s(?:be|have) | should\sbe\b
    | nein\b | falsch\b | das\s(?:ist|war)\s(?:nicht|falsch) | ich\smeinte\b
    | non[,.!\s] | c(?:'|\u2019)est\s(?:faux|pas) | incorrecto\b | eso\sno\b
    | n\u00e3o[,.!\s] | errado\b | isso\sn\u00e3o\b | sbagliato\b | non\s\u00e8\b
    | нет[,.!\s] | неверно\b | неправильно\b | это\sне\b
    | 아니 | 틀렸 | 그게\s아니 | 잘못 | 違 | いいえ | 不对 | 不對 | 错
    )"""
)
_TESTS = re.compile(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest"
    r"|(?:npm|pnpm|yarn|bun|cargo|go|make|mvn|gradle|dotnet|mix)\s+(?:run\s+)?test)\b"
)
_FAILED = re.compile(r"(?im)\b[1-9]\d* (?:failed|failing|errors?)\b|^FAIL(?:ED)?\b|^Traceback")
_PASSED = re.compile(
    r"(?i)\b[1-9]\d* pass(?:ed|ing)\b|^(?:ok|PASS)\b|\btest result: ok\b", re.M
)
_COMMIT = re.compile(r"\bgit\b[^|;&\n]{0,300}\bcommit\b")
_TAKEN_BACK = re.compile(
    r"\bgit\b[^|;&\n]{0,300}\b(?:revert|restore|stash|reset\s+--hard|checkout\s+--)"
)
_FEW_CHARS, _MANY_CHARS = 12, 4_000  # of a request that can stand alone


@dataclass(frozen=True)
class Episode:
    """One task with its outcome.

    Attributes:
        kind: see the module's docstring.
        request: what the person asked first.
        reply: the reply that stood.
        said: the correction, or the command that passed; "" for none.
    """

    kind: str
    session: str
    request: str
    reply: str
    said: str = ""


@dataclass
class _Exchange:
    """A person's message and all that followed until the next one."""

    asked: str
    entries: list[SessionEntry]

    @property
    def reply(self) -> str:
        texts = [entry.text for entry in self.entries if entry.by is Speaker.AGENT]
        return texts[-1] if texts else ""


def episodes_of(session: RecordedSession) -> Iterator[Episode]:
    """Yield the episodes of one session, at most one for each request, in order."""
    exchanges = list(_exchanges(session.said))
    at = 0
    while at < len(exchanges):
        first = exchanges[at]
        after = at + 1
        while after < len(exchanges) and _CORRECTION.match(exchanges[after].asked):
            after += 1
        found = _episode(session.id, first, exchanges[at + 1 : after])
        if found is not None:
            yield found
        at = after


def _exchanges(said: Sequence[SessionEntry]) -> Iterator[_Exchange]:
    open: _Exchange | None = None
    for entry in said:
        if entry.by is Speaker.PERSON:
            if open is not None and not open.entries:  # two messages in a row are one
                open.asked = f"{open.asked}\n\n{entry.text}"
                continue
            if open is not None:
                yield open
            open = _Exchange(entry.text, [])
        elif open is not None:
            open.entries.append(entry)
    if open is not None:
        yield open


def _episode(
    session: str, first: _Exchange, corrections: Sequence[_Exchange]
) -> Episode | None:
    last = corrections[-1] if corrections else first
    if not _FEW_CHARS <= len(first.asked.strip()) <= _MANY_CHARS or not last.reply.strip():
        return None
    entries = [entry for one in (first, *corrections) for entry in one.entries]
    if any(e.by is Speaker.CALL and _TAKEN_BACK.search(e.text) for e in entries):
        return None
    if corrections:
        said = "\n".join(one.asked for one in corrections)
        return Episode("corrected", session, first.asked, last.reply, said)
    passed = _tests_that_passed(entries)
    if passed:
        return Episode("tests", session, first.asked, last.reply, passed)
    if any(e.by is Speaker.CALL and _COMMIT.search(e.text) for e in entries):
        return Episode("committed", session, first.asked, last.reply)
    return Episode("asked", session, first.asked, last.reply)


def _tests_that_passed(entries: Sequence[SessionEntry]) -> str:
    """Return the command of tests that failed first and passed at last, or ""."""
    outcome: dict[str, list[bool]] = {}
    command = ""
    for entry in entries:
        if entry.by is Speaker.CALL:
            command = entry.text if _TESTS.search(entry.text) else ""
        elif entry.by is Speaker.RESULT and command:
            failed = entry.failed
            if failed is None and (_FAILED.search(entry.text) or _PASSED.search(entry.text)):
                failed = _FAILED.search(entry.text) is not None
            if failed is not None:
                outcome.setdefault(command, []).append(failed)
            command = ""
    good = [c for c, failures in outcome.items() if failures[0] and not failures[-1]]
    return good[-1] if good else ""

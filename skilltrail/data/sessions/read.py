"""Session files of agent programs, as they lie on disk: who said what, in order.

Claude Code writes `projects/<folder>/<session>.jsonl`: a line per message, with `message.role`
and `message.content` (a text or blocks text, tool_use, tool_result). The Codex CLI writes
`sessions/<date>/rollout-*.jsonl`: lines of `type: response_item` whose payload is a message, a
call or its output. Any other `.jsonl` may hold {"role", "content"} lines. Files are only read.
A line that is no JSON (the last one of a killed session) is passed over; so is one too long.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from skilltrail.core.errors import UsageError

HOMES = {"claude": (".claude", "projects"), "codex": (".codex", "sessions")}
_HOME_VARIABLES = {"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"}
_MOST_LINE_BYTES = 8_000_000
_BOM = b"\xef\xbb\xbf"  # what some editors put in front of a file
_MOST_CHARS = 20_000  # of one message: what is over has no part in any rule here
# What the programs put into a person's mouth: instructions files, the state of the machine.
_WRAPPED = re.compile(
    r"^\s*(?:<(?!/)[a-z_-]+>|# AGENTS\.md instructions|Caveat: |\[Request interrupted)"
)
_INSERTED = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)


class Speaker(str, Enum):
    PERSON = "person"
    AGENT = "agent"
    CALL = "call"  # a tool call, its command or arguments as text
    RESULT = "result"  # what the tool answered


@dataclass(frozen=True)
class SessionEntry:
    """One entry of a session; `failed` is what a result says of itself, None = nothing."""

    by: Speaker
    text: str
    failed: bool | None = None


@dataclass
class RecordedSession:
    """One session.

    Attributes:
        id: of the program's own, else the file's name; never a path.
        unread: lines that were no JSON, or too long.
        nested: True where an agent began it: its requests are no person's.
    """

    id: str
    said: list[SessionEntry] = field(default_factory=list)
    unread: int = 0
    nested: bool = False


def session_files(source: str, environ: Mapping[str, str]) -> list[Path]:
    """Return the session files of a program (`claude`, `codex`) or below a folder, sorted.

    Raises:
        UsageError: there is no such folder, or no file in it.
    """
    if source in HOMES:
        own = environ.get(_HOME_VARIABLES[source])
        first, second = HOMES[source]
        base = Path(own) if own else Path(environ.get("HOME", "~")).expanduser() / first
        folder = base / second
    else:
        folder = Path(source)
    remedy = "Name claude, codex, or a folder with .jsonl files"
    if not folder.is_dir():
        raise UsageError(f"--from {source}", f"{folder} is no folder", remedy)
    found = sorted(
        Path(place, name)
        for place, _, names in os.walk(folder)
        for name in names
        if name.endswith(".jsonl")
    )
    if not found:
        raise UsageError(f"--from {source}", f"no .jsonl file below {folder}", remedy)
    return found


def read_session(path: Path) -> RecordedSession:
    """Return one session; memory is bounded by its longest line and what is kept of it.

    Raises:
        OSError: the file cannot be read.
    """
    session = RecordedSession(path.stem)
    decode = msgspec.json.Decoder().decode
    with path.open("rb") as file:
        while line := file.readline(_MOST_LINE_BYTES):
            if not line.endswith(b"\n") and len(line) == _MOST_LINE_BYTES:
                session.unread += 1
                _skip_line(file)
                continue
            if not line.strip():
                continue
            try:
                entry = decode(line.removeprefix(_BOM))
            except (msgspec.DecodeError, RecursionError):
                session.unread += 1
                continue
            if isinstance(entry, dict):
                _add(session, entry)
    return session


def _skip_line(file: Any) -> None:
    while (more := file.readline(_MOST_LINE_BYTES)) and not more.endswith(b"\n"):
        pass


def _add(session: RecordedSession, entry: Mapping[str, Any]) -> None:
    id = entry.get("sessionId")
    if isinstance(id, str) and id:
        session.id = id
    if entry.get("isSidechain") or entry.get("isMeta") or entry.get("isCompactSummary"):
        return
    payload = entry.get("payload")
    if entry.get("type") == "session_meta" and isinstance(payload, dict):
        session.id = str(payload.get("id") or session.id)
        source = payload.get("source")  # {"subagent": …} where an agent began it
        session.nested = session.nested or (isinstance(source, dict) and "subagent" in source)
    elif session.nested:
        return
    elif entry.get("type") == "response_item" and isinstance(payload, dict):
        session.said += _of_codex(payload)
    elif isinstance(entry.get("message"), dict):
        session.said += _of_message(entry["message"])
    elif "role" in entry:
        session.said += _of_message(entry)


def _of_codex(payload: Mapping[str, Any]) -> Iterator[SessionEntry]:
    read = _CODEX.get(str(payload.get("type")))
    if read is not None:
        yield from read(payload)


def _codex_call(payload: Mapping[str, Any]) -> Iterator[SessionEntry]:
    said = payload.get("arguments", payload.get("input", payload.get("action", "")))
    value = said if not isinstance(said, str) else _json_or_text(said)
    yield SessionEntry(Speaker.CALL, _command(value))


def _codex_result(payload: Mapping[str, Any]) -> Iterator[SessionEntry]:
    output = payload.get("output")
    value = _json_or_text(output) if isinstance(output, str) else output
    code = None
    if isinstance(value, dict):
        about = value.get("metadata")
        code = about.get("exit_code") if isinstance(about, dict) else value.get("exit_code")
        value = value.get("output", value.get("content", ""))
    text = _text(value)
    if code is None:
        told = re.search(r"(?im)^(?:process exited with code|exit code:)\s*(-?\d+)", text)
        code = int(told[1]) if told else None
    yield SessionEntry(Speaker.RESULT, text, None if not isinstance(code, int) else code != 0)


def _of_message(message: Mapping[str, Any]) -> Iterator[SessionEntry]:
    """Yield what a message of {"role", "content"} says, in the order of its blocks."""
    person = message.get("role") == "user"
    if not person and message.get("role") != "assistant":
        return
    by = Speaker.PERSON if person else Speaker.AGENT
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    for block in blocks:
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        if kind == "tool_use":
            yield SessionEntry(Speaker.CALL, _command(block.get("input")))
        elif kind == "tool_result":
            error = block.get("is_error")
            text = _text(block.get("content"))
            yield SessionEntry(Speaker.RESULT, text, error if isinstance(error, bool) else None)
        elif kind in ("text", "input_text", "output_text"):
            text = _INSERTED.sub("", _text(block.get("text"))).strip()
            if text and not (person and _WRAPPED.match(text)):
                yield SessionEntry(by, text)


_CODEX: Mapping[str, Callable[[Mapping[str, Any]], Iterator[SessionEntry]]] = {
    "message": _of_message,
    "function_call": _codex_call,
    "custom_tool_call": _codex_call,
    "local_shell_call": _codex_call,
    "function_call_output": _codex_result,
    "custom_tool_call_output": _codex_result,
}


def _json_or_text(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _command(value: Any) -> str:
    """Return what a call would run: its command where it has one, else its arguments."""
    if isinstance(value, dict):
        for name in ("command", "cmd", "script"):
            if name in value:
                return _command(value[name])
        return str(msgspec.json.encode(value), "utf-8")[:_MOST_CHARS]
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return " ".join(value)[:_MOST_CHARS]
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value[:_MOST_CHARS]
    if isinstance(value, list):
        parts = [p if isinstance(p, str) else p.get("text") for p in value if _is_part(p)]
        return "\n".join(part for part in parts if isinstance(part, str))[:_MOST_CHARS]
    return ""


def _is_part(value: Any) -> bool:
    return isinstance(value, (str, dict))

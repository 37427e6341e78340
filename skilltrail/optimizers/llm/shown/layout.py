"""Messages, tool calls and JSON values as lines: nobody reads escaped line ends. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_INLINE_CHARS = 100


def sent_text(sent: Any) -> str:
    """Return what was sent to an agent: a prompt, a message, or a list of messages."""
    if isinstance(sent, str):
        return sent
    if isinstance(sent, Mapping):
        return _message(sent)
    if isinstance(sent, Sequence):
        return "\n".join(_message(message) for message in sent)
    return json_text(sent)


def reply_text(reply: str) -> str:
    """Return an agent's reply; one that is a JSON object or list is laid out."""
    stripped = reply.strip()
    if stripped[:1] not in ("{", "["):
        return reply
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return reply
    return laid_out(value) if value and isinstance(value, (dict, list)) else reply


def call_text(call: Mapping[str, Any]) -> str:
    """Return a tool call: its name, then its arguments."""
    arguments = call.get("arguments", call.get("input"))
    name = str(call.get("name", "?"))
    if arguments in (None, {}, ""):
        return name
    shown = laid_out(arguments)
    return f"{name} {shown}" if "\n" not in shown else f"{name}\n{_indented(shown)}"


def laid_out(value: Any) -> str:
    """Return a JSON value as `name: value` lines; text keeps its own line ends."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        parts = [_named(str(name), part) for name, part in value.items()]
    elif isinstance(value, list):
        parts = [_named("-", part).replace("-:", "-", 1) for part in value]
    else:
        return json_text(value)
    short = "\n" not in "".join(parts) and sum(map(len, parts)) <= _INLINE_CHARS
    return (", " if short and isinstance(value, Mapping) else "\n").join(parts)


def json_text(value: Any) -> str:
    """Return a JSON value on one line."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _named(name: str, value: Any) -> str:
    shown = laid_out(value)
    return f"{name}: {shown}" if "\n" not in shown else f"{name}:\n{_indented(shown)}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else "" for line in text.split("\n"))


def _message(message: Any) -> str:
    if not isinstance(message, Mapping):
        return json_text(message)
    parts = message.get("parts", message.get("content"))
    if not isinstance(parts, list):
        parts = [parts]
    text = "\n".join(_part(part) for part in parts)
    return f"{message.get('role', 'message')}: {text}"


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and isinstance(part.get("text"), str) and part["text"]:
        return str(part["text"])
    if isinstance(part, Mapping) and "digest" in part:
        return f"[{part.get('kind', 'file')} {str(part['digest'])[:12]}]"
    return json_text(part)

"""The agent's tools: glob, grep and read over the item's own files, and nothing else.

Limits as in SkillOpt's environment: 4,000 characters a read, 20 lines a grep, 50 names a glob.
`grep` looks for words as they are, capitals or not, never for a pattern, so no model can make
it run long. What a tool says is a function of the call and the files' bytes.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping
from typing import Any

READ_CHARS = 4000
READ_LINES = 80
GREP_LINES = 20
GREP_LINE_CHARS = 400
GLOB_NAMES = 50
MOST_PATTERN_CHARS = 400  # a longer pattern of brackets takes minutes to read


def _definition(name: str, says: str, required: list[str], **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "description": says,
        "parameters": {
            "type": "object",
            "properties": fields,
            "required": required,
            "additionalProperties": False,
        },
    }


_TEXT = {"type": "string"}
_WHOLE = {"type": "integer", "minimum": 1}
TOOLS = (
    _definition(
        "glob", "List the files whose name fits a pattern.", ["pattern"], pattern=_TEXT
    ),
    _definition(
        "grep",
        "Show the lines of a file that hold a text, with their numbers.",
        ["path", "pattern"],
        path=_TEXT,
        pattern=_TEXT,
    ),
    _definition(
        "read",
        "Show lines of a file from line `start` on.",
        ["path"],
        path=_TEXT,
        start=_WHOLE,
        limit=_WHOLE,
    ),
)


def run_tool(name: str, arguments: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """Return what a tool says; wrong use is answered in words, never raised.

    Args:
        files: name -> whole text of each file that the agent may see.
    """
    if name == "glob":
        return _glob(_text(arguments, "pattern", "*"), files)
    if name not in ("grep", "read"):
        return f"[there is no tool {name!r}; use glob, grep or read]"
    path = _text(arguments, "path", "")
    if path not in files:
        return f"[no file {path!r}; there are {', '.join(sorted(files)[:GLOB_NAMES])}]"
    lines = files[path].split("\n")
    if name == "grep":
        return _grep(_text(arguments, "pattern", ""), lines)
    return _read(lines, _whole(arguments, "start", 1), _whole(arguments, "limit", READ_LINES))


def shown_call(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call in the form of the text protocol."""
    return f"CALL {name} {json.dumps(dict(arguments), ensure_ascii=False, sort_keys=True)}"


def _glob(pattern: str, files: Mapping[str, str]) -> str:
    if len(pattern) > MOST_PATTERN_CHARS:
        return f"[a pattern has at most {MOST_PATTERN_CHARS} characters]"
    found = [name for name in sorted(files) if fnmatch.fnmatchcase(name, pattern)]
    return "\n".join(found[:GLOB_NAMES]) if found else "[no file fits]"


def _grep(pattern: str, lines: list[str]) -> str:
    wanted = pattern.casefold().strip()
    if not wanted:
        return "[grep needs a pattern]"
    found = [
        f"{number}: {line[:GREP_LINE_CHARS]}"
        for number, line in enumerate(lines, start=1)
        if wanted in line.casefold()
    ]
    if not found:
        return "[no line holds it]"
    more = len(found) - GREP_LINES
    note = [f"[and {more} more lines]"] if more > 0 else []
    return "\n".join(found[:GREP_LINES] + note)


def _read(lines: list[str], start: int, limit: int) -> str:
    shown = "\n".join(lines[start - 1 : start - 1 + limit])
    if not shown.strip():
        return f"[no text there; the file has {len(lines)} lines]"
    if len(shown) <= READ_CHARS:
        return shown
    return f"{shown[:READ_CHARS]}\n[cut at {READ_CHARS} characters; read from a later line]"


def _text(arguments: Mapping[str, Any], name: str, default: str) -> str:
    value = arguments.get(name, default)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _whole(arguments: Mapping[str, Any], name: str, default: int) -> int:
    """Return a whole number of at least 1; models also send it as text."""
    value = arguments.get(name, default)
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value.strip()[:18])
    return max(1, value) if isinstance(value, int) and not isinstance(value, bool) else default

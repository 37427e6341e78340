"""JSON values in a model's reply: which stand in it, found without guessing.

The scan knows strings, so braces and code fences inside a string are text. Reasoning blocks
(`<think>…</think>` and the like) are passed over whole. Prose may hold braces: only `{` and
a quote or `}` after it begin an object, and nothing inside an object or a list is looked at
alone. Every sign is visited once, so no reply can make a scan slow.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from skilltrail.core.canon import finite

_TAGS = "think|thinking|thoughts?|reasoning|reflection|analysis|scratchpad|seed:think"
_MARK = re.compile(
    rf"""(?P<open><(?P<tag>{_TAGS})(?:\s[^<>]*)?> | \[THINK\])
    | (?P<close></(?:{_TAGS})\s*> | \[/THINK\])
    | (?P<object>\{{\s*["}}])
    | (?P<list>\[\s*["{{\[\]\d-])""",
    re.IGNORECASE | re.VERBOSE,
)
_MAX_DEPTH = 32
_STRUCTURE = re.compile(r'["\[\]{}]')
_STRING_END = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class _Refused(ValueError):
    """JSON that Python would read and that says nothing definite. The text is the fault."""


@dataclass
class Scan:
    """What a reply holds outside its reasoning.

    Attributes:
        objects: the JSON objects, in order.
        others: how many lists stand outside objects.
        broken: one sentence for each text that begins as an object and is none.
        repairs: `control_characters` when strings held raw line ends or the like.
    """

    objects: list[dict[str, Any]] = field(default_factory=list)
    others: int = 0
    broken: list[str] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)


def scan(text: str) -> Scan:
    """Return the JSON objects of a reply, its reasoning left out."""
    found = Scan()
    at = 0
    while (mark := _MARK.search(text, at)) is not None:
        if mark["open"]:
            end = _block_end(text, mark)
            if end is None:
                found.broken.append("open_reasoning: the reasoning block is never closed")
                break
            at = end
        elif mark["close"]:
            # Its opening stood in the prompt: all that came before was reasoning.
            found = Scan()
            at = mark.end()
        else:
            at = _value(text, mark.start(), found)
    return found


def _block_end(text: str, opening: re.Match[str]) -> int | None:
    """Return where the reasoning block ends, inner blocks of the same name included."""
    mark = r"\[(/?)THINK\]"
    if opening["tag"]:
        mark = rf"<(/?){re.escape(opening['tag'])}(?:\s[^<>]*)?>"
    tag = re.compile(mark, re.IGNORECASE)
    depth = 0
    for found in tag.finditer(text, opening.start()):
        depth += -1 if found[1] else 1
        if depth == 0:
            return found.end()
    return None


def _value(text: str, start: int, found: Scan) -> int:
    """Read the value that begins at `start` into `found`; return where to go on."""
    end, depth = _balanced_end(text, start)
    if end is None:
        found.broken.append("unfinished: an object or a list is never closed")
        return len(text)
    is_object = text[start] == "{"
    try:
        if depth > _MAX_DEPTH:
            raise _Refused("not_json: the value is nested too deeply")
        value, repaired = _load(text[start:end])
    except ValueError as error:
        if is_object:
            found.broken.append(_sentence(error))
        return end
    if not is_object:
        found.others += 1
        return end
    found.objects.append(value)
    if repaired and "control_characters" not in found.repairs:
        found.repairs.append("control_characters")
    return end


def _balanced_end(text: str, start: int) -> tuple[int | None, int]:
    """Return the place after the bracket that closes the one at `start`, strings skipped,
    and how deep brackets lie in each other; (None, _) when it is never closed."""
    depth = deepest = 0
    at = start
    while (found := _STRUCTURE.search(text, at)) is not None:
        at = found.end()
        if found[0] == '"':
            string = _STRING_END.match(text, at)
            if string is None:
                break
            at = string.end()
            continue
        depth += 1 if found[0] in "[{" else -1
        deepest = max(deepest, depth)
        if depth == 0:
            return at, deepest
    return None, deepest


def _load(source: str) -> tuple[Any, bool]:
    """Return the JSON value, and whether control characters in strings had to be let pass."""
    try:
        return _decode(source, strict=True), False
    except json.JSONDecodeError as error:
        if "control character" not in error.msg:
            raise
        return _decode(source, strict=False), True


def _decode(source: str, *, strict: bool) -> Any:
    return json.loads(
        source,
        strict=strict,
        object_pairs_hook=_unique,
        parse_constant=_refuse_constant,
        parse_float=finite,
    )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _Refused(f"duplicate_key: an object has the key {json.dumps(twice)} twice")
    return dict(pairs)


def _refuse_constant(name: str) -> Any:
    raise _Refused(f"not_json: {name} is no JSON number")


def _sentence(error: ValueError) -> str:
    if isinstance(error, _Refused):
        return str(error)
    if isinstance(error, json.JSONDecodeError):
        # Only place and kind: the wording differs between Python versions.
        return f"not_json: the object breaks JSON at its character {error.pos + 1}"
    return "not_json: the object holds a number that is too large"

"""Checks of a whole reply, declared in a record: `{"op": "contains", "arg": "Key risks"}`.

`section_contains` looks for a heading. It is literal, takes capitals, a number in front and
words behind as they come (`### 1. Key risks (overview)` has the section `key risks`, and so has
`## ⚠ Step 2 – [Key risks](#risks)`), and says
nothing about content: checks like it are `format_only`, and a reply that fails these alone is
told apart.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from skilltrail.envs.kit.fields import shown
from skilltrail.envs.protocol import Where
from skilltrail.skill.markdown import HEADING, scan

_UNSOUND = (re.error, DeprecationWarning, FutureWarning, RecursionError, OverflowError)
_NUMBER = r"(?:\d+(?:\.\d+)*|[ivxlc]+|[a-z])"
_NUMBERING = re.compile(
    rf"(?:(?:section|part|chapter|step)\s+)?[(\[]?\s*{_NUMBER}"
    r"(?:\s*[.):\]]|\s+[-\u2013\u2014])\s*|\d+\s+"
)
_SIGNS = re.compile(r"[^\w(\[]+")
_CLOSING = re.compile(r"\s+#+\s*$")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
_EMPHASIS = re.compile(r"[*`]|(?<!\w)_+|_+(?!\w)")


@dataclass(frozen=True)
class Op:
    """What a check does: `passes(reply, arg)`; `format_only` when it looks at form alone."""

    passes: Callable[[str, Any], bool]
    arg: type
    format_only: bool = False


def contains(reply: str, arg: str) -> bool:
    """Return whether a reply holds a text, capitals or not."""
    return arg.casefold() in reply.casefold()


def has_section(reply: str, arg: str) -> bool:
    """Return whether a reply has a heading that begins with a text."""
    wanted = _with_and_without_number(arg)
    found = [form for heading in headings(reply) for form in _with_and_without_number(heading)]
    return any(_begins_with(heading, text) for heading in found for text in wanted)


def headings(reply: str) -> list[str]:
    """Return the texts of a reply's Markdown headings (none inside code), without emphasis."""
    lines = reply.replace("\r\n", "\n").split("\n")
    found = []
    for block in scan(lines):
        if block.kind == HEADING:
            text = _CLOSING.sub("", lines[block.start].lstrip(" #"))
            text = _EMPHASIS.sub("", _LINK.sub(r"\1", text))
            found.append(_ESCAPE.sub(r"\1", text).strip())
    return found


OPS: Mapping[str, Op] = {
    "contains": Op(contains, str),
    "not_contains": Op(lambda reply, arg: not contains(reply, arg), str),
    "regex": Op(lambda reply, arg: re.search(arg, reply) is not None, str),
    "not_regex": Op(lambda reply, arg: re.search(arg, reply) is None, str),
    "section_contains": Op(has_section, str, format_only=True),
    "max_chars": Op(lambda reply, arg: len(reply) <= arg, int, format_only=True),
    "max_words": Op(lambda reply, arg: len(reply.split()) <= arg, int, format_only=True),
    "min_words": Op(lambda reply, arg: len(reply.split()) >= arg, int, format_only=True),
}


def read_checks(value: Any, where: Where) -> list[dict[str, Any]]:
    """Return the checks of a record as data, each `{"op", "arg"}`.

    Raises:
        DataError: they are no list of checks, an op is unknown, or a pattern does not compile.
    """
    if not isinstance(value, list) or not value:
        raise where.error("checks", shown(value), 'Give a list, as in [{"op": …, "arg": …}]')
    return [_read_check(one, where) for one in value]


def passed(check: Mapping[str, Any], reply: str) -> bool:
    """Return whether a reply passes one check that `read_checks` has returned."""
    return OPS[check["op"]].passes(reply, check["arg"])


def is_format_only(check: Mapping[str, Any]) -> bool:
    """Return whether a check looks at form alone."""
    return OPS[check["op"]].format_only


def compile_pattern(pattern: str, field: str, where: Where) -> None:
    """Raise `DataError` with the compile error when a pattern is not sound."""
    try:
        with warnings.catch_warnings():
            # What Python 3.10 only warns of (flags in the middle) is an error from 3.11 on.
            warnings.simplefilter("error")
            re.compile(pattern)
    except _UNSOUND as error:
        raise where.error(
            field, f"the pattern {shown(pattern)} does not compile: {error}", "Correct it"
        ) from error


def _read_check(value: Any, where: Where) -> dict[str, Any]:
    op = str(value.get("op")) if isinstance(value, Mapping) else ""
    if op not in OPS:
        near = difflib.get_close_matches(op, OPS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise where.error("checks", shown(value), f"{hint}The ops are {', '.join(OPS)}")
    arg, wanted = value.get("arg"), OPS[op].arg
    if not isinstance(arg, wanted) or isinstance(arg, bool) or arg == "":
        kind = "a text that is not empty" if wanted is str else "a whole number"
        raise where.error("checks", f"{op} with arg {shown(arg)}", f"Its arg is {kind}")
    if isinstance(arg, str) and op.endswith("regex"):
        compile_pattern(arg, "checks", where)
    return {"op": op, "arg": arg}


def _with_and_without_number(text: str) -> set[str]:
    """Return a heading as it is compared, and the same without numbers or signs in front."""
    whole = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    forms, rest = {whole}, whole
    while (front := _SIGNS.match(rest) or _NUMBERING.match(rest)) is not None:
        rest = rest[front.end() :]
        forms.add(rest)
    return forms - {""}


def _begins_with(heading: str, wanted: str) -> bool:
    rest = heading[len(wanted) :]
    return heading.startswith(wanted) and not (rest[:1].isalnum() or rest[:1] == "_")

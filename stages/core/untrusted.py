"""An edit as a model or a file proposes it, read with nothing taken for granted.

What cannot be read is still accounted for: an `Unusable` takes the edit's place and gets the
result `invalid` when the edits are applied, so that rows and proposals always add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stages.core.canon import clean
from stages.core.edit import OPS, Edit

# What a proposer may ask for; `write_region` is left to the owners of the regions.
PROPOSED_OPS = tuple(op for op in OPS if op != "write_region")
KINDS = ("rule", "example", "note", "guidance")

_FILE_KEYS = ("file", "filename", "file_name", "file_path", "filepath", "path", "target_file")


@dataclass(frozen=True)
class Unusable:
    """A proposed edit that cannot be read. `reason` is "code: sentence"."""

    reason: str
    id: str = ""


def edit_from_untrusted(value: object) -> Edit | Unusable:
    """Return the edit that a JSON value describes, or why it describes none.

    A list of strings as content becomes list items. Claimed support is not read (it is the
    number of items behind an edit); an unknown kind counts as `rule`, the strictest one.
    """
    if not isinstance(value, Mapping):
        return Unusable(f"not_an_object: an edit is a JSON object, found {_type(value)}")
    named = next((key for key in _FILE_KEYS if value.get(key) is not None), None)
    if named is not None:
        return Unusable(
            f"names_a_file: an edit changes the skill document and no file; remove {named!r}"
        )
    op = value.get("op")
    if op not in PROPOSED_OPS:
        found = clean(op)[:40] if isinstance(op, str) else _type(op)
        return Unusable(f"unknown_op: op is one of {', '.join(PROPOSED_OPS)}; found {found}")
    content = _content(value, needed=op != "delete")
    target = _text(value, "target", default="")
    section = _text(value, "section", default="")
    for field in (content, target, section):
        if isinstance(field, Unusable):
            return field
    inline = value.get("inline", False)
    if not isinstance(inline, bool):
        return Unusable(f"wrong_type: inline is true or false, found {_type(inline)}")
    return Edit(
        op=str(op),
        target=str(target),
        content=str(content),
        section=str(section) if str(section).strip() else None,
        inline=inline,
        kind=kind if (kind := value.get("kind")) in KINDS else "rule",
        reason=clean(reason) if isinstance(reason := value.get("reason"), str) else "",
        items=_items(value.get("items")),
    )


def _content(value: Mapping[Any, Any], needed: bool) -> str | Unusable:
    content = value.get("content")
    if not needed and content is None:
        return ""
    if isinstance(content, list) and content and all(isinstance(i, str) for i in content):
        return "\n".join(_list_item(clean(item)) for item in content)
    if isinstance(content, str):
        return clean(content)
    return Unusable(f"wrong_type: content is text or a list of texts, found {_type(content)}")


def _list_item(text: str) -> str:
    """Return `text` as one item of a list, its further lines indented beneath it."""
    lines = text.strip("\n").split("\n")
    if lines[0].lstrip(" \t").startswith(("- ", "* ", "+ ")):
        return "\n".join(lines)
    return "\n".join(["- " + lines[0], *("  " + line if line else "" for line in lines[1:])])


def _text(value: Mapping[Any, Any], key: str, default: str) -> str | Unusable:
    text = value.get(key)
    if text is None:
        return default
    if isinstance(text, str):
        return clean(text)
    return Unusable(f"wrong_type: {key} is text, found {_type(text)}")


def _items(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(clean(item) for item in value if isinstance(item, str))


def _type(value: object) -> str:
    names = {type(None): "null", dict: "an object", list: "a list", bool: "true or false"}
    return names.get(type(value), "a number" if isinstance(value, (int, float)) else "text")

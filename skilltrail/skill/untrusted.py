"""An edit as a model or a file proposes it, read with nothing taken for granted.

What cannot be read is still accounted for: an `Unusable` takes the edit's place and gets the
result `invalid` when the edits are applied, so that rows and proposals always add up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skilltrail.core.canon import clean
from skilltrail.skill.edit import OPS, Edit
from skilltrail.skill.folder import MAIN, new_file_fault
from skilltrail.skill.markdown import holds_text

# What a proposer may ask for; `write_region` is left to the owners of the regions.
PROPOSED_OPS = tuple(op for op in OPS if op != "write_region")
KINDS = ("rule", "example", "note", "guidance")

# Names of a file, in lower case and without `_`, `-` and the like.
_FILE_KEYS = frozenset(
    ("file", "filename", "filepath", "path", "targetfile", "targetpath", "outputfile")
    + ("outputpath", "destination", "dest")
)


@dataclass(frozen=True)
class Unusable:
    """A proposed edit that cannot be read: `reason` is "code: sentence".

    `op` and `target` are what it says there, as far as that is text, for the report.
    """

    reason: str
    id: str = ""
    op: str = ""
    target: str = ""


def edit_from_untrusted(
    value: object, files: Sequence[str] = (), *, references: bool = False
) -> Edit | Unusable:
    """Return the edit that a JSON value describes, or why it describes none.

    `files` are those of a skill folder, one of which `file` may name; () = there is none.
    `references`: it may name a new one, too.

    A list of strings as content becomes list items. Claimed support is not read (it is the
    number of items behind an edit); an unknown kind counts as `rule`, the strictest one.
    """
    if not isinstance(value, Mapping):
        return Unusable(f"not_an_object: an edit is a JSON object, found {_type(value)}")
    try:
        return _edit(value, files, references=references)
    except _Unreadable as error:
        return Unusable(str(error), op=_said(value, "op"), target=_said(value, "target"))


def same_word(word: str, words: Iterable[str]) -> str | None:
    """Return the one of `words` that is `word` but for case, blanks and hyphens, or None."""
    found = [known for known in words if _bare(known) == _bare(word)]
    return found[0] if len(found) == 1 else None


def _bare(word: str) -> str:
    return re.sub(r"[\W_]", "", word.casefold())


class _Unreadable(Exception):
    """Why a JSON object is no edit."""


def _edit(value: Mapping[Any, Any], files: Sequence[str], *, references: bool) -> Edit:
    file = value.get("file") if files else None
    new = references and isinstance(file, str) and new_file_fault(file, files) is None
    if file is not None and file not in files and not new:
        said = ", ".join(files) + (", or a new references/NAME.md" if references else "")
        raise _Unreadable(f"no_file: `file` is one of {said}; found {_said(value, 'file')!r}")
    keys = [key for key in value if value[key] is not None and _names_a_file(key)]
    named = next((key for key in keys if file is None or key != "file"), None)
    if named is not None:
        raise _Unreadable(
            f"names_a_file: an edit changes the skill document and no file; remove {named!r}"
        )
    op = value.get("op")
    op = same_word(op, PROPOSED_OPS) if isinstance(op, str) else op
    if op not in PROPOSED_OPS:
        op = value.get("op")
        found = clean(op)[:40] if isinstance(op, str) else _type(op)
        raise _Unreadable(f"unknown_op: op is one of {', '.join(PROPOSED_OPS)}; found {found}")
    inline = value.get("inline", False)
    if not isinstance(inline, bool):
        raise _Unreadable(f"wrong_type: inline is true or false, found {_type(inline)}")
    section = _text(value, "section")
    return Edit(
        op=str(op),
        target=_text(value, "target"),
        content=_content(value, needed=op != "delete"),
        section=section if section.strip() else None,
        inline=inline,
        kind=kind if (kind := value.get("kind")) in KINDS else "rule",
        reason=_said(value, "reason"),
        items=_items(value.get("items")),
        file=MAIN if file is None else str(file),
    )


def _names_a_file(key: object) -> bool:
    return isinstance(key, str) and _bare(key) in _FILE_KEYS


def _content(value: Mapping[Any, Any], needed: bool) -> str:
    content = value.get("content")
    if content is None and not needed:
        return ""
    if isinstance(content, list) and content and all(isinstance(i, str) for i in content):
        return "\n".join(_list_item(clean(item)) for item in content if holds_text(item))
    if isinstance(content, str):
        return clean(content)
    raise _Unreadable(f"wrong_type: content is text or a list of texts, found {_type(content)}")


def _list_item(text: str) -> str:
    """Return `text` as one item of a list, its further lines indented beneath it."""
    lines = text.strip("\n").split("\n")
    if lines[0].lstrip(" \t").startswith(("- ", "* ", "+ ")):
        return "\n".join(lines)
    return "\n".join(["- " + lines[0], *("  " + line if line else "" for line in lines[1:])])


def _text(value: Mapping[Any, Any], key: str) -> str:
    text = value.get(key)
    if text is not None and not isinstance(text, str):
        raise _Unreadable(f"wrong_type: {key} is text, found {_type(text)}")
    return _said(value, key)


def _said(value: Mapping[Any, Any], key: str) -> str:
    """Return the text under `key`, "" when there is none."""
    text = value.get(key)
    return clean(text) if isinstance(text, str) else ""


def _items(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(clean(item) for item in value if isinstance(item, str))


def _type(value: object) -> str:
    names = {type(None): "null", dict: "an object", list: "a list", bool: "true or false"}
    return names.get(type(value), "a number" if isinstance(value, (int, float)) else "text")

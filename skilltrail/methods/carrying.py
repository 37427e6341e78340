"""What a document changed since an ancestor, as edits of another descendant.

This is how two documents are merged: the first stays, the second's changes are applied to it.
What the first has taken out already is not taken out again; what is new stands where it stood,
or at the end where the line before it is not there any more.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from skilltrail.skill.alignment import comparable
from skilltrail.skill.document import split_lines
from skilltrail.skill.edit import Edit
from skilltrail.skill.folder import files_of


def changes(ancestor: str, descendant: str, onto: str, said: str) -> list[Edit]:
    """Return the edits of `onto` that do what `descendant` did to `ancestor`; `said` is why."""
    before, after, there = files_of(ancestor), files_of(descendant), files_of(onto)
    return [
        replace(edit, file=path)
        for path in {**there, **after}
        for edit in _changes(
            split_lines(before.get(path, "")),
            split_lines(after.get(path, "")),
            split_lines(there.get(path, "")),
            said,
        )
    ]


def _changes(
    old: Sequence[str], new: Sequence[str], onto: Sequence[str], said: str
) -> Iterator[Edit]:
    lines = comparable(old, new, autojunk=False)
    matcher = difflib.SequenceMatcher(None, *lines, autojunk=False)
    for kind, start, end, at, until in matcher.get_opcodes():
        if kind == "equal":
            continue
        gone, come = "\n".join(old[start:end]), "\n".join(new[at:until])
        if gone.strip():
            yield Edit("delete", gone, reason=said)
        if not come.strip():
            continue
        before = old[start - 1] if 0 < start < len(old) else ""
        if before.strip() and onto.count(before) == 1:
            yield Edit("insert_after", before, come, reason=said)
        else:
            yield Edit("append", content=come, reason=said)

"""A skill folder as analysts see it: its files, which may change, who opened them. Pure.

What an agent opened is read from its traces. Where it was given no files but the whole text,
nobody can say what it read, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skilltrail.core.tokens import count_tokens
from skilltrail.optimizers.llm.prompts import Templates
from skilltrail.optimizers.protocol import Observation
from skilltrail.skill.folder import MAIN, FolderFile, is_folder, is_script, is_test, parts_of


def with_folder(
    skill: str,
    fenced_skill: str,
    seen: Iterable[Observation],
    *,
    scripts: bool,
    references: bool = False,
    whole: bool = False,
) -> str:
    """Return the fenced text of a skill, that of a folder behind a table of its files.

    `whole`: documents are written, where else edits are.
    """
    if not (references or is_folder(skill)):
        return fenced_skill
    opened = [one.trajectory.extra.get("opened") for one in seen]
    rows = [_row(part, opened, scripts=scripts) for part in parts_of(skill)]
    table = "\n".join(["| file | tokens | may change | opened |", "|---|---|---|---|", *rows])
    kind = "_whole" if whole else ""
    making = Templates().text(f"_references{kind}" if references else "_no_references")
    values = {"files": table, "making": making}
    return f"{Templates().text(f'_folder{kind}', values)}\n\n{fenced_skill}"


def editable(skill: str, *, scripts: bool) -> list[str]:
    """Return the files that edits may change."""
    return [part.path for part in parts_of(skill) if _may_change(part.path, scripts=scripts)]


def _may_change(path: str, *, scripts: bool) -> bool:
    return not is_script(path) or (scripts and not is_test(path))


def _row(part: FolderFile, opened: list[Any], *, scripts: bool) -> str:
    changes = "yes" if _may_change(part.path, scripts=scripts) else "no"
    told = [paths for paths in opened if isinstance(paths, list)]
    read = sum(part.path in paths for paths in told)
    if part.path == MAIN:
        how = "always"
    elif not told:
        how = "stands in the prompt"
    else:
        how = f"in {read} of {len(told)} runs" if read else f"by nobody in {len(told)} runs"
    return f"| {part.path} | {count_tokens(part.text)} | {changes} | {how} |"

"""What edits may do to the files of a skill folder: which may change, be made or be removed.

`SKILL.md` and references change freely, a script where its test judges it, a test never. Where
`skill.references` says so, an edit that names `references/NAME.md` makes that file, and one
that edits leave without text is removed, unless another file would then name what is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from skilltrail.skill.candidate import Candidate
from skilltrail.skill.edit import EditResult, EditStatus
from skilltrail.skill.folder import is_reference, is_script, is_test, new_file_fault, test_of

Refusal = tuple[EditStatus, str]  # the detail is "code: sentence"
FROZEN = (EditStatus.PROTECTED, "scripts: they are frozen (`skill.scripts` in params.yaml)")


def refusal_of(
    path: str, texts: Mapping[str, str], scripts: Refusal | None, *, references: bool
) -> tuple[EditStatus, tuple[int, ...], str] | None:
    """Return why no edit may change the file of a folder, None = it may."""
    if path not in texts:
        fault = new_file_fault(path, texts) if references else None
        if references and fault is None:
            return None
        no_file = f"no_file: files of the skill: {', '.join(texts)}"
        return EditStatus.NOT_FOUND, (), no_file if fault is None else fault
    if is_test(path):
        return EditStatus.PROTECTED, (), "test: what judges a script is not changed with it"
    if is_script(path) and scripts is not None:
        return scripts[0], (), scripts[1]
    if is_script(path) and test_of(path) not in texts:
        return EditStatus.PROTECTED, (), f"no_test: there is no {test_of(path)}"
    return None


def is_emptied(path: str, made: Candidate) -> bool:
    return is_reference(path) and made.changed and not made.text.strip()


def keep_named(texts: Mapping[str, str], made: dict[str, Candidate]) -> dict[str, EditResult]:
    """Take out of `made` each emptied file that another file still names, and return the
    results of the edits that emptied it."""
    results: dict[str, EditResult] = {}
    while (found := _still_named(texts, made)) is not None:
        path, by = found
        for result in made.pop(path).results:
            if result.status is EditStatus.APPLIED:
                detail = f"named: {by} still names it, so the file stays"
                result = replace(result, status=EditStatus.PROTECTED, detail=detail)
            results[result.edit] = result
    return results


def _still_named(
    texts: Mapping[str, str], made: Mapping[str, Candidate]
) -> tuple[str, str] | None:
    """Return an emptied file and the file that names it, None where there is no such pair."""
    now = {**texts, **{path: one.text for path, one in made.items()}}
    for path, one in made.items():
        if is_emptied(path, one):
            for other, text in now.items():
                if other != path and path in text:
                    return path, other
    return None


def without_script(result: EditResult, fault: str | None) -> EditResult:
    """Return the result of an edit of a file that has a fault, and so stays as it was."""
    if fault is None or result.status is not EditStatus.APPLIED:
        return result
    return replace(result, status=EditStatus.INVALID, detail=f"syntax: {fault}")

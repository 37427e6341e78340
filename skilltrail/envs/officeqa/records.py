"""The official CSV of OfficeQA, and the files that a question is about.

Columns: uid, question, answer, source_docs (one URL a line, `?page=18` names the page),
source_files (one name a line), difficulty. SkillOpt renames: id, ground_truth, category, and
lists in place of lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skilltrail.core.errors import DataError
from skilltrail.envs.kit.fields import shown
from skilltrail.envs.kit.files import file_digest, find_known, find_named
from skilltrail.envs.protocol import Where

_PAGE_OF_URL = re.compile(r"[?&]page(?:num|_id)?=(\d+)")
_PAGE_MARK = re.compile(r"^--- PAGE (\d+) ---[ \t]*$", re.MULTILINE)


def lines_of(record: Mapping[str, Any], name: str, where: Where) -> list[str]:
    """Return the entries of a field: a list of texts, or a text with one entry a line."""
    found = record.get(name)
    if found is None:
        return []
    if isinstance(found, str):
        found = found.replace("\r", "\n").split("\n")
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise where.error(name, shown(found), "Give one entry a line, or a list of texts")
    return [one.strip() for one in found if one.strip()]


def source_files(record: Mapping[str, Any], where: Where) -> list[str]:
    """Return the names of the item's files; at least one."""
    names = lines_of(record, "source_files", where)
    if not names:
        raise where.error("source_files", "nothing", "Name the text files that hold the answer")
    return names


def digests_of(names: Sequence[str], folders: Sequence[Path], where: Where) -> dict[str, str]:
    """Return name -> SHA-256 of each file; all must be there."""
    return {
        name: file_digest(find_named(name, folders, "source_files", where)) for name in names
    }


def texts_of(digests: Mapping[str, str], folders: Sequence[Path]) -> dict[str, str]:
    """Return name -> text of files known by their digests.

    Raises:
        DataError: a file is gone, has changed, or is not UTF-8.
    """
    return {name: _text(find_known(name, sha, folders)) for name, sha in digests.items()}


def oracle_pages(
    record: Mapping[str, Any],
    names: Sequence[str],
    folders: Sequence[Path],
    chars: int,
    where: Where,
) -> str:
    """Return the text of the pages that `source_docs` names, at most `chars` characters.

    The n-th URL belongs to the n-th file, or to the only one. A file without a page named
    counts whole.

    Raises:
        DataError: a named page is not in its file, or a file without page marks is longer than
            `chars`, so that its page cannot be found.
    """
    found: dict[str, list[str]] = {name: [] for name in names}
    for index, url in enumerate(lines_of(record, "source_docs", where)):
        named = _PAGE_OF_URL.search(url)
        if named is not None and (index < len(names) or len(names) == 1):
            found[names[min(index, len(names) - 1)]].append(named[1])
    parts = []
    for name, pages in found.items():
        text = _text(find_named(name, folders, "source_files", where))
        marks = _pages(text)
        for page in pages if marks else []:
            if int(page) not in marks:
                raise where.error(
                    "source_docs", f"no page {page} in {name}", "Correct the page"
                )
            parts.append(marks[int(page)].strip())
        if not pages or not marks:
            if len(text) > chars:
                raise where.error(
                    "source_docs",
                    f"{name} has {len(text):,} characters and no page to choose",
                    "Use the files with page marks (`--- PAGE 18 ---` lines), or oracle: false",
                )
            parts.append(text.strip())
    return "\n\n".join(parts)[:chars]


def _pages(text: str) -> dict[int, str]:
    """Return page number -> text of a file with page marks; {} without."""
    pieces = _PAGE_MARK.split(text)
    pages: dict[int, str] = {}
    for number, page in zip(pieces[1::2], pieces[2::2], strict=True):
        pages[int(number)] = pages.get(int(number), "") + page
    return pages


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"The text file {path.name}", str(error), "Save it as UTF-8 text"
        ) from error

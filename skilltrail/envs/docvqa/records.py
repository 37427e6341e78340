"""The two official layouts of DocVQA, read into one.

JSON: `{"data": [{"questionId": 337, "question": …, "image": "documents/xnbl0037_1.png",
"docId": 279, "ucsf_document_id": "xnbl0037", "ucsf_document_page_no": "1", "answers": [...]}]}`
CSV: one row per question, `image_path` in place of `image`, `answer` holding a list literal
(`['0.28']`), `topic` joined by `|`; a question may end in `document_path: <image>`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skilltrail.core.errors import DataError
from skilltrail.envs.kit.fields import optional_text, text
from skilltrail.envs.kit.files import file_digest, find_named, is_there
from skilltrail.envs.kit.images import image_type
from skilltrail.envs.protocol import Where

_PATH_MARK = "document_path:"
SIDECAR = ".txt"


@dataclass(frozen=True)
class Page:
    """A page's image: its name as the record gives it, its digest, and its text or None."""

    name: str
    sha256: str
    text: str | None


def question_and_image(
    record: Mapping[str, Any], folders: Sequence[Path], where: Where
) -> tuple[str, str, str]:
    """Return the question, the image's name and the field that gives it.

    A record of the JSON joined with a manifest has both fields: the one counts whose file is
    there.

    Raises:
        DataError: one of them is missing.
    """
    question, mark, tail = text(record, "question", where).partition(_PATH_MARK)
    if mark and tail.strip():
        return question.strip(), tail.strip(), "question"
    fields = [one for one in ("image", "image_path") if record.get(one) is not None]
    there = (one for one in fields if is_there(text(record, one, where), folders))
    field = next(there, [*fields, "image"][0])
    return question.strip(), text(record, field, where), field


def page_of(
    record: Mapping[str, Any], name: str, field: str, folders: list[Path], where: Where
) -> Page:
    """Return the page: the image must be there and be one.

    Its text is the record's `page_text`, or else the file beside the image that is named like
    it with `.txt` in place of the suffix, or else None.

    Raises:
        DataError: no image, or an image or sidecar that cannot be read.
    """
    image = find_named(name, folders, field, where)
    try:
        image_type(image)
        written = optional_text(record, "page_text", where)
        sidecar = image.with_suffix(SIDECAR)
        if written is None and sidecar.is_file():
            written = sidecar.read_text(encoding="utf-8-sig")
    except (DataError, OSError, UnicodeDecodeError) as error:
        raise where.error(field, str(error), "Fix the file; a sidecar is UTF-8 text") from error
    return Page(name, file_digest(image), written)


def group_of(record: Mapping[str, Any], where: Where) -> str | None:
    """Return the source document: pages of one document stay in one split."""
    for field in ("ucsf_document_id", "docId"):
        named = optional_text(record, field, where)
        if named is not None:
            return f"document:{named}"
    return None


def topics_of(record: Mapping[str, Any], where: Where) -> list[str]:
    """Return the kinds of content the question is about; none in the JSON layout."""
    joined = optional_text(record, "topic", where)
    return [] if joined is None else [topic.strip() for topic in joined.split("|")]

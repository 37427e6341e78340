"""What people say of single items, for analysts: the field `feedback`, or a file of its own.

`feedback.jsonl` beside the items holds `{"item": id, "text": words}` a line. Only what is said
of train items is ever shown, to analysts alone, never to the agent. It is part of the item,
hence of its content digest in `run.started`; it is no part of what rollouts are kept under.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skilltrail.core.item import FEEDBACK, Item
from skilltrail.data.find import FEEDBACK_FILE, DataSource
from skilltrail.data.read import read_records
from skilltrail.envs.protocol import Where


def with_feedback(item: Item, record: Mapping[str, Any], where: Where) -> Item:
    """Return the item with its record's field `feedback`.

    Raises:
        DataError: it is no text.
    """
    said = record.get(FEEDBACK)
    if said is None:
        return item
    if not isinstance(said, str):
        raise where.error(FEEDBACK, f"{said!r:.60}", "Write what you would tell an analyst")
    return with_words(item, said) if said.strip() else item


def with_words(item: Item, words: str) -> Item:
    """Return the item with these words added to what is said of it."""
    before = item.extra.get(FEEDBACK)
    lines = [before, words] if isinstance(before, str) and before != words else [words]
    return replace(item, extra={**item.extra, FEEDBACK: "\n".join(lines)})


def feedback_file(source: DataSource, known: set[str]) -> dict[str, str]:
    """Return what `feedback.jsonl` beside the files of `source` says, by item id.

    Raises:
        DataError: a line has no `item` or `text`, or names an item that is not `known`.
    """
    said: dict[str, list[str]] = {}
    for path in sorted({path.parent / FEEDBACK_FILE for path in source.files.values()}):
        for record in read_records(path) if path.is_file() else ():
            id, text = record.data.get("item"), record.data.get("text")
            if not isinstance(text, str) or not isinstance(id, (str, int)):
                found, remedy = f"{record.data!r:.80}", 'Write {"item": id, "text": words}'
                raise record.where.error("text", found, remedy)
            if str(id) not in known:
                raise record.where.error("item", f"{id!r}", "Name an item of these files")
            said.setdefault(str(id), []).append(text.strip())
    return {id: "\n".join(texts) for id, texts in said.items()}

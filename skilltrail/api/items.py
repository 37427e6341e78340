"""A program's items, in whatever form, as items of splits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from skilltrail.core.canon import cleaned, text_digest
from skilltrail.core.errors import DataError
from skilltrail.core.item import SPLITS, Item
from skilltrail.data.assign import parse_ratio
from skilltrail.data.intake.columns import find_columns
from skilltrail.data.intake.exact import assign_exactly, shares
from skilltrail.data.intake.tables import read_table
from skilltrail.data.overlap import normalised
from skilltrail.data.split_field import SPLIT_OF
from skilltrail.envs.by_function import MetricEnv
from skilltrail.envs.protocol import Where
from skilltrail.runtime.console import say

Records = Iterable[Any] | Mapping[str, Iterable[Any]] | str | Path


def splits_of(
    items: Records,
    env: MetricEnv,
    seed: int,
    ratio: str | None,
    columns: Mapping[str, str] | None = None,
) -> dict[str, list[Item]]:
    """Return the items of each split.

    Args:
        items: mappings, (question, answer) pairs, objects with `toDict` (DSPy), a file's path;
            or a mapping of split names (train, selection or validation, test) to such lists.
        columns: fields of the items by role, where their names do not tell it.

    Raises:
        DataError: no question in an item, or too few items.
    """
    own = {} if columns is None else dict(columns)
    named = _named(items)
    if named is not None:
        return {
            split: _items(enumerate(map(_mapping, named[split]), 1), env, split, own)
            for split in SPLITS
        }
    if isinstance(items, (str, Path)):
        items = _of_file(Path(items), own)
    assert not isinstance(items, Mapping)
    every = _items(enumerate(map(_mapping, items), 1), env, "items", own)
    by_content: dict[str, Item] = {}
    for one in every:
        by_content.setdefault(normalised(env.content(one)), one)
    records = [{"id": one.id, "group": one.group, "task_type": one.task_type or ""}
               for one in by_content.values()]  # fmt: skip
    parts: Sequence[Any] = shares(len(records)) if ratio is None else parse_ratio(ratio)
    of = assign_exactly(records, parts, seed)
    return {
        split: [one for one in by_content.values() if of[one.id] == split] for split in SPLITS
    }


def _of_file(path: Path, own: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a file's rows; those without a question, totals mostly, are left out and told."""
    table = read_table(path)
    names = list(dict.fromkeys(name for row in table.rows for name in row))
    asked = find_columns(names, own).get("question") or ""
    rows = [row for row in table.rows if str(row.get(asked) or "").strip()]
    left_out = len(table.rows) - len(rows)
    notes = list(table.notes)
    if rows and left_out:
        notes.append(f"left out for want of a question: {left_out} of {len(table.rows)} rows")
    for note in notes:
        say(f"note: {note}")
    return rows if rows else table.rows


def _named(items: Records) -> dict[str, Iterable[Any]] | None:
    if not isinstance(items, Mapping):
        return None
    found = {SPLIT_OF.get(str(name), ""): rows for name, rows in items.items()}
    if set(found) != set(SPLITS):
        raise DataError(
            "items by split",
            f"the names {', '.join(map(str, items))}",
            "Name train, selection (or validation) and test",
        )
    return found


def _mapping(one: Any) -> dict[str, Any]:
    """Return an item as JSON: a mapping, a pair, a DSPy example."""
    if isinstance(one, Sequence) and not isinstance(one, str) and len(one) == 2:
        one = {"question": one[0], "answer": one[1]}
    elif hasattr(one, "toDict"):
        one = one.toDict()
    try:
        return dict(cleaned(json.loads(json.dumps(dict(one)))))
    except (TypeError, ValueError) as error:
        raise DataError(
            f"The item {one!r:.80}",
            f"not JSON ({error})",
            "Give a mapping of texts and numbers, or a pair of question and answer",
        ) from error


def _items(
    rows: Iterable[tuple[int, dict[str, Any]]],
    env: MetricEnv,
    name: str,
    own: Mapping[str, str],
) -> list[Item]:
    rows = list(rows)
    if not rows:
        raise DataError(f"{name} of optimize", "no items", "Give at least six")
    names = list(dict.fromkeys(key for _, row in rows for key in row))
    columns = find_columns(names, own)
    if columns.get("question") not in names:
        raise DataError(
            f"{name} of optimize: no field is known for the question",
            f"there are {', '.join(names)}",
            'Name it: columns={"question": NAME}',
        )
    found, taken = [], set()
    for line, row in rows:
        where = Where(name, line)
        values = {role: row.get(column) for role, column in columns.of.items()}
        question = values.get("question")
        if not isinstance(question, str) or not question.strip():
            raise where.error("question", repr(question)[:80], "Give each item a `question`")
        context, answer = values.get("context"), values.get("answer")
        if isinstance(answer, list):
            answer = answer[0] if answer else None
        id = str(values.get("id") or f"q-{text_digest(f'{question} {context}')[:12]}")
        if id in taken:
            continue
        taken.add(id)
        record = {
            "id": id, "question": question, "answer": answer, "record": row,
            "context": None if context is None else str(context),
            "group": None if values.get("group") is None else str(values["group"]),
            "task_type": None if values.get("task_type") is None else str(values["task_type"]),
        }  # fmt: skip
        found.append(env.parse(record, where))
    return found

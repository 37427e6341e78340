"""Rows to records of ours: one form for every table, ids made from what is asked.

Equal questions over an equal context are one record with all their answers; items that share a
context share a group, as far as that leaves three splits to fill.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.core.errors import DataError
from skilltrail.data.intake.columns import Columns, bare
from skilltrail.data.overlap import normalised
from skilltrail.data.split_field import FIELD, OTHERS, SPLIT_OF
from skilltrail.envs.kit.choices import LABELS

Row = Mapping[str, Any]
Record = dict[str, Any]
_KEPT = ("checks", "scorer", "tolerance", "split", "empty_is_right", "is_impossible")
_LEAST_GROUPS = 9  # fewer shared contexts cannot fill three splits


@dataclass
class RecordsMade:
    """What the rows became, and what a person should know of it."""

    records: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def make_records(rows: Sequence[Row], columns: Columns) -> RecordsMade:
    """Return records `{id, question, answers, context, choices, task_type, group, …}`.

    Raises:
        DataError: no row has a question.
    """
    made = RecordsMade()
    by_content: dict[str, Record] = {}
    blank = merged = 0
    taken: set[str] = set()
    for row in rows:
        record = _record(row, columns)
        if record is None:
            blank += 1
            continue
        key = normalised(f"{record['question']}\n{record.get('context', '')}"
                         f"\n{record.get('choices', '')}")  # fmt: skip
        same = by_content.get(key)
        if same is not None:
            merged += 1
            known = same.setdefault("answers", [])
            known += [one for one in record.get("answers", []) if one not in known]
            continue
        record["id"] = _ident(record, taken)
        by_content[key] = record
        made.records.append(record)
    if not made.records:
        raise DataError("No row holds a question", f"{len(rows)} rows", "Check the columns")
    if blank:
        noun, are = ("row", "is") if blank == 1 else ("rows", "are")
        made.notes.append(f"{blank} {noun} without a question or an answer {are} left out")
    if merged:
        repeat = "1 row repeats" if merged == 1 else f"{merged} rows repeat"
        made.notes.append(f"{repeat} a question; their answers are all accepted")
    _group(made)
    return made


def _record(row: Row, columns: Columns) -> Record | None:
    question = _text(row.get(columns.get("question") or ""))
    record: Record = {name: row[name] for name in _KEPT if row.get(name) not in (None, "")}
    if isinstance(record.get("checks"), str):
        record["checks"] = _parsed(record["checks"])
    split = _split(row)
    record.pop("split", None)
    if split:
        record["split"] = split
    choices = _choices(row, columns)
    if choices:
        record["choices"] = choices
    answers = _answers(row.get(columns.get("answer") or ""), choices)
    if not question or (not answers and not record.get("checks")):
        return None
    if answers and "checks" not in record:
        record["answers"] = answers
    for role in ("id", "context", "task_type", "group"):
        found = _text(row.get(columns.get(role) or ""))
        if found:
            record[role] = found
    return {"question": question, **record}


def _text(value: Any) -> str:
    """Return a cell as text: numbers as their digits, lists of passages joined."""
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, (list, tuple)):
        return "\n".join(filter(None, map(_text, value)))
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return (format(value, ".15g") if isinstance(value, float) else str(value)).strip()


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _split(row: Row) -> str:
    for name in (FIELD, *OTHERS):
        word = SPLIT_OF.get(str(row.get(name, "")).strip().casefold())
        if word:
            return word
    return ""


def _choices(row: Row, columns: Columns) -> Any:
    if columns.options:
        texts = [_text(row.get(name)) for name in columns.options]
        return [one for one in texts if one] if sum(map(bool, texts)) > 1 else None
    found = row.get(columns.get("choices") or "")
    if isinstance(found, str):
        found = _parsed(found)
    if isinstance(found, Mapping) and isinstance(found.get("text"), (list, tuple)):
        labels = found.get("label") or LABELS
        found = dict(zip(map(str, labels), map(_text, found["text"]), strict=False))
    if isinstance(found, Mapping):
        return {str(label): _text(text) for label, text in found.items()}
    return [_text(one) for one in found] if isinstance(found, (list, tuple)) else None


def _answers(value: Any, choices: Any) -> list[str]:
    if isinstance(value, str) and value.strip().startswith("["):
        listed = _parsed(value)
        value = listed if isinstance(listed, list) else value
    if isinstance(value, Mapping):
        value = value.get("text", value.get("aliases", []))
    cells = value if isinstance(value, (list, tuple)) else [value]
    if choices and len(cells) == 1 and str(cells[0]).strip().isdigit():
        texts = list(choices.values()) if isinstance(choices, Mapping) else list(choices)
        labels = list(choices) if isinstance(choices, Mapping) else list(LABELS)
        at, said = int(str(cells[0]).strip()), str(cells[0]).strip()
        if said not in labels and said not in texts and at < len(texts):
            return [str(labels[at])]  # an index, as MMLU and its like have it
    texts = [_bool(cell) if isinstance(cell, bool) else _text(cell) for cell in cells]
    return list(dict.fromkeys(text for text in texts if text))


def _bool(value: bool) -> str:
    return "yes" if value else "no"


def _ident(record: Mapping[str, Any], taken: set[str]) -> str:
    """Return the row's own id, or one made from what is asked; never one twice."""
    own = record.get("id")
    content = "\n".join(_text(record.get(name)) for name in ("question", "context", "choices"))
    made = f"q-{text_digest(content)[:12]}"
    id = own if own is not None and own not in taken else made
    taken.add(id)
    return str(id)


def _group(made: RecordsMade) -> None:
    """Let items over one text share a group, where enough texts are left to split by."""
    records = made.records
    if any("group" in one for one in records):
        return
    texts = [one.get("context") for one in records]
    counts = Counter(text for text in texts if text)
    repeated = [text for text, n in counts.items() if n > 1]
    if not repeated:
        return
    alone = sum(1 for text in texts if not text)
    if len(counts) + alone < _LEAST_GROUPS or max(counts.values()) > len(records) / 3:
        made.notes.append(
            f"{sum(counts[t] for t in repeated)} items share a context with others; too few "
            "contexts to keep each in one split, so splits may share texts"
        )
        return
    for one in records:
        if counts.get(one.get("context"), 0) > 1:
            one["group"] = f"text-{text_digest(str(one['context']))[:12]}"


def known_columns(columns: Columns, names: Sequence[str]) -> list[str]:
    """Return the columns that nothing is made of, in order."""
    used = {*columns.of.values(), *columns.options, *_KEPT, FIELD, *OTHERS}
    return [name for name in names if name not in used and bare(name) not in map(bare, used)]

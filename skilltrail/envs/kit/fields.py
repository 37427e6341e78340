"""Reading the fields of a raw record: each reader returns a sound value or names the field.

Ids are data and nothing else: any text is allowed, a whole number counts as its digits, also
one that a table with gaps made a float (`337.0`).
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Mapping, Sequence
from typing import Any

from skilltrail.envs.protocol import Where

# What begins so spells a list, or SQuAD's answers as a table; "[sic]" is a text.
_LIST = re.compile(r"\[\s*(?:[\"'\[\]\d{]|$)|\{\s*[\"']text[\"']\s*:")


def ident(record: Mapping[str, Any], names: Sequence[str], where: Where) -> str:
    """Return the record's id: the first of the fields `names` that is there, as text.

    Raises:
        DataError: there is none, or it is neither text nor a whole number.
    """
    name = next((name for name in names if record.get(name) is not None), names[0])
    found = _whole(record.get(name))
    if isinstance(found, bool) or not isinstance(found, (str, int)) or not str(found).strip():
        raise where.error(
            name, shown(found), "Give each item an id of its own: text or a whole number"
        )
    return str(found)


def _whole(found: Any) -> Any:
    return int(found) if isinstance(found, float) and found.is_integer() else found


def text(record: Mapping[str, Any], name: str, where: Where) -> str:
    """Return a text that is not blank.

    Raises:
        DataError: it is not there, not text, or blank.
    """
    found = record.get(name)
    if not isinstance(found, str) or not found.strip():
        raise where.error(name, shown(found), "Give a text that is not blank")
    return found


def optional_text(record: Mapping[str, Any], name: str, where: Where) -> str | None:
    """Return a text or a whole number as text; None when absent, null or blank.

    Raises:
        DataError: it is something else.
    """
    found = _whole(record.get(name))
    if found is None or (isinstance(found, str) and not found.strip()):
        return None
    if isinstance(found, bool) or not isinstance(found, (str, int)):
        raise where.error(name, shown(found), "Give a text, or leave the field out")
    return str(found)


def texts(record: Mapping[str, Any], name: str, where: Where) -> list[str]:
    """Return a list of texts: a JSON list, or in CSV cells a list literal or one plain text.

    SQuAD's answers are lists too, as tables have them ({"text": [...], "answer_start": [...]})
    and as its own files do ([{"text": ..., "answer_start": 0}]).

    Raises:
        DataError: it is no list, or an entry is not text.
    """
    found = record.get(name)
    if isinstance(found, str):
        found = _list_in(found, name, where)
    if isinstance(found, Mapping) and isinstance(found.get("text"), list):
        found = found["text"]
    if not isinstance(found, list):
        raise where.error(name, shown(found), 'Give a list of texts, as in ["0.28"]')
    found = [
        one["text"] if isinstance(one, Mapping) and "text" in one else one for one in found
    ]
    for entry in found:
        if not isinstance(entry, str):
            raise where.error(name, shown(entry), "Each entry of the list is a text")
    return list(found)


def accepted(record: Mapping[str, Any], name: str, where: Where) -> list[str]:
    """Return the accepted answers: at least one, none blank unless the record declares so.

    Raises:
        DataError: it is no list of texts.
        BrokenItem: no answer is right, or a blank one is.
    """
    answers = texts(record, name, where)
    if declares_empty(record):
        return answers if answers else [""]
    if not answers or not all(answer.strip() for answer in answers):
        raise where.broken(
            name,
            f"{shown(answers)}: no answer is right, or an empty one",
            "Give accepted answers, none blank, or declare `empty_is_right: true`",
        )
    return answers


def declares_empty(record: Mapping[str, Any]) -> bool:
    """Return whether a record says itself that the empty answer is right.

    `empty_is_right` is ours, `is_impossible` SQuAD 2.0's.
    """
    said = (record.get(name) for name in ("empty_is_right", "is_impossible"))
    return any(str(one).strip().lower() in ("true", "1", "1.0", "yes") for one in said)


def _list_in(cell: str, name: str, where: Where) -> Any:
    """Return what a CSV cell holds: the list it spells (JSON or Python), or itself alone."""
    text = cell.strip()
    if not _LIST.match(text):
        return [cell] if text else None
    remedy = "Write it as in ['0.28', '28 %'], quotes closed and commas between"
    try:
        return json.loads(text)
    except ValueError:
        pass
    except RecursionError as error:
        raise where.error(name, f"{shown(cell)} is no list", remedy) from error
    try:
        found = ast.literal_eval(text)
        n_texts = sum(
            token.type == tokenize.STRING
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
        )
    except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError) as error:
        raise where.error(name, f"{shown(cell)} is no list", remedy) from error
    # Python reads ['a' 'b'] (as arrays are printed) as one text: two answers would become one.
    listed = found["text"] if isinstance(found, dict) else found
    n_keys = len(found) if isinstance(found, dict) else 0
    if isinstance(listed, list) and n_texts > len(listed) + n_keys:
        raise where.error(name, f"{shown(cell)} has texts without a comma between", remedy)
    return found


def shown(value: Any) -> str:
    """Return a value as error messages show it: short, and absent things by their name."""
    if value is None:
        return "nothing"
    words = repr(value)
    return words if len(words) <= 80 else f"{words[:77]}..."

"""SQuAD's nested file layout, flattened to one record per question.

    {"data": [{"title": …, "paragraphs": [{"context": …,
        "qas": [{"id": …, "question": …, "answers": [{"text": …, "answer_start": 0}]}]}]}]}

Source: the SQuAD 1.1 training file; KorQuAD 1.0 and XQuAD use the same layout. The paragraph
is the source its questions share, so it is their `group`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skilltrail.core.canon import text_digest
from skilltrail.envs.kit.fields import declares_empty
from skilltrail.envs.protocol import Where


def is_article(value: Any) -> bool:
    """Return whether `value` is an article in SQuAD's layout."""
    return isinstance(value, Mapping) and isinstance(value.get("paragraphs"), list)


def questions(article: Mapping[str, Any], where: Where) -> Iterator[dict[str, Any]]:
    """Yield `{id, question, context, answers, title, group}` for each question of an article.

    Raises:
        DataError: a paragraph or a question is not built as the layout says.
    """
    for paragraph in article["paragraphs"]:
        context = _field(paragraph, "context", str, where)
        for question in _field(paragraph, "qas", list, where):
            answers = _field(question, "answers", list, where)
            nothing = {"is_impossible": True} if declares_empty(question) else {}
            yield nothing | {
                "id": _field(question, "id", (str, int), where),
                "question": _field(question, "question", str, where),
                "context": context,
                "answers": [_field(answer, "text", str, where) for answer in answers],
                "title": article.get("title", ""),
                "group": text_digest(context)[:16],
            }


def _field(holder: Any, name: str, kind: type | tuple[type, ...], where: Where) -> Any:
    value = holder.get(name) if isinstance(holder, Mapping) else None
    if not isinstance(value, kind):
        raise where.error(
            name,
            f"not found in this article, or of another type ({type(value).__name__})",
            "A file with `paragraphs` is read in SQuAD's layout; see the data card of the set",
        )
    return value

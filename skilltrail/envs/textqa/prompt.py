"""How `textqa` puts an item to a model, and a solved item into a skill document.

A worked example is the very text the model is asked to go on with, plus the answer, so that a
plain completion model that has read some goes on in the same way.
"""

from __future__ import annotations

from skilltrail.core.item import Item
from skilltrail.envs.kit.excerpts import around, fold

CHAT_TASK = "Reply with the answer alone, inside <answer></answer>."


def question_prompt(item: Item, context_chars: int) -> str:
    """Return what a completion model goes on with."""
    context = item.input["context"][:context_chars]
    return f"Context: {context}\nQuestion: {item.input['question']}\nAnswer:"


def chat_prompt(item: Item, context_chars: int) -> str:
    """Return the user message for a chat model."""
    context = item.input["context"][:context_chars]
    return f"Context: {context}\n\nQuestion: {item.input['question']}\n\n{CHAT_TASK}"


def worked_example(item: Item, answer: str, context_chars: int) -> str | None:
    """Return `item` with its answer as one paragraph, or None when the answer is cut away.

    White space is folded, so that no line of a context can read as Markdown; a longer context
    is cut around the answer.
    """
    context = around(fold(item.input["context"]), fold(answer), context_chars)
    if context is None or not fold(answer):
        return None
    question = fold(item.input["question"])
    return f"Context: {context}\nQuestion: {question}\nAnswer: {fold(answer)}"

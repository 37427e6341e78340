"""How `textqa` puts an item to a model, and a solved item into a skill document.

A worked example is the very text the model is asked to go on with, plus the answer, so that a
plain completion model that has read some goes on in the same way.
"""

from __future__ import annotations

from stages.core.item import Item

CUT = " […]"

CHAT_TASK = "Reply with the answer alone, inside <answer></answer>."


def question_prompt(item: Item, context_chars: int) -> str:
    """Return what a completion model goes on with."""
    context = cut(item.input["context"], context_chars)
    return f"Context: {context}\nQuestion: {item.input['question']}\nAnswer:"


def chat_prompt(item: Item, context_chars: int) -> str:
    """Return the user message for a chat model."""
    context = cut(item.input["context"], context_chars)
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


def fold(text: str) -> str:
    """Return `text` on one line."""
    return " ".join(text.split())


def cut(text: str, chars: int) -> str:
    """Return at most the first `chars` characters."""
    return text[:chars]


def around(context: str, answer: str, chars: int) -> str | None:
    """Return at most about `chars` characters of `context`, whole words with `answer` in them.

    None when a longer context does not hold the answer word for word.
    """
    if len(context) <= chars:
        return context
    at = context.find(answer)
    if at < 0 or len(answer) > chars:
        return None
    spare = (chars - len(answer)) // 2
    start = max(0, min(at - spare, len(context) - chars))
    end = min(len(context), start + chars)
    if start > 0:
        start = min(context.find(" ", start) + 1, at) if context.find(" ", start) >= 0 else at
    if end < len(context):
        end = max(context.rfind(" ", 0, end), at + len(answer))
    return context[start:end]

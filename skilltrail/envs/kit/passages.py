"""Questions about a text: how an item is put to a model, and solved inside a skill document.

For environments whose items have `question` and `context` and whose prompts `completion` and
`chat` have these two places. A worked example is the very text that a completion model is asked
to go on with, plus the answer.
"""

from __future__ import annotations

from skilltrail.core.item import Item
from skilltrail.envs.kit.asking import Question
from skilltrail.envs.kit.excerpts import around, fold
from skilltrail.envs.kit.prompts import Prompts
from skilltrail.models.protocol import Part


def passage_question(
    prompts: Prompts, item: Item, context_chars: int, answer_tokens: int
) -> Question:
    """Return an item as it is put to a model, its context cut to `context_chars`."""
    shown = {
        "context": item.input["context"][:context_chars],
        "question": item.input["question"],
    }
    chat = (Part(prompts.fill("chat", **shown)),)
    return Question(prompts.fill("completion", **shown), chat, answer_tokens)


def passage_example(
    prompts: Prompts, item: Item, answer: str, context_chars: int
) -> str | None:
    """Return an item with its answer as one paragraph without blank lines, or None.

    A longer context is cut around the answer; None when it does not hold the answer in the
    answer's own words, or the answer is blank.
    """
    answer = fold(answer)
    context = around(fold(item.input["context"]), answer, context_chars)
    if context is None or not answer:
        return None
    shown = {"context": context, "question": fold(item.input["question"])}
    return f"{prompts.fill('completion', **shown)} {answer}"
